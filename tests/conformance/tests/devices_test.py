"""Tests of the runner with a device that is not the CPU: one that refuses, one that is less exact, one whose results
are others where none is unique."""

import math
import os
import shlex
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from runner import cases, checks, engine, protocol, safetensors, testee, tolerances, unique  # noqa: E402
from runner.protocol import Request  # noqa: E402
from runner.tensor import Tensor  # noqa: E402

TOY = "%s %s" % (shlex.quote(sys.executable), shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "toy.py")))
TABLE = tolerances.load(os.path.join(cases.ROOT, "tolerances.json"))
DIAGONAL = {"composition": {"value": [1.3, -2.1], "baseline": [0.7, 0.1], "split": {"dims": [0]}}}
SQUARE = {"name": "square", "op": "toy::square", "args": [DIAGONAL], "laws": ["recovery"]}
AFFINE = {"name": "affine", "op": "toy::affine", "args": [DIAGONAL], "laws": ["recovery"]}


def family(*content):
    return cases.Family("/nowhere/x.json", {"family": "toy", "cases": list(content)})


class DeviceTest(unittest.TestCase):
    """The toy as a device, doctored, beside the toy as the CPU."""

    known = {}  # outcomes of runs so far

    def outcomes(self, *arguments, **named):
        """Outcomes by case and dtype; see `run_suite`."""
        key = repr((arguments, named))
        if key not in self.known:
            self.known[key] = self.run_suite(*arguments, **named)
        return self.known[key]

    @staticmethod
    def run_suite(doctor, *content, cpu=True):
        """`cpu`: whether there is one; or its doctor."""
        of_cpu = cpu if isinstance(cpu, str) else None
        running = [testee.Testee(TOY + (" --doctor " + doctor if doctor else ""), "cuda")]
        if cpu:
            running.append(testee.Testee(TOY + (" --doctor " + of_cpu if of_cpu else "")))
        try:
            run = engine.Engine(running[0], running[1] if cpu else None, TABLE, bits=False)
            found = list(run.run(engine.choose([family(*(content or (SQUARE, AFFINE)))], "all")))
        finally:
            for one in running:
                one.abandon()
        return {tuple(outcome.name.split(".")[2:5:2]): outcome for outcome in found}

    def failed(self, *arguments, **named):
        return sorted(key for key, outcome in self.outcomes(*arguments, **named).items() if outcome.failed)

    def skipped(self, *arguments, **named):
        found = self.outcomes(*arguments, **named).items()
        return sorted((key, outcome.skipped) for key, outcome in found if outcome.skipped)

    def test_honest(self):
        self.assertEqual(self.failed(None), [])
        self.assertEqual(self.skipped(None), [])

    def test_the_testee_is_told_to_compute_in_full_precision(self):
        self.assertEqual(self.failed("wants_full_precision"), [])

    # ---- an operator without a kernel

    def test_what_libtorch_refuses_is_skipped(self):
        words = "LibTorch refuses: Could not run 'toy::square' with arguments from the 'CUDA' backend"
        for cpu in (True, False):
            self.assertEqual(self.failed("no_kernel", cpu=cpu), [])
            found = self.skipped("no_kernel", cpu=cpu)
            self.assertEqual(found, [(("square", "f32"), words), (("square", "f64"), words)])

    def test_what_libtorch_refuses_within_a_rule_is_a_failure(self):
        for cpu in (True, False):
            self.assertEqual(self.failed("no_kernel_inside", cpu=cpu), [("square", "f32"), ("square", "f64")])
            self.assertEqual(self.skipped("no_kernel_inside", cpu=cpu), [])

    def test_a_type_that_the_cpu_takes_too(self):
        words = "LibTorch refuses: \"square_cuda\" not implemented for 'Float'"
        self.assertEqual(self.skipped("no_kernel_of_float32"), [(("square", "f32"), words)])
        self.assertEqual(self.failed("no_kernel_of_float32", cpu="no_kernel_of_float32"), [("square", "f32")])
        self.assertEqual(self.failed("no_kernel_of_float32", cpu=False), [("square", "f32")])

    # ---- a context that is lost

    def test_a_lost_context_is_a_failure_where_the_cpu_computes(self):
        outcome = self.outcomes("loses_context")["square", "f64"]
        self.assertEqual(outcome.failures[0][0], "crash")
        self.assertIn("lost the context of its device: CUDA error: device-side assert triggered", outcome.failures[0][1])
        self.assertEqual(self.failed("loses_context"), [("square", "f32"), ("square", "f64")])

    def test_a_lost_context_is_the_refusal_that_the_cpu_gives(self):
        refused = dict(SQUARE, args=[DIAGONAL, 1])
        expected = {key: value for key, value in refused.items() if key != "laws"}
        self.assertEqual(self.failed("loses_context", dict(expected, error="INVALID_ARGUMENT"), AFFINE), [])
        for outcome in self.outcomes("loses_context", refused).values():
            self.assertEqual(outcome.failures, [("error", "INVALID_ARGUMENT: one argument, please")])

    # ---- a kernel that is less exact

    def test_what_the_kernel_is_off_is_allowed(self):
        self.assertEqual(self.failed("single_precision"), [])
        self.assertEqual(self.failed("coarse_float32"), [])

    def test_what_is_beyond_the_kernel_fails(self):
        self.assertEqual(self.failed("single_precision_and_more"), [("square", "f32"), ("square", "f64")])
        kind, message = self.outcomes("single_precision_and_more")["square", "f64"].failures[0]
        self.assertEqual(kind, "number")
        self.assertRegex(message, r"the kernel itself is off by \S+e-0[89], that of the CPU by 0")
        # Parts that are off while the kernel is exact.
        self.assertEqual(len(self.failed("component_off")), 4)

    def test_a_kernel_may_not_be_anything(self):
        self.assertEqual(self.failed("half_precision"), [("square", "f32"), ("square", "f64")])
        messages = [message for _, message in self.outcomes("half_precision")["square", "f64"].failures]
        self.assertTrue(all("more than a kernel may be" in message for message in messages), messages)

    def test_the_device_may_be_nearer_than_the_cpu(self):
        self.assertEqual(self.failed(None, cpu="coarse_float32"), [])
        self.assertEqual(self.failed("component_off", SQUARE, cpu="coarse_float32"), [("square", "f32"), ("square", "f64")])

    def test_float64_of_a_request(self):
        tensors = {"t0": Tensor("f32", (1,), [0.1]), "t1": Tensor("i64", (1,), [3]), "t2": Tensor("c64", (1,), [1.0, 2.0])}
        arguments = protocol.lines([("tensor", "", "t0"), ("dtype", "", "float32"), ("dtype", "", "int64")])
        wide = Request("call", {"args": arguments}, tensors).in_float64("f32")
        self.assertEqual([wide.tensors[name].dtype for name in ("t0", "t1", "t2")], ["f64", "i64", "f64"])
        self.assertEqual(wide.tensors["t0"].numbers[0], Tensor("f32", (1,), [0.1]).numbers[0])
        self.assertEqual(wide.entries["args"], arguments.replace("float32", "float64"))
        self.assertEqual(wide.entries["complex"], "t2")
        model = Request("run", {"model_dtype": "float32"}, {}).in_float64("f32")
        self.assertEqual(model.entries["model_dtype"], "float64")
        same = Request("run", {"model_dtype": "float64"}, {"x": Tensor("f64", (1,), [0.1])})
        self.assertEqual(same.in_float64("f64").key, same.key)

    # ---- numbers that are drawn, or only rounded otherwise

    def test_unrepeatable_numbers(self):
        drawn = dict(SQUARE, repeatable=False, laws=["shape_preserved"])
        self.assertEqual(self.failed("component_off", drawn), [])
        self.assertEqual(len(self.failed("other_shape", drawn)), 2)
        rounded = dict(SQUARE, repeatable=False)
        self.assertEqual(self.failed("component_one_bit_off", rounded), [])
        self.assertEqual(len(self.failed("component_off", rounded)), 2)

    # ---- kernels that sum in another order each time

    def test_what_differs_in_its_last_bits_from_time_to_time(self):
        again = dict(SQUARE, laws=["deterministic", "context_isolated", "thread"])
        for doctor in ("drifting", "one_thread_off"):
            self.assertEqual(self.failed(doctor, again, cpu=False), [], doctor)
        self.assertEqual(self.failed("drifting_far", again, cpu=False), [("square", "f32"), ("square", "f64")])
        for check in ("deterministic", "context_isolated", "thread"):
            failed = self.failed("drifting_far", dict(SQUARE, laws=[check]), cpu=False)
            self.assertEqual(failed, [("square", "f32"), ("square", "f64")], check)
        limited = {"name": "linear", "model": "toy.pt", "laws": ["memory_limit"], "inputs": [DIAGONAL["composition"]]}
        self.assertEqual(self.failed("limit_off", limited, cpu=False), [])
        self.assertEqual(len(self.failed("limit_far_off", limited, cpu=False)), 2)

    def test_the_cpu_repeats_its_bits(self):
        again = dict(SQUARE, laws=["deterministic"])
        running = testee.Testee(TOY + " --doctor drifting")
        try:
            found = list(engine.Engine(running, None, TABLE).run(engine.choose([family(again)], "all")))
        finally:
            running.abandon()
        self.assertTrue(any(outcome.failed for outcome in found))


