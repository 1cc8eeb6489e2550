"""Operators of the reference, by the names of the dispatcher."""

OPERATORS = {}


def operator(*names):
    """Registers f(policy, *arguments) under the full names that the cases use, "aten::add.Tensor"."""

    def register(f):
        for name in names:
            if name in OPERATORS:
                raise ValueError(f"two references of {name}")
            OPERATORS[name] = f
        return f

    return register


def call(policy, name, *arguments, **named):
    return OPERATORS[name](policy, *arguments, **named)
