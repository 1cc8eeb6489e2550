"""How case files are written: one key a line, values in one line each, so that a difference shows what changed."""

import json
import math


def one_line(value):
    return json.dumps(value, ensure_ascii=False)


def _keys(entries, indent, written):
    return ",\n".join(f"{indent}{json.dumps(key)}: {written(key, value)}" for key, value in entries)


def _case(case):
    indent = "      "

    def written(key, value):
        if key == "args" and len(one_line(value)) > 100:
            inner = ",\n".join(indent + "  " + one_line(x) for x in value)
            return f"[\n{inner}\n{indent}]"
        if key == "expect":
            outputs = ",\n".join(
                indent + "    {" + (",\n" + indent + "     ").join(f"{json.dumps(k)}: {one_line(v)}" for k, v in o.items()) + "}"
                if o is not None else indent + "    null"
                for o in value["outputs"]
            )
            head = f'"reference": {one_line(value["reference"])}, ' if "reference" in value else ""
            return f'{{{head}"outputs": [\n{outputs}\n{indent}]}}'
        return one_line(value)

    return "    {\n" + _keys(case.items(), indent, written) + "\n    }"


def text(file):
    def written(key, value):
        if key == "cases":
            return "[\n" + ",\n".join(_case(c) for c in value) + "\n  ]"
        return one_line(value)

    return "{\n" + _keys(file.items(), "  ", written) + "\n}\n"
