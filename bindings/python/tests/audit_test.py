"""Logs of decisions: what `AuditLog` promises beside what tests/audit shows of the bytes."""

import json
import os
import random
import subprocess
import tempfile
import threading
import unittest

import numpy as np
import torch

import addend

FOLDER = "docs/examples/models/breast_cancer/"
MODEL = FOLDER + "model.pt"
WRITER = os.environ["ADDEND_AUDIT_WRITER"]
COUNT = int(os.environ.get("ADDEND_AUDIT_RECORDS", "200"))


def options(k):
    """Options that give record `k` a fixed salt and time in place of random numbers and the clock; as in
    tests/audit/write_records.cc."""
    return {"salt": "%064x" % k, "time": "2026-01-01T00:00:00.%06dZ" % k, "context": {"application": k}}


class AuditTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        addend.set_num_threads(1)
        cls.model = addend.load_model(MODEL)
        cls.rows = np.array(addend.read_tensors(FOLDER + "heldout.safetensors")["input"])
        cls.baseline = np.array(addend.read_tensors(FOLDER + "baseline.npy")[""])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "log")

    def test_only_attributions_are_recorded(self):
        with addend.AuditLog(self.path) as log:
            row = torch.from_numpy(self.rows[:1])
            for other in (self.model.attribute(row, target=0), self.explained(0)[0], None, "text", [1.0]):
                with self.assertRaisesRegex(TypeError, r"which model\.explain\(\.\.\.\) gives, and not of a "):
                    log.append(other)
            self.assertEqual(log.records, 0)
            log.append(self.explained(0))
            self.assertEqual(log.records, 1)

    def explained(self, k):
        row = self.rows[k % len(self.rows)][None]
        return self.model.explain(addend.Input(row, dims=1, baseline=self.baseline))

    def test_records_are_those_of_every_language(self):
        with addend.AuditLog(self.path) as log:
            for k in range(COUNT):
                log.append(self.explained(k), **options(k))
        other = self.path + ".other"
        subprocess.run([WRITER, "write", other, str(COUNT), "0"], check=True)
        with open(self.path, "rb") as own, open(other, "rb") as theirs:
            self.assertEqual(own.read(), theirs.read())
        subprocess.run([WRITER, "verify", self.path, str(COUNT)], check=True)
        found = addend.AuditLog.verify(other)
        self.assertEqual((found["verified"], found["records"]), (True, COUNT))

    def test_records_say_what_was_decided(self):
        explained = self.explained(7)
        with addend.AuditLog(self.path, keep_inputs=True) as log:
            self.assertEqual((log.path, log.records, log.hash, log.torn_bytes), (self.path, 0, None, 0))
            record = log.append(explained, context={"who": "\u00e4"}, reasons=[{"text": "too high", "rank": 1}])
            again = log.append(explained)
            self.assertEqual((log.records, log.hash), (2, again["hash"]))
        self.assertEqual(again["previous"], record["hash"])
        (target,) = record["targets"]
        self.assertEqual(target["value"], explained[0].value)
        self.assertEqual(target["contributions"], list(explained[0].contributions))
        self.assertEqual((record["context"], record["reasons"][0]["rank"]), ({"who": "\u00e4"}, 1))
        # Another salt each time, so that equal inputs do not look equal.
        self.assertNotEqual(record["inputs"]["sha256"], again["inputs"]["sha256"])
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(json.loads(file.readline()), record)

    def test_records_are_computed_again(self):
        with addend.AuditLog(self.path) as log:
            for k in range(6):
                log.append(self.explained(k))
        rows = self.path + ".npy"
        np.save(rows, self.rows)
        end = log_hash(self.path)
        found = addend.AuditLog.verify(self.path, models=[MODEL], inputs=[rows], sample=4, seed=1, expect=end)
        self.assertTrue(found["verified"])
        self.assertEqual((found["computed"]["same"], found["computed"]["of"]), (4, 6))
        without = addend.AuditLog.verify(self.path, models=[MODEL])
        self.assertFalse(without["verified"])
        self.assertEqual(without["computed"]["not_computed"], 6)
        self.assertIn("no file of inputs is given", without["computed"]["records"][0]["reason"])
        np.save(rows, self.rows * 2)
        other = addend.AuditLog.verify(self.path, models=[MODEL], inputs=[rows])
        self.assertIn("holds tensors with its digest", other["computed"]["records"][0]["reason"])

    def computed(self, model, attribution):
        """Appends the record of an attribution, and computes it again from the file of the model alone."""
        path = self.path + ".pt"
        torch.jit.save(model, path)
        with addend.AuditLog(self.path, keep_inputs=True) as log:
            log.append(attribution(addend.load_model(path)))
        found = addend.AuditLog.verify(self.path, models=[path])
        return found["computed"]["records"][-1]["result"]

    def test_memory_of_the_caller_may_be_used_again(self):
        class Masked(torch.nn.Module):
            def forward(self, x, mask):
                return torch.relu(x * mask).sum(1)

        x, mask, zero = (np.array([numbers], np.float32) for numbers in ([1, -2, 3, 4], [1, 1, 0.5, 1], [0] * 4))
        parts, labels = np.stack([x / 4, x / 2]), np.array([[0, 1, 1, 0]])
        for question in (
            lambda model: model.explain(addend.Input(x, dims=1, baseline=zero), mask, targets="0"),
            lambda model: model.plan(addend.Input(x, dims=1, baseline=0.5), mask, targets="0").attribute(x, mask),
            lambda model: model.explain(addend.Input(x, parts=parts), mask, targets="0"),
            lambda model: model.explain(
                x, mask, inside=addend.Inside("aten::relu", labels=labels, baseline=zero), targets="0"
            ),
        ):
            kept = [array.copy() for array in (x, mask, zero, parts, labels)]

            def then_written(model):
                attribution = question(model)
                for array in (x, mask, zero, parts, labels):
                    array[:] = array + 1
                return attribution

            self.assertEqual(self.computed(torch.jit.script(Masked()), then_written), "same")
            for array, before in zip((x, mask, zero, parts, labels), kept):
                array[:] = before

    def test_a_baseline_of_a_file_is_what_was_read(self):
        rows = self.path + ".npy"
        x = np.array([[1.0, 2.0, 3.0]], np.float32)
        concepts = {"format": "addend.concepts", "version": 1, "text": "{concept} {value} on {baseline}"}

        def asked(model):
            np.save(rows, np.full((5, 3), 0.5, np.float32))
            attribution = model.explain(addend.Input(x, dims=1, baseline="mean:" + rows), targets="0,1")
            np.save(rows, np.full((5, 3), 4, np.float32))
            self.assertIn("on 0.5", attribution.reasons(concepts)[0].reasons[0].text)
            self.assertEqual(attribution.to_dict()["inputs"][0]["baseline"], "mean:" + rows)
            return attribution

        torch.manual_seed(0)
        model = torch.jit.script(torch.nn.Linear(3, 2))
        self.assertEqual(self.computed(model, asked), "same")

    def test_relevance_of_operators_is_computed_again(self):
        class Attention(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.query, self.key, self.value, self.out = (torch.nn.Linear(6, n) for n in (6, 6, 6, 3))

            def forward(self, x):
                scores = torch.matmul(self.query(x), self.key(x).transpose(-2, -1)) / 6**0.5
                return self.out(torch.matmul(scores.softmax(-1), self.value(x))).mean(1)

        torch.manual_seed(1)
        model, x = torch.jit.script(Attention()), torch.randn(2, 5, 6)
        for operators in (False, True):

            def asked(loaded):
                return loaded.explain(addend.Input(x, dims=1, baseline=0.1), targets="0,1", operators=operators)

            self.assertEqual(self.computed(model, asked), "same")

    def test_a_bit_that_changed_is_found_and_named(self):
        with addend.AuditLog(self.path) as log:
            for k in range(3):
                log.append(self.explained(k))
        with open(self.path, "rb") as file:
            whole = file.read()
        draw = random.Random(31)
        for _ in range(40):
            at = draw.randrange(len(whole))
            changed = bytearray(whole)
            changed[at] ^= 1 << draw.randrange(8)
            with open(self.path, "wb") as file:
                file.write(changed)
            found = addend.AuditLog.verify(self.path)
            line = whole.count(b"\n", 0, at) + 1
            self.assertFalse(found["verified"])
            (problem,) = found["problems"]
            self.assertEqual((problem["first_record"], problem["first_line"]), (line, line))
            self.assertRegex(problem["message"], "^records? %d " % line)

    def test_one_log_at_a_time_and_many_threads(self):
        log = addend.AuditLog(self.path)
        with self.assertRaisesRegex(addend.FailedPrecondition, "open as a log already"):
            addend.AuditLog(self.path)
        explained = [self.explained(k) for k in range(4)]
        threads = [threading.Thread(target=lambda one=one: [log.append(one) for _ in range(20)]) for one in explained]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.close()
        self.assertEqual(addend.AuditLog.verify(self.path)["records"], 80)
        with addend.AuditLog(self.path) as again:
            self.assertEqual(again.records, 80)

    def test_live_models_have_the_digest_that_they_are_given(self):
        torch.manual_seed(1)
        live = addend.compile(torch.nn.Linear(3, 2))
        explained = live.explain(addend.Input(torch.ones(1, 3), dims=1))
        with addend.AuditLog(self.path) as log:
            self.assertIsNone(log.append(explained)["model"]["sha256"])
            self.assertEqual(log.append(explained, model_sha256="a" * 64)["model"]["sha256"], "a" * 64)
            with self.assertRaisesRegex(addend.InvalidArgument, "64 hexadecimal digits"):
                log.append(explained, model_sha256="a")
            with self.assertRaisesRegex(addend.InvalidArgument, "knows this one's digest"):
                log.append(self.explained(0), model_sha256="a" * 64)
        self.assertTrue(addend.AuditLog.verify(self.path)["verified"])

    def test_what_is_no_log_is_left_alone(self):
        with open(self.path, "w") as file:
            file.write("a diary\n")
        with self.assertRaisesRegex(addend.InvalidArgument, "no log of decisions"):
            addend.AuditLog(self.path)
        with open(self.path) as file:
            self.assertEqual(file.read(), "a diary\n")
        with self.assertRaises(addend.NotFound):
            addend.AuditLog.verify(self.path + ".none")
        with self.assertRaisesRegex(addend.InvalidArgument, "without a model"):
            addend.AuditLog.verify(self.path, sample=3)
        with self.assertRaisesRegex(addend.InvalidArgument, "2\\^53"):
            os.remove(self.path)
            addend.AuditLog(self.path).append(self.explained(0), context=2**60 + 1)


def log_hash(path):
    with addend.AuditLog(path) as log:
        return log.hash


if __name__ == "__main__":
    unittest.main()