def answer(*results):
    """An answer of tensors, and of compositions by their parts."""
    entries, tensors = [], {}
    for index, result in enumerate(results):
        key = "r%d" % index
        if isinstance(result, dict):
            entries.append(("composition", "", key))
            tensors.update(("%s.%s" % (key, part), tensor) for part, tensor in result.items())
        else:
            entries.append(("tensor", "", key))
            tensors[key] = result
    wire = {name: tensor.on_the_wire() for name, tensor in tensors.items()}
    named = [name for name, tensor in tensors.items() if tensor.dtype.startswith("c")]
    metadata = {"code": "OK", "results": protocol.lines(entries), "complex": protocol.lines(named)}
    return protocol.Answer(safetensors.encode(wire, metadata))


def f64(shape, *numbers):
    return Tensor("f64", shape, numbers)


def i64(shape, *numbers):
    return Tensor("i64", shape, numbers)


def still(value):
    """A composition of one component, which is half of the value."""
    half = value.like([x / 2 for x in value.numbers])
    zero = value.like([0.0] * len(value.numbers))
    rows = Tensor(value.dtype, (1,) + value.shape, half.numbers)
    return {"components": rows, "reference": half, "leftover": zero, "value": value}


def turned(tensor, *signs):
    """A matrix whose columns have other signs."""
    return tensor.like([x * signs[index % tensor.shape[-1]] for index, x in enumerate(tensor.numbers)])


