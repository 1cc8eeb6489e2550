"""Functions name their options, so that editors and type checkers know them: those of requests, of which there is a list, and
the choices of a policy."""

import importlib.util
import inspect
import os
import sys
import typing
import unittest
from unittest import mock

import addend
from addend import _context

sys.path.insert(0, "bindings/generate")
import request  # noqa: E402

LISTED = request.read("core/explain/request_options.txt")
# The functions of each call that the list speaks of; those of live models look at what it has for "live" too.
FUNCTIONS = {
    "decompose": [addend.Model.decompose, addend.Model.__call__],
    "attribute": [addend.Model.explain],
    "plan": [addend.Model.plan],
    "interactions": [addend.Model.interactions],
    "job": [addend.Job.plan],
    "record": [addend.Model.record],
    "trace": [addend.tracing],
}
LIVE = {
    "decompose": [addend.TracedModel.decompose, addend.TracedModel.__call__],
    "attribute": [addend.TracedModel.explain],
    "plan": [addend.TracedModel.plan],
    "interactions": [addend.TracedModel.interactions],
}
# Functions with the arguments of Captum, which ask for one target of each example.
LIKE_CAPTUM = [addend.attribute, addend.Model.attribute, addend.TracedModel.attribute]
NOT_LIKE_CAPTUM = ("every_target", "operators")
TYPES = {"flag": bool, "bytes": int, "text": typing.Optional[str], "Direction": str}
# Defaults of the list as Python has them.
DEFAULTS = {"false": False, "0": 0, "empty": None}


