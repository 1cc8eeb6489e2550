"""Tests that nothing is lost or misread: closed descriptors, outputs that are one file, files without an end, damaged
archives, and texts that no terminal should be given."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest
import zipfile

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_testing import PROGRAM, ProgramTest  # noqa: E402

MODELS = "docs/examples/models/"


class FilesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.net = self.path("m.pt")
        torch.jit.save(torch.jit.trace(torch.nn.Linear(4, 2).eval(), torch.zeros(1, 4)), self.net)
        self.row = self.path("row.npy")
        numpy.save(self.row, numpy.ones((1, 4), "f4"))
        self.log = self.path("d.jsonl")
        self.asked = [self.net, "--input", self.row, "--baseline", "0", "--target", "0"]

    def shell(self, line, *arguments):
        """The exit code and what was said, of a line in which "$@" are the arguments."""
        done = subprocess.run(["/bin/sh", "-c", line, PROGRAM] + list(arguments), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def content(self, path):
        with open(path, "rb") as file:
            return file.read()

    def refused(self, said, *arguments):
        """Returns the message of the refused program: one line that is not long, within a minute."""
        done = subprocess.run([PROGRAM] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        error = done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, 2, done.stdout.decode() + error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertLess(len(error), 5000)
        for part in [said] if isinstance(said, str) else said:
            self.assertIn(part, error)
        return error

    def verified(self):
        done = self.run_program("audit", "verify", self.log, "--json")
        return json.loads(done.stdout)


class DescriptorTest(FilesTest):
    def test_nothing_is_printed_into_a_log(self):
        for number, closed in enumerate((">&-", "2>&-", "<&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"), 1):
            with self.subTest(closed):
                code, said = self.shell('"$0" attribute "$@" ' + closed, *self.asked, "--log", self.log)
                self.assertEqual(code, 0, said)
                found = self.verified()
                self.assertEqual((found["verified"], found["records"]), (True, number))

    def unmeasured(self, path):
        """The content without numbers, among which are times."""
        return re.sub(rb"[0-9]+", b"", self.content(path))

    def test_nothing_is_printed_into_other_outputs(self):
        arguments = ["attribute"] + self.asked
        outputs = ["--html", "--svg", "--graph", "--out"]
        for option in outputs:
            path = self.path("out" + option)
            self.assertEqual(self.shell('"$0" "$@"', *arguments, option, path)[0], 0)
            expected = self.unmeasured(path)
            self.assertEqual(self.shell('"$0" "$@" <&- >&- 2>&-', *arguments, option, path)[0], 0)
            self.assertEqual(self.unmeasured(path), expected)
        folder = self.path("program")
        for closed in (">&-", "<&- >&- 2>&-"):
            code, said = self.shell('"$0" trace "$@" ' + closed, self.net, "--input", self.row, "--save", folder)
            self.assertEqual(code, 0, said)
            self.assertEqual(self.shell('"$0" attribute "$@"', folder, *self.asked[1:])[0], 0)
        plan = self.path("plan.json")
        line = '"$0" job plan "$@" <&- >&- 2>&- && "$0" job run plan.json <&- >&- 2>&- && "$0" job merge plan.json >&-'
        code, said = self.shell("cd %s && " % self.folder + line, *self.asked, "--out", plan)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.shell('"$0" audit verify "$@" >&- 2>&-', self.log)[0], 2)

    def test_errors_are_told_by_the_exit_code_where_nothing_can_be_printed(self):
        self.assertEqual(self.shell('"$0" attribute "$@" <&- >&- 2>&-', self.path("none.pt"), *self.asked[1:])[0], 2)
        for asked in ("--help", "--version", "attribute --help", "ops", "ops --json"):
            code, said = self.shell('"$0" %s >/dev/full' % asked)
            self.assertEqual(code, 2, asked)
            self.assertIn("cannot write the standard output", said)

    def test_a_log_that_ends_in_something_else_says_how_it_is_cut(self):
        self.assertEqual(self.shell('"$0" attribute "$@"', *self.asked, "--log", self.log)[0], 0)
        whole = self.content(self.log)
        for printed in (b"a table\n", b"a table\n\nof two\nlines and no end", b"\x80\x02}\n", b"{\"a\": 1}\n"):
            with self.subTest(printed):
                self.write("d.jsonl", whole + printed)
                hint = "truncate -s %d %s" % (len(whole), self.log)
                said = self.refused([hint, "no record, behind record 1"], "attribute", *self.asked, "--log", self.log)
                self.assertEqual(self.content(self.log), whole + printed, said)
                self.assertIn(hint, json.dumps(self.verified()["problems"]))
                self.assertEqual(self.shell(hint)[0], 0)
                self.assertEqual(self.shell('"$0" attribute "$@"', *self.asked, "--log", self.log)[0], 0)
                self.assertEqual(self.verified()["records"], 2)
        # A record that is damaged is nothing to cut off.
        self.write("d.jsonl", whole.replace(b"addend", b"Addend", 1))
        self.assertNotIn("truncate", json.dumps(self.verified()["problems"]))
        self.assertNotIn("truncate", self.refused("d.jsonl", "attribute", *self.asked, "--log", self.log))


class HeadlineTest(FilesTest):
    def test_a_score_keeps_its_digits_beside_large_parts(self):
        layer = torch.nn.Linear(4, 1).eval()
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[1e6, 1e6, -1e6, -1e6]]))
            layer.bias.fill_(0.327)
        torch.jit.save(torch.jit.trace(layer, torch.zeros(1, 4)), self.net)
        done = self.run_program("attribute", *self.asked)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)score for .*\sis\s0\.32[57]")


class OneFileTest(FilesTest):
    def names(self, path):
        """Other names of a file that is there, and one that leads to it once it is."""
        folder, name = os.path.split(path)
        link, hard, inner = self.path("link"), self.path("hard"), self.path("inner")
        for old in (link, hard, inner):
            if os.path.lexists(old):
                os.remove(old)
        os.symlink(name, link)
        os.symlink(folder, inner)
        names = [path, os.path.join(folder, ".", name), link, os.path.join(inner, name)]
        if os.path.exists(path):
            os.link(path, hard)
            names.append(hard)
        return names

    def test_two_outputs_of_one_file(self):
        commands = {
            "attribute": (self.asked, ("--log", "--html", "--svg", "--out", "--graph")),
            "decompose": (self.asked, ("--html", "--svg", "--out")),
            "trace": (self.asked[:3], ("--out", "--export"))}
        for command, (asked, options) in commands.items():
            for first in options:
                for second in options:
                    if first == second:
                        continue
                    for there in (False, True):
                        path = self.path("x")
                        if os.path.lexists(path):
                            os.remove(path)
                        if there:
                            if "--log" in options:
                                self.assertEqual(self.shell('"$0" attribute "$@"', *self.asked, "--log", path)[0], 0)
                            else:
                                self.write("x", "something")
                        for name in self.names(path)[:None if there and first == options[0] else 1]:
                            with self.subTest((command, first, second, name)):
                                before = self.content(path) if there else None
                                self.refused("name the same file", command, *asked, first, path, second, name)
                                self.assertEqual(self.content(path) if os.path.exists(path) else None, before)

    def test_the_files_of_a_saved_program(self):
        folder = self.path("program")
        asked = ["trace"] + self.asked[:3]
        self.refused("name the same file", *asked, "--save", folder, "--export", folder)
        self.assertEqual(self.run_program(*asked, "--save", folder).returncode, 0)
        for name in ("program.json", "weights.safetensors"):
            path = os.path.join(folder, name)
            before = self.content(path)
            self.refused("name the same file", *asked, "--save", folder, "--out", path)
            self.refused("it is read as well", "attribute", folder, *self.asked[1:], "--html", path)
            self.refused("it is read as well", "trace", folder, *self.asked[1:3], "--save", folder)
            self.assertEqual(self.content(path), before)

    def test_outputs_that_are_read(self):
        names = self.write("names.txt", "a\nb\nc\nd\n")
        labels = self.path("labels.npy")
        numpy.save(labels, numpy.array([[0, 0, 1, 1]]))
        base = self.path("base.npy")
        numpy.save(base, numpy.zeros((1, 4), "f4"))
        asked = [self.net, "--input", self.row + ":labels=" + labels, "--baseline", base]
        for read in (self.net, self.row, labels, base):
            before = self.content(read)
            for option in ("--log", "--html", "--svg", "--out", "--graph"):
                for name in self.names(read)[:None if option == "--log" else 1]:
                    self.refused("it is read as well", "attribute", *asked, option, name)
            for option in ("--html", "--svg", "--out"):
                self.refused("it is read as well", "decompose", *asked, option, read)
            self.refused("it is read as well", "interactions", *asked, "--html", read)
            self.refused("it is read as well", "job", "plan", *asked, "--out", read)
            self.assertEqual(self.content(read), before)
        for option in ("--html", "--out"):
            self.refused("it is read as well", "attribute", *self.asked, "--names", names, option, names)
        self.refused("it is read as well", "trace", *self.asked[:3], "--check", "--with", base, "--out", base)

    def test_standard_output_that_goes_to_a_file_of_the_run(self):
        for line in ('"$0" attribute "$@" >>"$LOG"', '"$0" attribute "$@" 2>>"$LOG"', '"$0" attribute "$@" 1<>"$LOG"'):
            with self.subTest(line):
                if os.path.exists(self.log):
                    os.remove(self.log)
                self.assertEqual(self.shell('"$0" attribute "$@"', *self.asked, "--log", self.log)[0], 0)
                before = self.content(self.log)
                code, said = self.shell(line.replace("$LOG", self.log), *self.asked, "--log", self.log)
                self.assertEqual(code, 2, said)
                # Messages about it may be appended; no record is lost.
                found = self.content(self.log)
                self.assertEqual(found[: len(before)] if "2>>" in line else found, before)
        before = self.content(self.log)
        for command in ("show --json", "show", "verify"):
            code, said = self.shell('"$0" audit %s "$@" >>%s' % (command, self.log), self.log)
            self.assertEqual((code, self.content(self.log)), (2, before), said)

    def test_devices_are_outputs_for_everything(self):
        outputs = ["--html", "/dev/null", "--svg", "/dev/null", "--out", "/dev/null", "--graph", "/dev/null"]
        done = self.run_program("attribute", *self.asked, *outputs)
        self.assertEqual(done.returncode, 0, done.stderr)
        code, said = self.shell('"$0" trace "$@" --graph dot --out /dev/stdout >%s' % self.path("g.dot"), *self.asked[:3])
        self.assertEqual(code, 0, said)
        self.assertRegex(self.content(self.path("g.dot")), rb"(?s)^digraph.*\}\n$")

    def test_a_plan_is_no_row(self):
        folder = self.path("rows")
        os.mkdir(folder)
        shutil.copy(self.row, folder)
        asked = ["job", "plan", self.net, "--input", folder, "--baseline", "0", "--target", "0"]
        self.refused("is a row; write the plan elsewhere", *asked, "--out", os.path.join(folder, "plan.json"))
        self.assertEqual(os.listdir(folder), ["row.npy"])


class EndlessTest(FilesTest):
    """Tests that files without an end, or that nobody writes to, are refused at once."""

    def others(self):
        fifo = self.path("fifo")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        for target in ("/dev/zero", fifo, self.folder):
            for ending in ("", ".csv"):
                link = self.path("link" + ending)
                if os.path.lexists(link):
                    os.remove(link)
                os.symlink(target, link)
                yield link

    def test_inputs(self):
        said = "cannot read"
        for path in self.others():
            with self.subTest(os.readlink(path) + path):
                if os.readlink(path) != self.folder:
                    self.refused(said, "attribute", self.net, "--input", path, "--baseline", "0")
                    self.refused(said, "attribute", *self.asked[:3], "--baseline", path)
                    self.refused(said, "attribute", *self.asked, "--names", path)
                    self.refused(said, "job", "plan", self.net, "--input", path, "--out", self.path("p.json"))
                    self.refused("", "attribute", path, *self.asked[1:])
                self.refused(said, "attribute", *self.asked, "--reasons", path)
                self.refused(said, "attribute", *self.asked, "--mapping", path)
                self.refused(said, "reasons", path, path)
                self.refused(said, "job", "run", path)
                self.refused(said, "job", "report", path)
                self.refused("", "audit", "verify", path)
                self.refused("", "audit", "show", path)
                self.refused("", "attribute", *self.asked, "--log", path)

    def test_saved_programs(self):
        folder = self.path("program")
        self.assertEqual(self.run_program("trace", *self.asked[:3], "--save", folder).returncode, 0)
        for name in ("program.json", "weights.safetensors"):
            shutil.move(os.path.join(folder, name), self.path(name))
            for other in self.others():
                os.symlink(os.readlink(other), os.path.join(folder, name))
                self.refused("" if os.readlink(other) == self.folder else "cannot read", "attribute", folder, *self.asked[1:])
                os.remove(os.path.join(folder, name))
            shutil.move(self.path(name), os.path.join(folder, name))
        # Links to files are what they lead to.
        shutil.move(os.path.join(folder, "weights.safetensors"), self.path("w"))
        os.symlink(self.path("w"), os.path.join(folder, "weights.safetensors"))
        self.assertEqual(self.run_program("attribute", folder, *self.asked[1:]).returncode, 0)

    def test_shards(self):
        rows = self.path("rows.npy")
        numpy.save(rows, numpy.ones((8, 4), "f4"))
        for ending in ("safetensors", "csv"):
            plan = self.path(ending + ".json")
            made = self.run_program("job", "plan", self.net, "--input", rows, "--baseline", "0", "--target", "0", "--batch",
                                    "4", "--shards", "2", "--format", ending, "--out", plan)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(self.run_program("job", "run", plan).returncode, 0)
            shards = os.path.join(self.path(ending + ".out"), "shards")
            for name in sorted(os.listdir(shards)):
                path = os.path.join(shards, name)
                shutil.move(path, self.path("kept"))
                os.mkfifo(path)
                self.run_within("merge", plan)
                self.run_within("status", plan)
                os.remove(path)
                shutil.move(self.path("kept"), path)
            self.assertEqual(self.run_program("job", "merge", plan).returncode, 0)

    def run_within(self, command, plan):
        done = subprocess.run([PROGRAM, "job", command, plan], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertNotEqual(done.returncode, 0 if command == "merge" else None, done.stdout)


class DamageTest(FilesTest):
    """One flipped bit is seen wherever the file says what it should be."""

    def flips(self, path, entry):
        """The file with a bit flipped in each eighth of an entry of an archive."""
        whole = self.content(path)
        with zipfile.ZipFile(path) as archive:
            info = [one for one in archive.infolist() if entry(one)][0]
        name, extra = struct.unpack("<HH", whole[info.header_offset + 26:info.header_offset + 30])
        begin = info.header_offset + 30 + name + extra
        for k in range(8):
            damaged = bytearray(whole)
            damaged[begin + k * info.file_size // 8] ^= 1 << k
            yield bytes(damaged)

    def test_archives(self):
        sample = ["--input", MODELS + "digits/sample.safetensors", "--baseline", "0", "--target", "0"]
        for model in ("model.pt", "model.pt2"):
            path = MODELS + "digits/" + model
            self.assertEqual(self.run_program("attribute", path, *sample).returncode, 0)
            with zipfile.ZipFile(path) as archive:
                largest = max(archive.infolist(), key=lambda one: one.file_size).filename
            for damaged in self.flips(path, lambda one: one.filename == largest):
                self.refused(["its checksum differs", largest.split("/")[-1]], "attribute", self.write(model, damaged), *sample)
            whole = self.content(path)
            for size in (10, len(whole) // 2, len(whole) - 1):
                self.refused(model, "attribute", self.write(model, whole[:size]), *sample)

    def test_an_archive_that_was_packed_again(self):
        path = self.path("packed.pt")
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.net) as old, zipfile.ZipFile(path, "w", method) as new:
                for one in old.infolist():
                    new.writestr(one.filename, old.read(one))
            done = self.run_program("attribute", path, *self.asked[1:])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_saved_programs(self):
        folder = self.path("program")
        self.assertEqual(self.run_program("trace", *self.asked[:3], "--save", folder).returncode, 0)
        for name in ("program.json", "weights.safetensors"):
            path = os.path.join(folder, name)
            whole = self.content(path)
            # Damage in this header may hit the names of checksums alone, so begin behind it.
            begin = 8 + struct.unpack("<Q", whole[:8])[0] if name == "weights.safetensors" else 0
            for k in range(begin, len(whole), max(1, (len(whole) - begin) // 20)):
                damaged = bytearray(whole)
                damaged[k] ^= 1 << k % 8
                with open(path, "wb") as file:
                    file.write(damaged)
                self.refused("program", "attribute", folder, *self.asked[1:])
            with open(path, "wb") as file:
                file.write(whole)
        self.assertEqual(self.run_program("attribute", folder, *self.asked[1:]).returncode, 0)

    def test_images_that_are_none(self):
        for content, said in ((b"GIF89a" + bytes(50), "a GIF image; save it as PNG"), (b"BM" + bytes(50), "a BMP image"),
                              (b"PK\3\4" + bytes(50), "a zip archive, as .npz"), (b"\x1f\x8b" + bytes(50), "gzip")):
            self.refused(said, "attribute", self.net, "--input", self.write("a.png", content), "--baseline", "0")


class MessageTest(FilesTest):
    def test_long_fields(self):
        long = "9" * 3000000
        for content in ("a,b,c,d\n%s,2,3,4\n" % long, "a,b,c,d\nx%s,2,3,4\n" % long, "a,b,c,%s\n1,2,3,x\n" % long,
                        "a,%s,c,%s\nx,2,3,4\n" % (long, long), "%s;b\n1;2\n" % long):
            error = self.refused("f.csv", "attribute", self.net, "--input", self.write("f.csv", content), "--baseline", "0")
            self.assertIn("bytes left out", error)

    def test_zeros_and_marks(self):
        for bad, shown in (("\0", "\\x00"), ("\u202e", "\\u202e"), ("\u2066", "\\u2066"), ("\u061c", "\\u061c"),
                           ("\u200f", "\\u200f"), ("\x1b", "\\x1b"), ("\u009b", "\\x9b")):
            path = self.write("f.csv", "a,b,c,d\n1,2%sx,3,4\n" % bad)
            error = self.refused(shown + "x\", which is no number", "attribute", self.net, "--input", path, "--baseline", "0")
            self.assertNotIn(bad, error)
            if bad in "\0\x1b\u009b":
                continue
            names = ["first%ssecond" % bad, "b", "c", "d"]
            path = self.write("g.csv", ",".join(names) + "\n1,2,3,4\n")
            for command in ("attribute", "decompose"):
                for more in ((), ("--json",)):
                    done = self.run_program(command, self.net, "--input", path, "--baseline", "0", "--target", "0", *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn(bad, done.stdout)
                    self.assertIn("first" + shown, done.stdout)
            # In JSON it is the same text.
            self.assertEqual(json.loads(done.stdout)["components"][0]["name"], names[0])

    def test_options_whose_value_does_not_fit(self):
        plan = self.write("plan.json", "{}")
        for value in ("-1", "1.5", "x", "99999999999999999999"):
            self.refused("--shard", "job", "run", plan, "--shard=" + value)
        for option in ("--row", "--top", "--memory", "--mean"):
            self.refused(option, "attribute", *self.asked, option + "=x")
        for option in ("--sample", "--seed"):
            self.refused(option, "audit", "verify", self.log, option + "=x")
        for option in ("--record", "--last", "--top"):
            self.refused(option, "audit", "show", self.log, option + "=x")
        for option in ("--shards", "--batch", "--threads"):
            self.refused(option, "job", "plan", *self.asked, "--out", plan, option + "=0")

    def test_names_of_many_tensors(self):
        header = {"t%d" % k: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(30000)}
        text = json.dumps(header).encode()
        path = self.write("many.safetensors", struct.pack("<Q", len(text)) + text)
        self.refused(["holds several tensors", "more"], "attribute", self.net, "--input", path, "--baseline", "0")
        self.refused(["has no tensor", "more"], "attribute", self.net, "--input", path + "#x", "--baseline", "0")

    def test_a_wide_table(self):
        width = 60000
        path = self.write("wide.csv", ",".join("c%d" % k for k in range(width)) + "\n" + ",".join(["1"] * width) + "\n")
        self.refused("", "attribute", self.net, "--input", path, "--baseline", "0")
        twice = self.write("twice.csv", ",".join("c%d" % (k % (width - 1)) for k in range(width)) + "\n")
        self.refused("two columns are called \"c0\"", "attribute", self.net, "--input", twice, "--baseline", "0")


if __name__ == "__main__":
    unittest.main()