C, S = math.cos(0.3), math.sin(0.3)
TURN = f64((2, 2), C, -S, S, C)
UNIT = f64((2, 2), 1, 0, 0, 1)
MIRROR = f64((2, 2), 0, 1, 1, 0)


class UniqueTest(unittest.TestCase):
    """Two answers to one request."""

    def differ(self, op, got, expected, args=(), tensors=(), entries=()):
        (variant,) = [v for v in family({"name": "a", "op": op, "args": []}).variants() if v.dtype == "f64"]
        judge = checks.Judge(variant, "devices", TABLE)
        request = Request("call", dict(entries, op=op, args=protocol.lines(args)), tensors)
        unique.close_results(judge, request, answer(*got), answer(*expected))
        return [message for _, message in judge.failures]

    def test_other_operators_are_compared_by_numbers(self):
        for op in ("aten::relu", "aten::max.other"):
            one, other = still(f64((2,), 1.0, 2.0)), still(f64((2,), 1.0, 2.5))
            self.assertEqual(self.differ(op, [one], [one]), [])
            self.assertEqual(len(self.differ(op, [other], [one])), 3)
            self.assertEqual(len(self.differ(op, [], [one])), 1)
            self.assertEqual(len(self.differ(op, [one["value"]], [one])), 1)

    def test_singular_vectors(self):
        values = f64((2,), 3.0, 1.0)
        for make in (lambda tensor: tensor, still):
            expected = [make(TURN), make(values), make(UNIT)]

            def differ(u, s, vh):
                return self.differ("aten::_linalg_svd", [make(u), make(s), make(vh)], expected)

            self.assertEqual(differ(TURN, values, UNIT), [])
            self.assertEqual(differ(turned(TURN, -1, 1), values, turned(UNIT, -1, 1)), [])
            # One side alone, another matrix, vectors that are none, other values.
            self.assertTrue(differ(turned(TURN, -1, 1), values, UNIT))
            self.assertTrue(differ(UNIT, values, UNIT))
            self.assertTrue(differ(turned(TURN, 2, 1), values, turned(UNIT, 0.5, 1)))
            self.assertTrue(differ(TURN, f64((2,), 3.0, 1.001), UNIT))

    def test_vectors_of_equal_values(self):
        values = f64((2,), 2.0, 2.0)
        back = f64((2, 2), C, S, -S, C)
        self.assertEqual(self.differ("aten::_linalg_svd", [TURN, values, back], [UNIT, values, UNIT]), [])
        self.assertEqual(self.differ("aten::_linalg_eigh", [values, TURN], [values, UNIT]), [])
        self.assertTrue(self.differ("aten::_linalg_eigh", [f64((2,), 2.0, 2.1), TURN], [f64((2,), 2.0, 2.1), UNIT]))

    def test_vectors_beyond_the_values(self):
        # All three left vectors of a tall matrix; the last has no value.
        unit = f64((3, 3), 1, 0, 0, 0, 1, 0, 0, 0, 1)
        values = f64((2,), 3.0, 1.0)
        self.assertEqual(
            self.differ("aten::_linalg_svd", [turned(unit, 1, 1, -1), values, UNIT], [unit, values, UNIT]), [])

    def test_phases(self):
        values = f64((1,), 2.0)
        one, other = Tensor("c128", (1, 1), [1.0, 0.0]), Tensor("c128", (1, 1), [0.6, 0.8])
        self.assertEqual(self.differ("aten::_linalg_eigh", [values, other], [values, one]), [])
        self.assertTrue(self.differ("aten::_linalg_eigh", [values, Tensor("c128", (1, 1), [0.6, 0.9])], [values, one]))

    def test_batches_and_empty_vectors(self):
        values = f64((2, 1), 2.0, 3.0)
        one, other = f64((2, 1, 1), 1.0, 1.0), f64((2, 1, 1), 1.0, -1.0)
        self.assertEqual(self.differ("aten::_linalg_eigh", [values, other], [values, one]), [])
        self.assertTrue(self.differ("aten::_linalg_eigh", [values, f64((2, 1, 1), 1.0, 2.0)], [values, one]))
        self.assertEqual(self.differ("aten::_linalg_eigh", [values, f64((0,))], [values, f64((0,))]), [])
        self.assertTrue(self.differ("aten::_linalg_eigh", [f64((2, 1), 2.0, 4.0), f64((0,))], [values, f64((0,))]))

    def test_signs_of_qr(self):
        r = f64((2, 2), 1.0, 2.0, 0.0, 3.0)
        turned_r = f64((2, 2), -1.0, -2.0, 0.0, 3.0)
        self.assertEqual(self.differ("aten::linalg_qr", [turned(TURN, -1, 1), turned_r], [TURN, r]), [])
        self.assertTrue(self.differ("aten::linalg_qr", [TURN, turned_r], [TURN, r]))
        self.assertTrue(self.differ("aten::linalg_qr", [UNIT, f64((2, 2), 0, 3, 1, 2)], [MIRROR, f64((2, 2), 1, 2, 0, 3)]))
        empty = f64((0,))
        self.assertEqual(self.differ("aten::linalg_qr", [empty, turned_r], [empty, r]), [])
        self.assertTrue(self.differ("aten::linalg_qr", [empty, f64((2, 2), 1.0, 2.0, 0.0, 3.1)], [empty, r]))

    def test_factors_recover_their_values(self):
        values = f64((1,), 2.0)
        one, broken = still(f64((1, 1), 1.0)), still(f64((1, 1), 1.0))
        self.assertEqual(self.differ("aten::_linalg_eigh", [still(values), one], [still(values), one]), [])
        broken["components"] = f64((1, 1, 1), 0.6)
        self.assertIn("recovery", self.differ("aten::_linalg_eigh", [still(values), broken], [still(values), one])[0])

    def chosen(self, op, got, expected, source, *arguments):
        args = [("tensor", "", "t0")] + [("i64", "", str(argument)) for argument in arguments]
        return self.differ(op, got, expected, args, {"t0": source})

    def test_places_of_equal_elements(self):
        source = f64((2, 3), 1.0, 1.0, 0.5, 2.0, 3.0, 3.0)
        ordered = f64((2, 3), 0.5, 1.0, 1.0, 2.0, 3.0, 3.0)
        expected = [ordered, i64((2, 3), 2, 0, 1, 0, 1, 2)]
        self.assertEqual(self.chosen("aten::sort", [ordered, i64((2, 3), 2, 1, 0, 0, 2, 1)], expected, source), [])
        self.assertTrue(self.chosen("aten::sort", [ordered, i64((2, 3), 0, 2, 1, 0, 1, 2)], expected, source))
        self.assertTrue(self.chosen("aten::sort", [ordered, i64((2, 3), 3, 0, 1, 0, 1, 2)], expected, source))
        self.assertTrue(self.chosen("aten::sort", [ordered, i64((3, 2), 2, 0, 1, 0, 1, 2)], expected, source))

    def test_places_along_a_dimension_that_is_given_or_gone(self):
        source = f64((2, 3), 1.0, 1.0, 0.5, 1.0, 3.0, 0.5)
        largest = f64((3,), 1.0, 3.0, 0.5)
        expected = [largest, i64((3,), 0, 1, 0)]
        for op, arguments in (("aten::max.dim", [0]), ("aten::max.dim", [-2]), ("aten::topk", [1, 0])):
            self.assertEqual(self.chosen(op, [largest, i64((3,), 1, 1, 1)], expected, source, *arguments), [], op)
            self.assertTrue(self.chosen(op, [largest, i64((3,), 0, 0, 0)], expected, source, *arguments), op)
        named = [("tensor", "", "t0"), ("bool", "stable", "1"), ("i64", "dim", "0")]
        ordered, first, second = f64((2, 1), 1.0, 1.0), i64((2, 1), 0, 1), i64((2, 1), 1, 0)
        twice = {"t0": f64((2, 1), 1.0, 1.0)}
        self.assertEqual(self.differ("aten::sort.stable", [ordered, second], [ordered, first], named, twice), [])
        self.assertEqual(self.chosen("aten::argmax", [i64((), 3)], [i64((), 0)], f64((4,), 5.0, 1.0, 1.0, 5.0)), [])
        self.assertTrue(self.chosen("aten::argmax", [i64((), 2)], [i64((), 0)], f64((4,), 5.0, 1.0, 1.0, 5.0)))

    def test_places_within_a_plane(self):
        source = f64((2, 1, 4), 1.0, 1.0, 0.5, 2.0, 3.0, 0.0, 4.0, 4.0)
        pooled = f64((2, 1, 2), 1.0, 2.0, 3.0, 4.0)
        op, expected = "aten::max_pool2d_with_indices", [pooled, i64((2, 1, 2), 0, 3, 0, 2)]
        self.assertEqual(self.chosen(op, [pooled, i64((2, 1, 2), 1, 3, 0, 3)], expected, source), [])
        self.assertTrue(self.chosen(op, [pooled, i64((2, 1, 2), 1, 2, 0, 3)], expected, source))
        self.assertTrue(self.chosen(op, [pooled, i64((2, 1, 2), 1, 3, 4, 3)], expected, source))

    def test_components_of_equal_elements(self):
        def winner(*rows):
            reference, value = f64((2,), 0.0, 0.0), f64((2,), *(a + b for a, b in zip(*rows)))
            return {"components": f64((2, 2), *rows[0], *rows[1]), "reference": reference,
                    "leftover": f64((2,), 0.0, 0.0), "value": value}

        # The first result is one of two equal elements, the second is alone.
        expected, other = winner((2.0, 0.0), (0.0, 3.0)), winner((0.0, 0.0), (2.0, 3.0))
        parts = {"c0.components": f64((2, 2, 2), 2.0, 0.0, 0.0, 1.0, 0.0, 2.0, 3.0, 0.0)}
        args = [("composition", "", "c0"), ("i64", "", "1")]

        def differ(got):
            return self.differ("aten::max.dim", [got], [expected], args, parts, {"c0.make": "tensors"})

        self.assertEqual(differ(other), [])
        self.assertTrue(differ(winner((2.0, 3.0), (0.0, 0.0))))
        self.assertTrue(differ(dict(other, components=f64((2, 2), 0.5, 0.0, 2.0, 3.0))))

    def test_side_results(self):
        out, long, short = f64((2,), 1.0, 2.0), f64((2,), 3.0, 4.0), f64((0,))
        for op in ("aten::native_batch_norm", "aten::log_sigmoid_forward", "aten::linalg_lstsq"):
            self.assertEqual(self.differ(op, [out, short], [out, long]), [], op)
            self.assertTrue(self.differ(op, [out, f64((2,), 3.0, 5.0)], [out, long]), op)
            self.assertTrue(self.differ(op, [long, short], [out, long]), op)
        self.assertEqual(self.differ("aten::_embedding_bag", [out, i64((1,), 3)], [out, i64((1,), 4)]), [])
        self.assertTrue(self.differ("aten::_embedding_bag", [long, i64((1,), 3)], [out, i64((1,), 3)]))

    def test_threads_answer_one_behind_the_other(self):
        values, entries = f64((1,), 2.0), {"count": "2"}
        one, other = f64((1, 1), 1.0), f64((1, 1), -1.0)
        expected = [values, one] * 2
        self.assertEqual(self.differ("aten::symeig", [values, one, values, other], expected, entries=entries), [])
        wrong = [values, one, values, f64((1, 1), 0.5)]
        self.assertTrue(self.differ("aten::symeig", wrong, expected, entries=entries))

    def test_laws_judge_what_two_answers_cannot(self):
        self.assertTrue(unique.undetermined("aten::_linalg_svd"))
        self.assertTrue(unique.undetermined("aten::max.dim"))
        for op in ("aten::relu", "aten::max.other", "aten::native_batch_norm", ""):
            self.assertFalse(unique.undetermined(op))


if __name__ == "__main__":
    unittest.main()
