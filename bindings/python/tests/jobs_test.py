"""Jobs: each row's attribution, by workers that know nothing of each other."""

import json
import os
import tempfile
import threading
import unittest

import numpy as np

import addend

MODEL = "docs/examples/models/breast_cancer/model.pt"
ROWS = os.path.abspath("docs/examples/models/breast_cancer/heldout.safetensors")


class JobTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.plan = os.path.join(self.folder, "plan.json")
        self.rows = np.asarray(addend.read_tensors(ROWS)["input"])

    def make(self, **options):
        given = dict(rows=[ROWS], targets="0", batch=16, shards=5)
        given.update(options)
        return addend.Job.plan(self.plan, MODEL, addend.Input(self.rows[:1], dims=1, baseline=0), **given)

    def merged(self):
        return addend.read_tensors(addend.Job.merge(self.plan)["path"])

    def test_threads_compute_what_one_attribution_of_each_row_gives(self):
        made = self.make()
        self.assertEqual((made["rows"], made["components"]), self.rows.shape)

        def work(first):
            with addend.Job(self.plan) as job:
                for shard in range(first, job.shards, 2):
                    self.assertEqual(job.run(shard)["shard"], shard)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        status = addend.Job.status(self.plan)
        self.assertEqual((status["done"], status["missing"], status["wrong"]), (made["shards"], [], []))
        merged = self.merged()
        model = addend.load_model(MODEL)
        for row in (0, 17, len(self.rows) - 1):
            alone = model.explain(addend.Input(self.rows[row : row + 1], dims=1, baseline=0), targets="0")[0]
            own = np.asarray(merged["contributions"])[row]
            np.testing.assert_allclose(own, alone.contributions, atol=1e-5 * np.abs(own).sum())
            self.assertAlmostEqual(np.asarray(merged["value"])[row], alone.value, places=4)

    def test_reasons_groups_and_bad_rows(self):
        rows = self.rows[:60].copy()
        rows[7, 2] = np.nan
        path = os.path.join(self.folder, "rows.safetensors")
        addend.write_tensors(path, {"input": rows, "half": np.arange(60) % 2})
        self.make(rows=[path], groups=["half"], concepts={"format": "addend.concepts", "version": 1, "at_most": 2},
                  classes=["malignant", "benign"], contributions=False)
        with addend.Job(self.plan) as job:
            receipts = [job.run(shard) for shard in range(job.shards)]
            self.assertEqual(job.run(0), receipts[0])
            self.assertNotEqual(job.run(0, again=True)["run"], receipts[0]["run"])
        self.assertEqual([own["row"] for receipt in receipts for own in receipt["refused"]], [7])
        merged = self.merged()
        self.assertNotIn("contributions", merged)
        self.assertEqual(np.asarray(merged["reasons"]).shape, (60, 2))
        with open(os.path.join(self.folder, "plan.out", "merged.json")) as file:
            groups = json.load(file)["aggregates"][0]["groups"][0]
        self.assertEqual({own["text"]: own["rows"] for own in groups}, {"0": 30, "1": 29})

    def test_what_is_refused(self):
        with self.assertRaisesRegex(addend.InvalidArgument, "safetensors or csv"):
            self.make(format="parquet")
        with self.assertRaisesRegex(addend.NotFound, "nowhere"):
            self.make(rows=["/nowhere.npy"])
        with self.assertRaisesRegex(addend.NotFound, "none.json"):
            addend.Job(os.path.join(self.folder, "none.json"))
        self.make()
        with addend.Job(self.plan) as job:
            with self.assertRaisesRegex(addend.InvalidArgument, "no shard"):
                job.run(job.shards)
            self.assertEqual(repr(job), "Job(%d shards)" % job.shards)
        with self.assertRaisesRegex(addend.FailedPrecondition, "shards are missing"):
            addend.Job.merge(self.plan)
        with open(self.plan) as file:
            text = file.read()
        with open(self.plan, "w") as file:
            file.write(text.replace('"batch": 16', '"batch": 8'))
        with self.assertRaisesRegex(addend.InvalidArgument, "was changed since"):
            addend.Job(self.plan)


if __name__ == "__main__":
    unittest.main()
