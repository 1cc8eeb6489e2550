"""Logs of decisions from C and C++, and whether something else than Addend agrees with what they say.

usage: audit_test.py ADDEND WRITE_RECORDS WRITE_RECORDS_C
"""

import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import check_log

ADDEND = WRITERS = None
COUNT = int(os.environ.get("ADDEND_AUDIT_RECORDS", "300"))
KILLS = int(os.environ.get("ADDEND_AUDIT_KILLS", "5"))
FOLDER = "docs/examples/models/breast_cancer/"
MODEL = FOLDER + "model.pt"


def run(*arguments, code=0):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != code:
        raise AssertionError("%s: exit code %d\n%s%s" % (arguments, done.returncode, done.stdout, done.stderr))
    return done.stdout


class AuditTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def written(self, writer, count, keep=0):
        path = self.path("%s-%d-%d" % (os.path.basename(writer), count, keep))
        run(writer, "write", path, str(count), str(keep))
        return path

    def test_c_and_cpp_write_the_same_bytes(self):
        logs = [self.written(writer, COUNT) for writer in WRITERS]
        contents = []
        for log in logs:
            with open(log, "rb") as file:
                contents.append(file.read())
        self.assertEqual(contents[0], contents[1])
        self.assertEqual(check_log.check(logs[0], MODEL), (COUNT, 0))
        for writer in WRITERS:
            for log in logs:
                run(writer, "verify", log, str(COUNT))
        verified = json.loads(run(ADDEND, "audit", "verify", logs[0], "--model", MODEL, "--inputs",
                                  FOLDER + "heldout.safetensors", "--sample", "25", "--seed", "3", "--json"))
        self.assertEqual((verified["computed"]["same"], verified["computed"]["seed"]), (25, 3))
        # The program says of itself what the library says: nothing of the environment differs but the threads.
        for record in verified["computed"]["records"]:
            self.assertEqual([line for line in record["differences"] if not line.startswith("threads: ")], [])

    def test_records_with_their_inputs_need_nothing_else(self):
        log = self.written(WRITERS[0], 20, keep=1)
        self.assertEqual(check_log.check(log, MODEL), (20, 20))
        verified = json.loads(run(ADDEND, "audit", "verify", log, "--model", MODEL, "--json"))
        self.assertTrue(verified["verified"])
        self.assertEqual(verified["computed"]["same"], 20)

    def test_canonical_numbers_are_those_of_python(self):
        """Through a record: its context comes back in canonical JSON."""
        draw = random.Random(5)
        numbers = [struct.unpack("<d", draw.getrandbits(64).to_bytes(8, "little"))[0] for _ in range(3000)]
        numbers = [x for x in numbers if math.isfinite(x)]
        numbers += [0.1, 1e21, 1e-7, 1e19, 123456789012345680000.0, -0.0, 5e-324, 100.0]
        self.assertTrue(all(float(check_log.number(x)) == x for x in numbers))
        self.assertEqual(check_log.canonical([1e21, 1e-7, 1e20, 0.001, -0.0, 2.5, 1.5e300]),
                         "[1e+21,1e-7,100000000000000000000,0.001,0,2.5,1.5e+300]")
        library = self.library()
        text = library(json.dumps({"numbers": numbers, "\u00e9\U0001f600": 1, "\ufb33": ["\u0001\t\"\\/\u20ac"], "b": True,
                                   "a": None}))
        record = json.loads(text)
        self.assertEqual(check_log.canonical(record), text)
        self.assertEqual([float(x) for x in record["context"]["numbers"]], numbers)
        digest = record.pop("hash")
        self.assertEqual(check_log.sha256(check_log.canonical(record)), digest)

    def library(self):
        """Appends one record with a context to a log, by the command that takes one."""
        log = self.path("numbers")

        def append(context):
            run(WRITERS[0], "context", log, context)
            with open(log, encoding="utf-8", newline="") as file:
                return file.read().rstrip("\n")

        return append

    def test_numbers_that_were_exchanged_with_all_hashes_are_found_by_computing(self):
        log = self.written(WRITERS[0], 1, keep=1)
        with open(log, "rb") as file:
            record = json.loads(file.read())
        part = record["targets"][0]["contributions"][4]
        changed = part + 0.25
        record["targets"][0]["contributions"][4] = changed
        del record["hash"]
        record["hash"] = check_log.sha256(check_log.canonical(record))
        with open(log, "w") as file:
            file.write(check_log.canonical(record) + "\n")
        self.assertIn("whole: every bit is as it was written", run(ADDEND, "audit", "verify", log))
        found = json.loads(run(ADDEND, "audit", "verify", log, "--model", MODEL, "--json", code=1))
        (one,) = found["computed"]["records"]
        self.assertEqual((one["result"], one["largest_difference"], found["verified"]),
                         ("different", abs(changed - part), False))
        self.assertIn("record 1 (line 1): other bits", run(ADDEND, "audit", "verify", log, "--model", MODEL, code=1))
        # The numbers of another environment are told as such.
        record["libtorch"]["version"] = "0.9"
        del record["hash"]
        record["hash"] = check_log.sha256(check_log.canonical(record))
        with open(log, "w") as file:
            file.write(check_log.canonical(record) + "\n")
        found = json.loads(run(ADDEND, "audit", "verify", log, "--model", MODEL, "--json", code=1))
        self.assertRegex(found["computed"]["records"][0]["differences"][0], "^LibTorch: 0.9 then, .* now$")

    def test_a_writer_that_is_killed_loses_nothing_acknowledged(self):
        log = self.path("killed")
        draw = random.Random(13)
        acknowledged = []
        for _ in range(KILLS):
            with subprocess.Popen([WRITERS[0], "endless", log], stdout=subprocess.PIPE) as writer:
                told = [writer.stdout.readline()]  # from here on it appends
                time.sleep(draw.random() * 0.05)
                self.assertIsNone(writer.poll())
                writer.kill()
                told += writer.stdout.readlines()
            if not told[-1].endswith(b"\n"):  # cut off while it was told, and so nobody knows of it
                told.pop()
            acknowledged += told
        run(WRITERS[0], "context", log, "1")  # sets aside what was cut off last
        with open(log, "rb") as file:
            written = set(file)
        self.assertEqual([line for line in acknowledged if line not in written], [])
        records, _ = check_log.check(log, MODEL)
        # Each writer may have written one whole record more, of which it could not tell.
        self.assertGreater(records, len(acknowledged))
        self.assertLessEqual(records, len(acknowledged) + KILLS + 1)

    def test_changed_and_cut_off_logs(self):
        log = self.written(WRITERS[0], 30)
        with open(log, "rb") as file:
            whole = bytearray(file.read())
        last = json.loads(whole.splitlines()[-1])["hash"]
        shown = run(ADDEND, "audit", "verify", log, "--expect", last)
        self.assertIn("whole: every bit is as it was written", shown)
        self.assertIn("is the hash of record 30", shown)
        draw = random.Random(7)
        for _ in range(20):
            at = draw.randrange(len(whole) - 1)
            changed = bytearray(whole)
            changed[at] ^= 1 << draw.randrange(8)
            with open(log, "wb") as file:
                file.write(changed)
            line = whole[:at].count(b"\n") + 1
            found = json.loads(run(ADDEND, "audit", "verify", log, "--json", code=1))
            self.assertEqual([problem["first_line"] for problem in found["problems"]], [line])
            self.assertEqual(found["problems"][0]["first_record"], line)
        lines = whole.splitlines(keepends=True)
        with open(log, "wb") as file:
            file.writelines(lines[:20])
        self.assertIn("whole", run(ADDEND, "audit", "verify", log))
        self.assertIn("no record has the hash", run(ADDEND, "audit", "verify", log, "--expect", last, code=1))


if __name__ == "__main__":
    ADDEND, *WRITERS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
