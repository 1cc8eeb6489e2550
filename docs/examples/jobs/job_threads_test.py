"""Threads of Java compute the bytes that one process of Python does, and go on after a shard is lost."""

import json
import os
import subprocess
import tempfile
import unittest

import addend

PROGRAM = os.path.abspath("docs/examples/jobs/job_threads.sh")
TABLE = os.path.abspath("docs/examples/models/breast_cancer")


class JobThreadsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.plan = os.path.join(folder.name, "plan.json")
        self.out = os.path.join(folder.name, "plan.out")

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def test_the_bytes_of_one_process(self):
        rows = os.path.join(TABLE, "heldout.safetensors")
        row = addend.Input(addend.read_tensors(rows)["input"][:1], dims=1, baseline=0)
        made = addend.Job.plan(self.plan, os.path.join(TABLE, "model.pt"), row, rows=[rows], targets="0", batch=8, shards=9)
        with addend.Job(self.plan) as job:
            for shard in range(job.shards):
                job.run(shard)
        single = addend.Job.merge(self.plan)["sha256"]
        subprocess.check_call(["rm", "-r", self.out])

        for lost in (None, 3):
            if lost is not None:
                shards = os.path.join(self.out, "shards")
                for name in os.listdir(shards):
                    if name.startswith("%05d." % lost):
                        os.remove(os.path.join(shards, name))
            done = self.run_program(self.plan, "2", "3")
            self.assertEqual(done.returncode, 0, done.stderr)
            first, merged = done.stdout.splitlines()
            self.assertEqual(first, "%d of %d shards are there" % (made["shards"], made["shards"]))
            self.assertEqual(json.loads(merged)["sha256"], single)

    def test_what_is_no_plan(self):
        done = self.run_program(self.plan)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("plan.json", done.stderr)
        self.assertEqual(self.run_program().returncode, 2)


if __name__ == "__main__":
    unittest.main()
