"""Tables as inputs: frames of pandas, Arrow tables, records of NumPy; names of columns, and what is no number."""

import ctypes
import math
import random
import struct
import sys
import unittest
import warnings

import addend
import numpy
import torch

try:
    import pandas
except ImportError:
    pandas = None
try:
    import pyarrow
except ImportError:
    pyarrow = None


class Weighted(torch.nn.Module):
    """A model in which a column contributes its weight times its number."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.arange(1.0, width + 1)

    def forward(self, x):
        return (x * self.weight).sum(1)


def contributions(table, **options):
    """{name: contribution} for the first row, and the explanation."""
    source = addend.Input(table, dims=1, **options)
    model = addend.compile(Weighted(source.value.shape[1]))
    explanation = model.decompose(source).explain("0")
    return {one.name: one.value for one in explanation.top(source.value.shape[1])}, explanation


# ---- Arrow data made by hand, with the structs as the specification has them


class Schema(ctypes.Structure):
    pass


class Data(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_DATA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Data))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)), ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p)]
Data._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Data))), ("dictionary", ctypes.POINTER(Data)), ("release", RELEASE_DATA),
    ("private_data", ctypes.c_void_p)]
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Data))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))
MESSAGE = ctypes.create_string_buffer(b"the disk is on fire")
Stream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", LAST_ERROR), ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p)]

PyCapsule_New = ctypes.pythonapi.PyCapsule_New
PyCapsule_New.restype = ctypes.py_object
PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

CODES = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q", "e": "e", "f": "f", "g": "d"}


def bitmap(flags):
    data = bytearray((len(flags) + 7) // 8)
    for k, flag in enumerate(flags):
        data[k // 8] |= bool(flag) << (k % 8)
    return bytes(data)


class ArrowTable:
    """columns: [(name, format, values)] in batches of some rows; None is null. `skip` rows lie before each batch, half of
    them by the offset of the columns, half by that of the batch."""

    def __init__(self, columns, batch=3, skip=0, error=0, whole=None):
        self.columns, self.batch, self.skip, self.error, self.whole = columns, batch, skip, error, whole
        self.kept = []
        self.open = 0  # structs that are not released yet
        self.streams = []

    def _schema(self, to, form, name, children):
        array = (ctypes.POINTER(Schema) * len(children))(*[ctypes.pointer(child) for child in children])
        self.kept.append((array, children))
        to.format, to.name, to.n_children, to.children = form, name, len(children), array

        def release(pointer):
            self.open -= 1
            ctypes.cast(ctypes.byref(pointer.contents, Schema.release.offset), ctypes.POINTER(ctypes.c_void_p))[0] = None

        to.release = RELEASE_SCHEMA(release)
        self.kept.append(to.release)

    def fill_schema(self, to):
        self.open += 1
        children = []
        for name, form, _ in self.columns:
            child = Schema()
            if form == "dictionary":
                child.dictionary = ctypes.pointer(Schema())
                form = "i"
            child.format, child.name = form.encode(), name.encode("utf-8")
            children.append(child)
        self._schema(to, b"+s" if len(self.columns) != 1 or self.columns[0][0] else self.columns[0][1].encode(), b"", children)

    def fill_batch(self, to, begin, end):
        self.open += 1
        own, all_rows = self.skip - self.skip // 2, self.skip // 2
        children = []
        for _, form, values in self.columns:
            values = values[begin:end]
            padded = [1] * self.skip + list(values)
            valid = ctypes.create_string_buffer(bitmap([value is not None for value in padded]))
            filled = [0 if value is None else value for value in padded]
            if form == "b":
                data = ctypes.create_string_buffer(bitmap(filled))
            elif form in CODES:
                data = ctypes.create_string_buffer(struct.pack("=%d%s" % (len(filled), CODES[form]), *filled))
            else:
                data = ctypes.create_string_buffer(b"")
            nulls = sum(value is None for value in values)
            buffers = (ctypes.c_void_p * 2)(ctypes.addressof(valid) if nulls else None, ctypes.addressof(data))
            child = Data(length=end - begin + all_rows, null_count=-1 if nulls else 0, offset=own, n_buffers=2, buffers=buffers)
            self.kept.append((valid, data, buffers))
            children.append(child)
        array = (ctypes.POINTER(Data) * len(children))(*[ctypes.pointer(child) for child in children])
        valid = ctypes.create_string_buffer(bitmap([True] * all_rows + (self.whole or [True] * (end - begin))[:end - begin]))
        buffers = (ctypes.c_void_p * 1)(ctypes.addressof(valid) if self.whole else None)
        to.length, to.null_count, to.offset, to.n_buffers, to.n_children = end - begin, 0, all_rows, 1, len(children)
        to.buffers, to.children = buffers, array

        def release(pointer):
            self.open -= 1
            ctypes.cast(ctypes.byref(pointer.contents, Data.release.offset), ctypes.POINTER(ctypes.c_void_p))[0] = None

        to.release = RELEASE_DATA(release)
        self.kept.append((to.release, array, children, buffers, valid))

    def rows(self):
        return len(self.columns[0][2])


class ArrowStream(ArrowTable):
    def __arrow_c_stream__(self, requested_schema=None):
        at = [0]

        def get_schema(_, to):
            self.fill_schema(to.contents)
            return 0

        def get_next(_, to):
            if self.error:
                return self.error
            if at[0] >= self.rows():
                to.contents.release = RELEASE_DATA()
                return 0
            end = min(self.rows(), at[0] + self.batch)
            self.fill_batch(to.contents, at[0], end)
            at[0] = end
            return 0

        stream = Stream(GET_SCHEMA(get_schema), GET_NEXT(get_next), LAST_ERROR(lambda _: ctypes.addressof(MESSAGE)),
                        RELEASE_STREAM(lambda _: None), None)
        self.streams.append(stream)
        return PyCapsule_New(ctypes.addressof(stream), b"arrow_array_stream", None)


class ArrowBatch(ArrowTable):
    def __arrow_c_array__(self, requested_schema=None):
        schema, data = Schema(), Data()
        self.fill_schema(schema)
        self.fill_batch(data, 0, self.rows())
        self.streams.append((schema, data))
        return (PyCapsule_New(ctypes.addressof(schema), b"arrow_schema", None),
                PyCapsule_New(ctypes.addressof(data), b"arrow_array", None))


class ArrowTest(unittest.TestCase):
    COLUMNS = [
        ("int8", "c", [-128, 127, 0, 1, 2, 3, 4]), ("uint8", "C", [255, 0, 1, 2, 3, 4, 5]),
        ("int16", "s", [-30000, 30000, 1, 2, 3, 4, 5]), ("uint16", "S", [65535, 0, 1, 2, 3, 4, 5]),
        ("int32", "i", [-70000, 70000, 1, 2, 3, 4, 5]), ("uint32", "I", [4000000000, 0, 1, 2, 3, 4, 5]),
        ("int64", "l", [-2**40, 2**40, 1, 2, 3, 4, 5]), ("uint64", "L", [2**63, 0, 1, 2, 3, 4, 5]),
        ("half", "e", [0.5, -0.25, 1, 2, 3, 4, 5]), ("Gr\u00f6\u00dfe, single", "f", [1.5, -2.5, 1e30, 2, 3, 4, 5]),
        ("double", "g", [0.1, -2.5, 1e-30, 2, 3, 4, 5]), ("bool", "b", [True, False, True, True, False, False, True]),
    ]

    def expected(self):
        return numpy.array([values for _, _, values in self.COLUMNS], dtype=object).T.astype(numpy.float64).astype(numpy.float32)

    def test_every_kind_of_number(self):
        for kind in (ArrowStream, ArrowBatch):
            for batch in (1, 2, 3, 7, 100):
                for skip in (0, 1, 2, 3, 9, 16):
                    table = kind(self.COLUMNS, batch, skip)
                    source = addend.Input(table, dims=1)
                    self.assertEqual(source.names, tuple(name for name, _, _ in self.COLUMNS))
                    self.assertEqual(source.value.dtype, "float32")
                    numpy.testing.assert_array_equal(source.value.numpy(), self.expected())
                    if kind is ArrowStream:
                        self.assertEqual(table.open, 0, "what the stream gave is released")

    def test_names_are_those_of_the_components(self):
        found, explanation = contributions(ArrowStream([("age", "i", [41, 7]), ("income", "g", [2.5, 1])]))
        self.assertEqual(found, {"age": 41, "income": 5})
        self.assertEqual(explanation.value, 46)

    def test_nulls_are_refused(self):
        for kind in (ArrowStream, ArrowBatch):
            for skip in (0, 5):
                for form, values in (("g", [1, 2, 3, 4, None]), ("i", [1, 2, 3, 4, None]), ("b", [1, 0, 1, 0, None]),
                                     ("f", [1, 2, 3, 4, math.nan])):
                    table = kind([("a", "g", [0] * 5), ("b c", form, values)], 2, skip)
                    with self.assertRaisesRegex(ValueError, r'column "b c" has no value in row 4 \(counted from 0\)'):
                        addend.Input(table, dims=1)
        with self.assertRaisesRegex(ValueError, 'column "a" has no value in row 1'):
            addend.Input(ArrowBatch([("a", "g", [1, 2]), ("b", "g", [1, 2])], whole=[True, False]), dims=1)

    def test_what_is_no_number_is_refused(self):
        for form, said in (("u", "texts"), ("U", "texts"), ("z", "bytes"), ("tdD", "dates or times"), ("d:10,2", "decimals"),
                           ("dictionary", "categories"), ("+l", r"Arrow's \+l"), ("n", "Arrow's n")):
            table = ArrowStream([("a", "g", [0.0]), ("colour", form, [0])])
            with self.assertRaisesRegex(TypeError, 'column "colour" holds no numbers but %s' % said):
                addend.Input(table, dims=1)
            self.assertEqual(table.open, 0)
        with self.assertRaisesRegex(ValueError, 'column "b" has 1e\\+300 in row 0'):
            addend.Input(ArrowStream([("a", "g", [0.0]), ("b", "g", [1e300])]), dims=1)
        with self.assertRaisesRegex(ValueError, 'two columns are called "a"'):
            addend.Input(ArrowStream([("a", "g", [0.0]), ("a", "g", [1.0])]), dims=1)

    def test_errors_of_the_stream_are_told(self):
        with self.assertRaisesRegex(ValueError, r"the Arrow stream failed \(5\): the disk is on fire"):
            addend.Input(ArrowStream([("a", "g", [0.0]), ("b", "g", [0.0])], error=5), dims=1)

    def test_empty_tables(self):
        source = addend.Input(ArrowStream([("a", "g", []), ("b", "i", [])]), dims=1)
        self.assertEqual((source.value.shape, source.names), ((0, 2), ("a", "b")))

    @unittest.skipIf(pyarrow is None, "pyarrow is not installed")
    def test_pyarrow(self):
        table = pyarrow.table({"age": [41, 7], "income": [2.5, 1.0], "member": [True, False]})
        found, _ = contributions(table)
        self.assertEqual(found, {"age": 41, "income": 5, "member": 3})
        self.assertEqual(contributions(table.slice(1).to_batches()[0])[0], {"age": 7, "income": 2, "member": 0})
        with self.assertRaisesRegex(ValueError, 'column "age" has no value in row 1'):
            addend.Input(pyarrow.table({"age": [41, None]}), dims=1)
        with self.assertRaisesRegex(TypeError, 'column "name" holds no numbers but texts'):
            addend.Input(pyarrow.table({"name": ["x"]}), dims=1)


class RecordsTest(unittest.TestCase):
    def test_records(self):
        records = numpy.array([(41, 2.5, True), (7, 1, False)], dtype=[("age", "i4"), ("income", "f8"), ("member", "?")])
        for table in (records, records.view(numpy.recarray), records[:1], records[0:1][::-1]):
            found, explanation = contributions(table)
            self.assertEqual(found, {"age": 41, "income": 5, "member": 3})
        self.assertEqual(contributions(records[::-1])[0], {"age": 7, "income": 2, "member": 0})
        packed = numpy.array([(1, 2.5)], dtype=numpy.dtype([("a", ">i2"), ("b", "<f4")], align=False))
        self.assertEqual(contributions(packed)[0], {"a": 1, "b": 5})

    def test_what_is_no_number_is_refused(self):
        for kind, value in (("U5", "red"), ("S5", b"red"), ("O", None), ("M8[s]", 0), ("c8", 1j), ("2f4", [1, 2])):
            records = numpy.array([(1.0, value)], dtype=[("a", "f4"), ("b", kind)] if kind != "2f4" else [("a", "f4"), ("b", "f4", 2)])
            with self.assertRaisesRegex(TypeError, 'column "b" holds no numbers but'):
                addend.Input(records, dims=1)
        records = numpy.array([(1.0,), (math.nan,)], dtype=[("a", "f4")])
        with self.assertRaisesRegex(ValueError, 'column "a" has no value in row 1'):
            addend.Input(records, dims=1)
        masked = numpy.ma.array(numpy.array([(1.0,), (2.0,)], dtype=[("a", "f4")]), mask=[(False,), (True,)])
        with self.assertRaisesRegex(ValueError, 'column "a" has no value in row 1'):
            addend.Input(masked, dims=1)
        with self.assertRaisesRegex(ValueError, "records are a table if they have one dimension, these have 2"):
            addend.Input(numpy.zeros((2, 2), dtype=[("a", "f4")]), dims=1)

    def test_baselines(self):
        records = numpy.array([(41, 2.5)], dtype=[("age", "f4"), ("income", "f4")])
        found, explanation = contributions(records, baseline=numpy.array([(1, 0.5)], dtype=records.dtype))
        self.assertEqual((found, explanation.reference), ({"age": 40, "income": 4}, 2))
        for baseline in ([1.0, 0.5], numpy.array([1, 0.5]), [[1.0, 0.5]], torch.tensor([1, 0.5], dtype=torch.float64)):
            self.assertEqual(contributions(records, baseline=baseline)[0], found)
        self.assertEqual(contributions(records, baseline=[1, 2])[0], {"age": 40, "income": 1})
        self.assertEqual(contributions(records, baseline=1)[0], {"age": 40, "income": 3})
        with self.assertRaisesRegex(ValueError, "the columns of the baseline are income, age, those of the input age, income"):
            addend.Input(records, dims=1, baseline=numpy.array([(1, 2)], dtype=[("income", "f4"), ("age", "f4")]))

    def test_names_that_are_given(self):
        records = numpy.array([(41, 2.5)], dtype=[("age", "f4"), ("income", "f4")])
        self.assertEqual(contributions(records, names=["x", "y"])[0], {"x": 41, "y": 5})
        self.assertEqual(addend.Input(records, dims=-1).names, ("age", "income"))
        self.assertEqual(addend.Input(records).names, ())
        self.assertEqual(addend.Input(records, dims=0).names, ())
        self.assertEqual(addend.Input(records, labels=[[0, 0]]).names, ())

    def test_a_table_is_an_argument_as_a_tensor_is(self):
        records = numpy.array([(41, 2.5), (7, 1)], dtype=[("age", "f4"), ("income", "f4")])
        model = addend.compile(Weighted(2))
        numpy.testing.assert_array_equal(numpy.asarray(model.attribute(records)), [[41, 5], [7, 2]])


@unittest.skipIf(pandas is None, "pandas is not installed")
class PrecisionTest(unittest.TestCase):
    """Inputs are of single precision, which does not hold every whole number."""

    def warnings_of(self, records):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            addend.Input(records, dims=1)
        self.assertTrue(all(issubclass(one.category, addend.AddendWarning) for one in caught), caught)
        return [str(one.message) for one in caught]

    def test_other_numbers_are_told(self):
        kinds = [("id", "i8"), ("small", "f8"), ("flag", "?"), ("large", "u8"), ("share", "f8")]
        rows = [(2**24, 0.0, True, 2**62, 0.1), (2**24 + 1, 1e-60, False, 2**62 + 1, 1e30), (-(2**24) - 1, 1.0, True, 0, 16777217.5)]
        self.assertEqual(self.warnings_of(numpy.array(rows, dtype=kinds)), [
            'column "id" is 16777217, of which float32 makes 16777216: that is what is explained (in row 1, counted from 0 and '
            "1 more)",
            'column "small" is 1e-60, of which float32 makes 0: that is what is explained (in row 1, counted from 0)',
            'column "large" is 4611686018427387905, of which float32 makes 4611686018427387904: that is what is explained (in '
            "row 1, counted from 0)",
        ])

    def test_rounding_of_fractions_is_not(self):
        records = numpy.array([(0.1, 2**24, 2.0**60), (1e-38, -(2**25), 16777217.5)], dtype=[("a", "f8"), ("b", "i4"), ("c", "f8")])
        self.assertEqual(self.warnings_of(records), [])


class PandasTest(unittest.TestCase):
    def test_frames(self):
        frame = pandas.DataFrame({"age": [41, 7], "income": [2.5, 1.0], "member": [True, False]})
        self.assertEqual(contributions(frame)[0], {"age": 41, "income": 5, "member": 3})
        self.assertEqual(contributions(frame[["member", "age"]])[0], {"member": 1, "age": 82})
        self.assertEqual(contributions(frame[frame["age"] < 10])[0], {"age": 7, "income": 2, "member": 0})
        self.assertEqual(contributions(frame.astype("float32"))[0], {"age": 41, "income": 5, "member": 3})
        nullable = frame.astype({"age": "Int64", "income": "Float64", "member": "boolean"})
        self.assertEqual(contributions(nullable)[0], {"age": 41, "income": 5, "member": 3})
        numbered = pandas.DataFrame([[1.0, 2.0]])
        self.assertEqual(contributions(numbered)[0], {"0": 1, "1": 4})
        sparse = frame.astype({"income": "Sparse[float]"})
        self.assertEqual(contributions(sparse)[0], {"age": 41, "income": 5, "member": 3})

    def test_random_frames(self):
        rng = random.Random(1)
        for _ in range(20):
            width, height = rng.randint(1, 8), rng.randint(1, 9)
            frame = pandas.DataFrame(index=range(height, 0, -1))
            for k in range(width):
                dtype = rng.choice(["float64", "float32", "int64", "int8", "Int32", "Float64", "bool"])
                numbers = [rng.gauss(0, 1e3) if "loat" in dtype else rng.randint(-99, 99) for _ in range(height)]
                frame["c%d" % k] = pandas.array(numbers).astype(dtype)
            source = addend.Input(frame, dims=1)
            numpy.testing.assert_array_equal(source.value.numpy(), frame.to_numpy(dtype="float64").astype("float32"))

    def test_what_is_no_number_is_refused(self):
        for values in (["red"], [None], pandas.Categorical(["red"]), pandas.to_datetime(["2020-01-01"]), [1j],
                       pandas.array(["red"], dtype="string")):
            frame = pandas.DataFrame({"a": [1.0], "b": values})
            with self.assertRaisesRegex(TypeError, 'column "b" holds no numbers but'):
                addend.Input(frame, dims=1)
        for values in ([1.0, math.nan], pandas.array([1, None], dtype="Int64"), pandas.array([True, None], dtype="boolean"),
                       pandas.array([1.5, None], dtype="Float32")):
            with self.assertRaisesRegex(ValueError, r'column "b" has no value in row 1 \(counted from 0\); leave the row out'):
                addend.Input(pandas.DataFrame({"a": [1.0, 2.0], "b": values}), dims=1)
        with self.assertRaisesRegex(ValueError, "the table has no columns"):
            addend.Input(pandas.DataFrame({"a": [1.0]})[[]], dims=1)
        frame = pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"])
        with self.assertRaisesRegex(ValueError, 'two columns are called "a"'):
            addend.Input(frame, dims=1)

    def test_baselines(self):
        frame = pandas.DataFrame({"age": [40.0, 20.0], "income": [2.0, 1.0]})
        for baseline in (frame.mean(), frame.mean().to_frame().T, [30.0, 1.5]):
            found, explanation = contributions(frame, baseline=baseline)
            self.assertEqual((found, explanation.reference), ({"age": 10, "income": 1}, 33))
        with self.assertRaisesRegex(ValueError, "the columns of the baseline are income, age"):
            addend.Input(frame, dims=1, baseline=frame[["income", "age"]].mean())

    def test_attributions_of_a_frame_are_a_frame(self):
        frame = pandas.DataFrame({"age": [40.0, 20.0], "income": [2, 1]}, index=["ann", "bob"])
        model = Weighted(2)
        want = pandas.DataFrame({"age": [10.0, -10.0], "income": [1.0, -1.0]}, index=["ann", "bob"], dtype="float32")
        for ask in (lambda *args: addend.attribute(model, *args), addend.compile(model).attribute,
                    addend.compile(model).record(torch.ones(2, 2)).model().attribute):
            for baseline in (frame.mean(), torch.tensor([30.0, 1.5]), frame.mean().to_frame().T):
                pandas.testing.assert_frame_equal(ask(frame, baseline), want)
            found, delta = addend.attribute(model, (frame,), (30.0,), return_convergence_delta=True)
            self.assertEqual((found[0].index.tolist(), list(found[0])), (["ann", "bob"], ["age", "income"]))
            self.assertLess(abs(float(delta[0])), 1e-4)
        # Several numbers for each cell have no place in a frame.
        several = addend.compile(torch.nn.Linear(2, 3)).explain(addend.Input(frame, dims=1), targets=["0,0", "0,1"])
        self.assertEqual(several.inputs[0].shape, (2, 2, 2))


class WithoutTest(unittest.TestCase):
    def test_addend_imports_no_library_of_tables(self):
        import subprocess

        said = subprocess.run(
            [sys.executable, "-c", "import sys, addend; print([m for m in ('pandas', 'pyarrow') if m in sys.modules])"],
            stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        self.assertEqual(said.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