def named(function):
    """The parameters that a function has a name for."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}


def rest_of(function):
    """The parameter that takes all other keywords; None where there is none."""
    parameters = inspect.signature(function).parameters.values()
    return next((one for one in parameters if one.kind == one.VAR_KEYWORD), None)


def every_function():
    """Functions and methods that users see, with their names."""
    for name in addend.__all__ + ["compile"]:
        one = getattr(addend, name)
        if inspect.isclass(one):
            for own in vars(one):
                method = inspect.getattr_static(one, own)
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and (not own.startswith("_") or own == "__call__"):
                    yield "%s.%s" % (name, own), method
        elif inspect.isfunction(one):
            yield name, one


class SignaturesTest(unittest.TestCase):
    def expect(self, option, function):
        own = named(function).get(option.key)
        self.assertIsNotNone(own, "%s has no parameter %s" % (function.__qualname__, option.key))
        self.assertEqual(typing.get_type_hints(function)[option.key], TYPES[option.type], function.__qualname__)
        if function in LIKE_CAPTUM and option.key == "each_example":
            self.assertIs(own.default, True)
        elif repr(own.default) != "UNSET":
            self.assertEqual(own.default, DEFAULTS.get(option.default, option.default), function.__qualname__)

    def test_options_of_requests_are_parameters(self):
        count = 0
        for option in LISTED:
            if option.names.get("Python") == "-":
                continue
            functions = [one for call in option.calls for one in FUNCTIONS.get(call, [])]
            if "live" in option.calls:
                functions += [one for call in option.calls for one in LIVE.get(call, [])]
            if "attribute" in option.calls and option.key not in NOT_LIKE_CAPTUM:
                functions += LIKE_CAPTUM if "live" in option.calls else LIKE_CAPTUM[:2]
            self.assertTrue(functions, option.key)
            for function in functions:
                with self.subTest(option.key, function=function.__qualname__):
                    self.expect(option, function)
                    count += 1
        self.assertGreater(count, 40)
        asked = {call for option in LISTED for call in option.calls}
        self.assertEqual(asked - {"live", "trace_attribute"}, set(FUNCTIONS))

    def test_what_compile_takes_is_what_calls_take(self):
        model = addend.compile(lambda x: x)
        for function in (model.decompose, model.__call__, model.explain, model.plan, model.interactions, model.shapley):
            choices = {name for name, one in named(function).items() if repr(one.default) == "UNSET"}
            self.assertTrue(choices, function)
            self.assertEqual(choices - set(named(addend.compile)), set(), function)
        self.assertEqual(set(named(addend.compile)) - {"model"}, set(named(model.decompose)))

    def test_what_has_no_name_is_a_choice_of_a_policy_or_the_models(self):
        functions = [*every_function(), ("lm.attribute", addend.lm.attribute), ("dask.attribute", addend.dask.attribute)]
        seen = set()
        for name, function in functions:
            rest = rest_of(function)
            if rest is None:
                continue
            with self.subTest(name):
                if rest.name == "policy":
                    seen.add(name)
                    kind = typing.get_type_hints(function)["policy"]
                    self.assertIn(_context.PolicyChoices, (kind, *typing.get_args(kind)))
                else:  # keywords of a model, or of an operator of PyTorch
                    self.assertIn(rest.name, ("kwargs", "named"))
        self.assertLessEqual(
            {"attribute", "compile", "tracing", "using", "lm.attribute", "dask.attribute", "Model.__call__", "Job.plan"}, seen
        )

    def test_choices_of_a_policy_are_those_of_a_context(self):
        self.assertEqual(list(_context.PolicyChoices.__annotations__), list(named(addend.Context)))
        self.assertEqual(set(_context.PolicyChoices.__annotations__), set(_context.CHOICES))
        hints = typing.get_type_hints(addend.Context.__init__)
        self.assertEqual(typing.get_type_hints(_context.PolicyChoices), {name: hints[name] for name in _context.CHOICES})

    def test_python_before_3_11_knows_no_unpack(self):
        path = os.path.join(os.path.dirname(addend.__file__), "_unpack.py")
        spec = importlib.util.spec_from_file_location("unpack_before", path)
        before = importlib.util.module_from_spec(spec)
        bare = {name: value for name, value in vars(typing).items() if name != "Unpack"}
        older = type(typing)("typing")
        older.__dict__.update(bare)
        with mock.patch.dict(sys.modules, {"typing": older}):
            spec.loader.exec_module(before)

        def function(**policy: before.Unpack[_context.PolicyChoices]):
            return policy

        self.assertIs(typing.get_type_hints(function)["policy"], _context.PolicyChoices)

    def test_a_choice_that_is_made_wins(self):
        def model(x, memory=None):
            return x * (3.0 if memory is None else memory)

        traced = addend.compile(model, outputs="output")
        given = addend.Input([[1.0, 2.0]], dims=1)
        # The model has an argument of that name, so that it is the model's.
        self.assertEqual(traced(given, memory=2.0).value.tolist(), [[2.0, 4.0]])
        self.assertEqual(traced(given).value.tolist(), [[3.0, 6.0]])
        self.assertEqual(traced.decompose(given, memory=0.5).output.value.tolist(), [[0.5, 1.0]])
        with self.assertRaisesRegex(ValueError, "outputs is empty"):
            traced(given, outputs=[])
        with self.assertRaisesRegex(ValueError, "Shapley values are those of the first output"):
            addend.compile(lambda x: x, outputs="output").shapley(given)
        again = addend.compile(addend.compile(lambda x: x * 1.0, outputs="output.7"), outputs=None)
        self.assertEqual(again(given).value.tolist(), [[1.0, 2.0]])

    def test_a_wrong_word_is_told_where_it_is_said(self):
        with self.assertRaisesRegex(ValueError, "preset"):
            addend.compile(lambda x: x, preset="no such preset")
        with self.assertRaisesRegex(TypeError, r"attribute\(\) has no option colour"):
            addend.attribute(lambda x: x, [[1.0]], colour="red")
        with self.assertRaisesRegex(TypeError, r"attribute\(\) got an unexpected keyword argument 'keep_references'|"
                                               r"attribute\(\) has no option keep_references"):
            addend.attribute(lambda x: x, [[1.0]], keep_references=True)


if __name__ == "__main__":
    unittest.main()
