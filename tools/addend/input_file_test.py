"""Tables and images become inputs of the program as Python's own readers read them: csv, and PIL where it is there."""

import csv
import io
import json
import os
import random
import statistics
import struct
import sys
import unittest
import zlib

import addend
import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_testing import ProgramTest, Weighted  # noqa: E402

try:
    from PIL import Image
except ImportError:
    Image = None


class Same(torch.nn.Module):
    def forward(self, x):
        return x * 1.0


class DecomposeTest(ProgramTest):
    def decompose(self, *arguments):
        """The record of a decomposition."""
        done = self.run_program("decompose", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, said, *arguments):
        done = self.run_program("decompose", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(said, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


class CsvTest(DecomposeTest):
    def check(self, content, *arguments, row=None):
        """Decomposes a table and compares it with what csv reads."""
        path = self.write("rows.csv", content)
        text = content if isinstance(content, str) else content.decode("utf-8")
        rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline="")))
        names, rows = rows[0], [one for one in rows[1:] if one]
        given = [numpy.float32(field) for field in rows[row or 0]]
        more = [] if row is None else ["--row", str(row)]
        record = self.decompose(self.model(Weighted(len(names))), "--input", path, *more, *arguments)
        self.assertEqual([component["name"] for component in record["components"]], names)
        self.assertEqual([numpy.float32(component["value"]) for component in record["components"]], given)
        for k, contribution in enumerate(record["targets"][0]["contributions"]):
            self.assertAlmostEqual(contribution, (k + 1) * float(given[k]), delta=1e-5 * abs((k + 1) * given[k]) + 1e-30)
        self.assertEqual(record["kind"], "table")
        return record

    def test_names_and_numbers(self):
        self.check("age,income\n41,2500.5\n")
        self.check("age,income\r\n41,2500.5\r\n")
        self.check("age,income\n41,2500.5")
        self.check("\ufeffage,income\n41,-2.5e-3\n")
        self.check('"age","income, net"\n"41","2500.5"\n')
        self.check('a,"say ""hi""","two\nlines","two\r\nlines"\r\n1,2,3,4\r\n')
        self.check("Alter,Gr\u00f6\u00dfe,\u8eab\u9577\n1,2,3\n")
        self.check("a,b\n 1 ,\t2\n")
        self.check("a,b\n1,2\n\n\n")
        self.check("a,b\n1,2\n3,4\n5,6\n", row=2)
        self.check("ROWS\n16777216\n")
        self.check("0,1,2\n+1.5,1e-2,.5\n")

    def test_numbers_that_become_others(self):
        model = self.model(Weighted(2))
        many = self.write("many.csv", "id,b\n3,0\n16777217,-0.1\n16777216,1e-60\n-16777219, +1e-400 \n")
        said = ['column "id" is 16777217, of which float32 makes 16777216: that is what is explained (in row 1, counted '
                "from 0 and 1 more)",
                'column "b" is 1e-60, of which float32 makes 0: that is what is explained (in row 2, counted from 0 and 1 '
                "more)"]
        one = ['column "id" is -16777219, of which float32 makes -16777220: that is what is explained (in row 3, counted '
               "from 0)",
               'column "b" is +1e-400, of which float32 makes 0: that is what is explained (in row 3, counted from 0)']

        def told(*arguments):
            report = self.decompose(model, "--input", *arguments)["report"]
            kinds = dict(zip(report["warnings"], report["warning_kinds"]))
            return [note for note in report["notes"] if kinds.get(note) == "another_number"]

        self.assertEqual(numpy.float32(-16777219), -16777220)
        self.assertEqual(told(many, "--row", "0"), [])
        self.assertEqual(told(many, "--row", "3"), one)
        held = self.write("held.csv", "id,b\n0016777216,16777217.5\n")
        self.assertEqual(told(held), [])
        based = told(held, "--baseline", "mean:" + many)
        self.assertEqual(based, [note.replace(", counted", " of %s, counted" % many) for note in said])
        large = self.write("large.csv", "id,b\n9007199254740993,16777217\n")
        self.write("mapping.json", '{"id": {"x": 16777217}}')
        mapped = self.write("mapped.csv", "id,b\nx,1\n")
        self.assertIn('"id" is 16777217, of which', told(mapped, "--mapping", self.path("mapping.json"))[0])
        wide = told(large, "--dtype", "float64")
        self.assertEqual([note.split(":")[0] for note in wide],
                         ['column "id" is 9007199254740993, of which float64 makes 9007199254740992'])
        pointed = told(self.write("pointed.csv", "id,b\n16777217.0,16777216.00\n"))
        self.assertEqual([note.split(":")[0] for note in pointed],
                         ['column "id" is 16777217.0, of which float32 makes 16777216'])
        for kind in ("html", "svg"):
            out = self.path("page." + kind)
            done = self.run_program("attribute", model, "--input", many, "--row", "1", "--" + kind, out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("of which float32 makes 16777216", " ".join(done.stdout.split()))
            with open(out, encoding="utf-8") as file:
                self.assertIn("of which float32", " ".join(file.read().split()))

    def test_whatever_csv_writes(self):
        rng = random.Random(1)
        letters = 'ab,"\n ;\t\u00e4\u8eab'
        for _ in range(12):
            width, height = rng.randint(1, 6), rng.randint(1, 4)
            names = ["c%s%d" % ("".join(rng.choice(letters) for _ in range(rng.randint(1, 5))), k) for k in range(width)]
            if width == 1:
                names = [names[0].replace(";", "").replace("\t", "")]
            out = io.StringIO(newline="")
            writer = csv.writer(
                out, quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
                lineterminator=rng.choice(["\n", "\r\n"]))
            writer.writerow(names)
            for _ in range(height):
                writer.writerow([rng.choice([rng.uniform(-9, 9), rng.gauss(0, 1e6), rng.randint(-99, 99)]) for _ in names])
            with self.subTest(out.getvalue()):
                self.assertEqual(next(csv.reader(io.StringIO(out.getvalue(), newline=""))), names)
                # Names are shown on one line each.
                path = self.write("rows.csv", out.getvalue())
                rows = list(csv.reader(io.StringIO(out.getvalue(), newline="")))[1:]
                row = rng.randrange(height)
                record = self.decompose(self.model(Weighted(width)), "--input", path, "--row", str(row))
                self.assertEqual(
                    [numpy.float32(one["value"]) for one in record["components"]],
                    [numpy.float32(field) for field in rows[row]])

    def test_categories(self):
        path = self.write("rows.csv", "id,size,colour,age\nx7,M,red,41\nx8,L,\"dark, blue\",7\n")
        mapping = self.write("mapping.json", json.dumps(
            {"id": None, "size": {"S": 1, "M": 2.5, "L": 3}, "colour": ["red", "dark, blue", ""]}))
        model = self.model(Weighted(5))
        for row, size, colour, age in ((0, 2.5, [1, 0, 0], 41), (1, 3, [0, 1, 0], 7)):
            record = self.decompose(model, "--input", path, "--mapping", mapping, "--row", str(row))
            self.assertEqual([one["name"] for one in record["components"]], ["size", "colour", "age"])
            expected = [size, 2 * colour[0] + 3 * colour[1] + 4 * colour[2], 5 * age]
            self.assertEqual(record["targets"][0]["contributions"], expected)
            record = self.decompose(model, "--input", path + ":dim=1", "--mapping", mapping, "--row", str(row))
            self.assertEqual(
                [one["name"] for one in record["components"]],
                ["size", "colour=red", "colour=dark, blue", "colour=", "age"])
            self.assertEqual([one["value"] for one in record["components"]], [size] + colour + [age])

    def test_what_is_no_number(self):
        model = self.model(Weighted(2))
        cases = [
            ("a,b\n1,2\n3,\n", 'row 1 (counted from 0; line 3), column "b" is empty'),
            ("a,b\n1,2\n3,  \n", 'row 1 (counted from 0; line 3), column "b" is empty'),
            ('a,b\n1,2\n"",3\n', 'row 1 (counted from 0; line 3), column "a" is empty'),
            ("a,b\n1,red\n", 'row 0 (counted from 0; line 2), column "b" is "red", which is no number; --mapping names'),
            ("a,b\n1,NaN\n", 'column "b" is "NaN", which is no finite number'),
            ("a,b\n1,-inf\n", 'column "b" is "-inf", which is no finite number'),
            ("a,b\n1,1e999\n", 'column "b" is "1e999", which is no finite number'),
            ("a,b\n1,1e300\n", 'column "b" is "1e300", which is no finite number in single precision; --dtype float64'),
            ('a,b\n1,"1,5"\n', 'column "b" is "1,5", which is no number'),
            ("a,b\n1,0x10\n", 'column "b" is "0x10", which is no number'),
            ("a,b\n1,2 3\n", 'column "b" is "2 3", which is no number'),
            ('"a\nb",c\n1,"2\n3"\n', 'row 0 (counted from 0; line 3), column "c" is'),
            ("a,b\n1,2,3\n", "row 0 (counted from 0; line 2) has 3 fields, and the first line names 2 columns"),
            ("a,b\n1\n", "row 0 (counted from 0; line 2) has 1 fields, and the first line names 2 columns"),
            ("a,b\n1,2\n\n3,4\n", "row 1 (counted from 0; line 3) has 0 fields"),
            ("a,b\r\n1,2\r\n\r\n3,4\r\n", "row 1 (counted from 0; line 3) has 0 fields"),
            ('a,b\n1,"2\n', "line 2 has a quotation mark in the wrong place"),
            ('a,b\n1,2"\n', "line 2 has a quotation mark in the wrong place"),
            ('a,b\n1,"2"x\n', "line 2 has a quotation mark in the wrong place"),
            ("", "is empty; its first line has to name the columns"),
            ("\ufeff", "is empty; its first line has to name the columns"),
            ("a,b\n", "has names of columns, but no rows"),
            ("a,a\n1,2\n", 'two columns are called "a"'),
            ("a,\n1,2\n", "column 2 has no name"),
            ("1,2\n3,4\n", "the first line has to name the columns, and has only numbers"),
            ("a;b\n1;2\n", "columns have to be separated by commas"),
            ("a\tb\n1\t2\n", "columns have to be separated by commas"),
            (b"a,b\xff\n1,2\n", "the name of column 2 is not UTF-8"),
            (b"a,b\n1,\xff\n", 'row 0 (counted from 0; line 2), column "b"'),
            (b"a,b\n1,2\x00\n", 'row 0 (counted from 0; line 2), column "b"'),
        ]
        for content, said in cases:
            with self.subTest(content):
                self.refused(said, model, "--input", self.write("rows.csv", content))
        for huge in ("1e999", "-1e999", "inf"):
            self.refused('column "b" is "%s", which is no finite number\n' % huge, model, "--input",
                         self.write("rows.csv", "a,b\n1,%s\n" % huge), "--dtype", "float64")
        self.check("a,b\n1e-400,1e30\n", "--dtype", "float64")

    def test_mappings_that_do_not_fit(self):
        model = self.model(Weighted(2))
        path = self.write("rows.csv", "colour,age\nred,41\n")
        cases = [
            ("[]", "is not a JSON object"), ("{", "is not a JSON object"),
            ('{"color": ["red"]}', 'names a column "color" that'),
            ('{"colour": ["blue"]}', 'column "colour" is "red", which --mapping does not name (it names "blue")'),
            ('{"colour": {"blue": 1}}', 'is "red", which --mapping does not name (it names "blue")'),
            ('{"colour": {}}', "needs {TEXT: NUMBER, ...}"), ('{"colour": 1}', "needs {TEXT: NUMBER, ...}"),
            ('{"colour": [1]}', "has a list with something but texts"),
            ('{"colour": ["red", "red"]}', 'has "red" twice'),
            ('{"colour": {"red": 1, "red": 2}}', '"red" is there twice'),
            ('{"colour": {"": 1, "red": 2, "": 3}}', '"" is there twice'),
            ('{"colour": ["", "red", ""]}', 'has "" twice'),
            ('{"colour": {"red": "1"}}', 'has something but a number for "red"'),
            ('{"colour": {"red": 1e300}}', "which is no finite number in single precision"),
            ('{"colour": null, "age": null}', "has no column that is an input of the model"),
        ]
        for content, said in cases:
            with self.subTest(content):
                self.refused(said, model, "--input", path, "--mapping", self.write("mapping.json", content))
        self.refused("nowhere.json", model, "--input", path, "--mapping", "nowhere.json")

    def test_baselines(self):
        rng = random.Random(2)
        rows = [[rng.uniform(-5, 5) for _ in range(3)] for _ in range(6)]
        text = "\n".join(["a,b,c"] + [",".join(map(repr, row)) for row in rows]) + "\n"
        path = self.write("rows.csv", text)
        model = self.model(Weighted(3))
        columns = list(zip(*rows))
        baselines = {
            "mean:" + path: [statistics.fmean(column) for column in columns],
            "median:" + path: [statistics.median_low(column) for column in columns],
            self.write("base.csv", "a,b,c\n1,2,3\n"): [1, 2, 3],
        }
        for word, numbers in baselines.items():
            record = self.decompose(model, "--input", path, "--row", "4", "--baseline", word)
            self.assertEqual(record["inputs"][0]["baseline"], word)
            for k, contribution in enumerate(record["targets"][0]["contributions"]):
                self.assertAlmostEqual(contribution, (k + 1) * (rows[4][k] - numbers[k]), delta=1e-4)
            expected = sum((k + 1) * number for k, number in enumerate(numbers))
            self.assertAlmostEqual(record["targets"][0]["reference"], expected, delta=1e-4)
        other = self.write("other.csv", "b,a,c\n1,2,3\n")
        for word in (other, "mean:" + other):
            self.refused("its columns are", model, "--input", path, "--row", "4", "--baseline", word)
        self.refused("there is no file", model, "--input", path, "--baseline", "mean:nowhere.csv")

    def test_the_same_as_tensors(self):
        """The held-out rows of the example as CSV give what the tensors give, to the bit."""
        folder = "docs/examples/models/breast_cancer/"
        tensors = addend.read_tensors(folder + "heldout.safetensors")
        names = json.loads(tensors.metadata("names"))
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows(tensors["input"].tolist())
        path = self.write("rows.csv", out.getvalue())
        arguments = ("--row", "17", "--baseline", folder + "baseline.npy")
        ours = self.decompose(folder + "model.pt", "--input", path, "--classes", "malignant,benign", *arguments)
        theirs = self.decompose(folder + "model.pt", "--input", folder + "heldout.safetensors", *arguments)
        self.assertEqual(ours["targets"], theirs["targets"])
        self.assertEqual(ours["components"], theirs["components"])

    def test_further_inputs_of_traces(self):
        model = self.model(Weighted(2))
        path, other = self.write("rows.csv", "a,b\n1,2\n"), self.write("other.CSV", "a,b\n3,4\n")
        done = self.run_program("trace", model, "--input", path, "--check", "--with", other)
        self.assertEqual(done.returncode, 0, done.stderr)


def png(width, height, depth, colour, rows, interlace=0, more=b"", crc=0):
    """A PNG file, written by hand: `rows` are the bytes of each row."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) ^ crc)

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress(b"".join(b"\x00" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class ImageTest(DecomposeTest):
    def read(self, path, *arguments):
        """The input that the program makes of an image: what a model that changes nothing gives."""
        out = self.path("out.safetensors")
        self.decompose(self.model(Same()), "--input", path + ":dim=1", "--out", out, "--target", "0,0,0,0", *arguments)
        return addend.read_tensors(out)["value"].numpy()

    def check(self, path, expected, *arguments):
        value = self.read(path, *arguments)
        self.assertEqual(value.dtype, expected.dtype)
        self.assertEqual(value.shape, expected.shape)
        self.assertTrue((value == expected).all(), numpy.abs(value - expected).max())

    @staticmethod
    def planes(pixels, most=255):
        """[height, width] or [height, width, 3] of whole numbers as the input that they are."""
        pixels = numpy.asarray(pixels)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        return (pixels.transpose(2, 0, 1)[None] / most).astype(numpy.float32)

    def test_png_by_hand(self):
        rng = numpy.random.default_rng(3)
        gray = rng.integers(0, 256, (5, 7), dtype=numpy.uint8)
        colour = rng.integers(0, 256, (5, 7, 3), dtype=numpy.uint8)
        wide = rng.integers(0, 65536, (5, 7), dtype=numpy.uint16)
        self.check(self.write("a.png", png(7, 5, 8, 0, [row.tobytes() for row in gray])), self.planes(gray))
        self.check(self.write("a.png", png(7, 5, 8, 2, [row.tobytes() for row in colour])), self.planes(colour))
        rows = [row.astype(">u2").tobytes() for row in wide]
        self.check(self.write("a.png", png(7, 5, 16, 0, rows)), self.planes(wide, 65535))
        # Whatever the name says.
        self.check(self.write("a.npy", png(7, 5, 8, 0, [row.tobytes() for row in gray])), self.planes(gray))
        # One bit a pixel, the highest first.
        bits = rng.integers(0, 2, (5, 7), dtype=numpy.uint8)
        self.check(self.write("a.png", png(7, 5, 1, 0, [numpy.packbits(row).tobytes() for row in bits])), self.planes(bits, 1))
        # Two bits: 0, 85, 170, 255.
        self.check(self.write("a.png", png(4, 1, 2, 0, [b"\x1b"])), self.planes([[0, 1, 2, 3]], 3))
        # A palette of three colours.
        palette = png_chunk(b"PLTE", bytes([1, 2, 3, 40, 50, 60, 255, 0, 255]))
        self.check(
            self.write("a.png", png(3, 1, 8, 3, [b"\x02\x00\x01"], more=palette)),
            self.planes([[[255, 0, 255], [1, 2, 3], [40, 50, 60]]]))
        # Whatever a file says of gamma.
        linear = png_chunk(b"gAMA", struct.pack(">I", 100000))
        self.check(self.write("a.png", png(7, 5, 8, 0, [row.tobytes() for row in gray], more=linear)), self.planes(gray))
        # Opaque is not transparent.
        alpha = numpy.concatenate([colour, numpy.full((5, 7, 1), 255, numpy.uint8)], axis=2)
        self.check(self.write("a.png", png(7, 5, 8, 6, [row.tobytes() for row in alpha])), self.planes(colour))
        alpha[2, 3, 3] = 254
        self.refused("is transparent in places", self.model(Same()), "--input",
                     self.write("a.png", png(7, 5, 8, 6, [row.tobytes() for row in alpha])))
        see_through = png_chunk(b"tRNS", struct.pack(">H", int(gray[1, 1])))
        self.refused("is transparent in places", self.model(Same()), "--input",
                     self.write("a.png", png(7, 5, 8, 0, [row.tobytes() for row in gray], more=see_through)))

    def test_interlaced_png(self):
        gray = numpy.arange(64, dtype=numpy.uint8).reshape(8, 8)
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        rows = [row.tobytes() for y, x, down, right in passes for row in gray[y::down, x::right]]
        self.check(self.write("a.png", png(8, 8, 8, 0, rows, interlace=1)), self.planes(gray))

    def test_channels_mean_and_std(self):
        gray = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
        path = self.write("a.png", png(4, 3, 8, 0, [row.tobytes() for row in gray]))
        self.check(path, self.planes(numpy.stack([gray] * 3, 2)), "--channels", "rgb")
        self.check(path, self.planes(gray), "--channels", "gray")
        value = self.read(path, "--channels", "rgb", "--mean", "0.1,0.2,0.3", "--std", "0.5,0.25,2")
        for k, (mean, std) in enumerate(((0.1, 0.5), (0.2, 0.25), (0.3, 2))):
            numpy.testing.assert_allclose(value[0, k], (gray / 255 - mean) / std, rtol=1e-6)
        numpy.testing.assert_allclose(self.read(path, "--mean", "0.5")[0, 0], gray / 255 - 0.5, rtol=1e-6)
        model = self.model(Same())
        self.refused("--mean has 3 numbers, and the image has 1 channel", model, "--input", path, "--mean", "1,2,3")
        self.refused("--std has 2 numbers", model, "--input", path, "--std", "1,2")
        for zero in ("0", "-1", "nan"):
            self.refused("and is divided by", model, "--input", path, "--std=" + zero)
        colour = numpy.random.default_rng(4).integers(0, 256, (3, 4, 3), dtype=numpy.int64)
        path = self.write("a.png", png(4, 3, 8, 2, [row.astype(numpy.uint8).tobytes() for row in colour]))
        luma = (colour * [19595, 38470, 7471]).sum(2) + 0x8000 >> 16
        self.check(path, self.planes(luma), "--channels", "gray")
        numpy.testing.assert_allclose(luma, colour @ [0.299, 0.587, 0.114], atol=0.51)

    def test_damaged_images(self):
        gray = numpy.arange(35, dtype=numpy.uint8).reshape(5, 7)
        whole = png(7, 5, 8, 0, [row.tobytes() for row in gray])
        model = self.model(Same())
        for size in (9, 20, 40, 60, len(whole) - 13, len(whole) - 1):
            self.refused("is a damaged PNG file", model, "--input", self.write("a.png", whole[:size]))
        self.refused("is a damaged PNG file", model, "--input",
                     self.write("a.png", png(7, 5, 8, 0, [row.tobytes() for row in gray], crc=1)))
        self.refused("more than can be read here", model, "--input", self.write("a.png", png(900000, 900000, 8, 0, [b""])))
        self.refused("is a damaged JPEG file", model, "--input", self.write("a.jpg", b"\xff\xd8\xff\xe0nothing"))

    def test_pil_reads_the_same(self):
        if Image is None:
            self.skipTest("PIL is not installed")
        rng = numpy.random.default_rng(5)
        # Smooth, as photographs are, and odd sizes, which subsampled colours do not divide.
        y, x = numpy.mgrid[0:33, 0:47]
        smooth = [127 + 120 * numpy.sin(x / (3 + k) + y / (5 + k)) for k in range(3)]
        colour = Image.fromarray(numpy.stack(smooth, 2).astype(numpy.uint8))
        noise = Image.fromarray(rng.integers(0, 256, (33, 47, 3), dtype=numpy.uint8))
        for k, image in enumerate((colour, noise)):
            for mode in ("RGB", "L"):
                for name, options in (("a.png", {}), ("a.jpg", {"quality": 30}),
                                      ("a.jpg", {"quality": 95, "subsampling": 0, "progressive": True})):
                    with self.subTest((k, mode, name, options)):
                        path = self.path(name)
                        image.convert(mode).save(path, **options)
                        self.check(path, self.planes(numpy.asarray(Image.open(path))))
                        turned = numpy.asarray(Image.open(path).convert("L"))
                        self.check(path, self.planes(turned), "--channels", "gray")
            path = self.path("a.png")
            for mode in ("P", "1"):
                image.convert(mode).save(path)
                with self.subTest(mode):
                    own = Image.open(path)
                    self.check(path, self.planes(numpy.asarray(own.convert("RGB" if mode == "P" else "L"))))
        colour.convert("CMYK").save(self.path("a.jpg"))
        self.refused("is in CMYK", self.model(Same()), "--input", self.path("a.jpg"))
        colour.save(self.path("a.jpg"))
        with open(self.path("a.jpg"), "rb") as file:
            whole = file.read()
        self.refused("is a damaged JPEG file", self.model(Same()), "--input", self.write("b.jpg", whole[:len(whole) // 2]))

    def test_images_are_explained_by_pixel(self):
        gray = numpy.arange(35, dtype=numpy.uint8).reshape(5, 7)
        path = self.write("a.png", png(7, 5, 8, 0, [row.tobytes() for row in gray]))
        record = self.decompose(self.model(Same()), "--input", path, "--target", "0,0,2,3")
        self.assertEqual((record["kind"], len(record["components"])), ("image", 35))
        self.assertEqual(record["components"][17]["name"], "row 2, column 3")
        self.assertAlmostEqual(record["targets"][0]["contributions"][17], 17 / 255, delta=1e-7)


if __name__ == "__main__":
    unittest.main()
