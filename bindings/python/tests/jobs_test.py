"""Jobs: each row's attribution, by workers that know nothing of each other."""

import ctypes
import gc
import json
import os
import pathlib
import shutil
import tempfile
import threading
import unittest

import numpy as np

import addend
from addend import _arrow

MODEL = "docs/examples/models/breast_cancer/model.pt"
ROWS = os.path.abspath("docs/examples/models/breast_cancer/heldout.safetensors")


def unwritten(struct):
    """A struct in memory that holds anything, as consumers of a stream pass it."""
    made = struct()
    ctypes.memset(ctypes.byref(made), 0x5A, ctypes.sizeof(made))
    return made


def read_stream(table, most=None):
    """Names, formats and columns of an Arrow stream, read as the specification of the C interface says."""
    capsule = table.__arrow_c_stream__()
    stream = _arrow.Stream.from_address(_arrow.pointer(capsule, b"arrow_array_stream"))

    def require(code):
        if code != 0:
            raise ValueError(ctypes.string_at(stream.get_last_error(ctypes.byref(stream))).decode())

    schema = unwritten(_arrow.Schema)
    require(stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)))
    assert schema.format == b"+s" and not schema.dictionary and not schema.metadata
    fields = [schema.children[k].contents for k in range(schema.n_children)]
    names, formats = [field.name.decode() for field in fields], [field.format for field in fields]
    schema.release(ctypes.addressof(schema))
    assert not schema.release
    columns = [[] for _ in names]
    while most is None or most > 0:
        most = None if most is None else most - 1
        batch = unwritten(_arrow.Array)
        require(stream.get_next(ctypes.byref(stream), ctypes.byref(batch)))
        if not batch.release:
            break
        for k, form in enumerate(formats):
            child = batch.children[k].contents
            assert not batch.dictionary and not child.dictionary
            assert (child.length, child.n_buffers) == (batch.length, 3 if form == b"u" else 2)
            if form == b"u":
                offsets = (ctypes.c_int32 * (child.length + 1)).from_address(child.buffers[1])
                text = ctypes.string_at(child.buffers[2], offsets[child.length])
                values = [text[offsets[i] : offsets[i + 1]].decode() for i in range(child.length)]
            else:
                kind = ctypes.c_double if form == b"g" else ctypes.c_int64
                values = list((kind * child.length).from_address(child.buffers[1]))
            if child.buffers[0]:
                bits = ctypes.string_at(child.buffers[0], (child.length + 7) // 8)
                values = [value if bits[i // 8] >> (i % 8) & 1 else None for i, value in enumerate(values)]
            assert child.null_count == values.count(None)
            columns[k] += values
        batch.release(ctypes.addressof(batch))
        assert not batch.release
    return names, formats, columns


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

    def make_another(self, **options):
        """A plan in the place of the first, whose results stay. `Job.plan` refuses to write it there."""
        first, self.plan = self.plan, os.path.join(self.folder, "another.json")
        self.make(**options)
        os.replace(self.plan, first)
        self.plan = first

    def merged(self):
        return addend.read_tensors(addend.Job.merge(self.plan)["path"])

    def test_names_of_inputs_are_names_of_columns(self):
        names = ["measurement %d" % k for k in range(self.rows.shape[1])]
        given = addend.Input(self.rows[:1], dims=1, baseline=0, names=names)
        addend.Job.plan(self.plan, MODEL, given, rows=[ROWS], targets="0", batch=64, shards=1)
        with addend.Job(self.plan) as job:
            job.run(0)
        addend.Job.merge(self.plan)
        columns, _, _ = read_stream(addend.Job.results(self.plan))
        self.assertEqual([name for name in columns if name in names], names)

    def test_the_device_is_one_that_libtorch_knows(self):
        with self.assertRaisesRegex(addend.Error, '"gpu" names no device; use cpu, cuda or cuda:1'):
            self.make(device="gpu")
        self.assertEqual(self.make(device="cpu")["shards"], 5)

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

    def test_labels_mean_the_same_of_any_number_of_rows(self):
        """Labels of the columns of an image, of which there are as many as rows in one of the batches."""
        path = os.path.join(self.folder, "images.npy")
        images = np.random.RandomState(3).rand(17, 1, 8, 8).astype(np.float32)
        np.save(path, images)
        digits = os.path.abspath("docs/examples/models/digits/model.pt2")
        labels = np.arange(8)
        model = addend.load_model(digits)
        alone = [
            model.explain(addend.Input(image[None], labels=labels, baseline=0), targets="3")[0].contributions for image in images
        ]
        for batch in (3, 8, 9):
            with self.subTest(batch=batch):
                shutil.rmtree(os.path.join(self.folder, "plan.out"), ignore_errors=True)
                row = addend.Input(images[:1], labels=labels, baseline=0)
                addend.Job.plan(self.plan, digits, row, rows=[path], targets="3", batch=batch, shards=1)
                with addend.Job(self.plan) as job:
                    job.run(0)
                found = np.asarray(self.merged()["contributions"])
                np.testing.assert_allclose(found, alone, atol=1e-4 * np.abs(found).sum(1).max())

    def test_what_runs_say_of_rows_reaches_every_document(self):
        import torch

        class Branches(torch.nn.Module):
            def forward(self, x):
                return torch.where(x[:, :1] > 1, x.sum(1, keepdim=True), x[:, 1:2] * 2 - 1)

        rows = torch.tensor([[0.0, 2.0], [2.0, 3.0], [0.5, 1.0], [3.0, 1.0], [0.0, 0.0]])
        model = os.path.join(self.folder, "branches.pt")
        torch.jit.script(Branches()).save(model)
        path = os.path.join(self.folder, "rows.npy")
        np.save(path, rows.numpy())
        given = addend.Input(rows[:1].numpy(), dims=1, baseline=0)
        addend.Job.plan(self.plan, model, given, rows=path, targets="0", batch=1, shards=5)
        job = addend.Job(self.plan)
        for shard in range(job.shards):
            job.run(shard)
        with self.assertWarnsRegex(addend.AddendWarning, "on the baseline some are others"):
            merged = addend.Job.merge(self.plan)
        notes = merged["notes"]
        about = [note for note in notes if "on the baseline some are others" in note["note"]]
        # Rows 1 and 3 go another way than the baseline.
        self.assertEqual([(note["row"], note["rows"], note["warning"]) for note in about], [(1, 2, True)])
        self.assertTrue(any(note["note"].startswith("the reference is not what the model gives") for note in notes))
        references = [note for note in notes if "all rows have one baseline" in note["note"]]
        self.assertEqual(len(references), 1)
        self.assertIn("from -1 to 0", references[0]["note"])
        self.assertEqual(addend.Job.status(self.plan)["notes"], notes)
        self.assertEqual(json.loads(addend.read_tensors(merged["path"]).metadata("notes")), notes)
        with self.assertWarns(addend.AddendWarning):
            self.assertEqual(addend.Job.results(self.plan).notes, notes)

    def test_a_job_that_goes_well_warns_of_nothing(self):
        import warnings

        self.make()
        job = addend.Job(self.plan)
        for shard in range(job.shards):
            job.run(shard)
        with warnings.catch_warnings():
            warnings.simplefilter("error", addend.AddendWarning)
            merged = addend.Job.merge(self.plan)
        self.assertTrue(all(not note["warning"] for note in merged["notes"]))

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

    def make_results(self):
        rows = self.rows[:60].copy()
        rows[7, 2] = np.nan
        path = os.path.join(self.folder, "rows.npy")
        np.save(path, rows)
        self.make(rows=[path], targets=["0", "1"], batch=8, shards=3, classes=["bad", "good"],
                  concepts={"format": "addend.concepts", "version": 1, "at_most": 2})
        with addend.Job(self.plan) as job:
            for shard in range(job.shards):
                job.run(shard)
        return addend.Job.results(self.plan)

    def test_outputs_are_those_of_the_model(self):
        self.assertEqual(self.make(outputs="output")["rows"], len(self.rows))
        with self.assertRaisesRegex(addend.Error, "the model has no output.7 that is floating-point"):
            self.make_another(outputs=["output"], at="output.7")

    def test_results_as_a_frame(self):
        results = self.make_results()
        merged = {name: np.asarray(tensor) for name, tensor in self.merged().items()}
        frame = results.to_pandas()
        self.assertEqual(list(frame.columns), results.columns)
        self.assertEqual(list(frame["row"]), [k // 2 for k in range(120)])
        for name in ("value", "reference", "leftover", "target"):
            np.testing.assert_array_equal(frame[name], merged[name].reshape(120))
        for k in range(30):
            np.testing.assert_array_equal(frame["column %d" % k], merged["contributions"][:, :, k].reshape(120))
        sizes = np.where(merged["reasons"] < 0, np.nan, merged["reason_contributions"])[:, :, 1]
        np.testing.assert_array_equal(frame["reason 2 contribution"], sizes.reshape(120))
        for line, number in enumerate(merged["reasons"][:, :, 0].reshape(120)):
            self.assertEqual(frame["reason 1"][line], None if number < 0 else "column %d" % number)
        self.assertEqual([(line, reason) for line, reason in enumerate(frame["refused"]) if reason is not None],
                         [(14, frame["refused"][14]), (15, frame["refused"][14])])
        self.assertIn("no finite number", frame["refused"][14])
        part = results.to_pandas(1)
        self.assertEqual((part["row"].iloc[0], len(part)), (24, 48))

    def test_results_through_arrow(self):
        results = self.make_results()
        frame = results.to_pandas()
        names, formats, columns = read_stream(results)
        self.assertEqual(names, results.columns)
        self.assertEqual(set(formats), {b"l", b"g", b"u"})
        for name, column in zip(names, columns):
            expected = [None if own is None or own != own else own for own in frame[name]]
            self.assertEqual(column, expected, name)
        # Streams that nobody reads, or not to the end, keep nothing.
        def held():
            gc.collect()
            return sum(type(one).__name__ in ("_Held", "_Source") for one in gc.get_objects())

        self.assertEqual(held(), 0)
        capsule = results.__arrow_c_stream__()
        self.assertGreater(held(), 0)
        del capsule
        read_stream(results, most=1)
        self.assertEqual(held(), 0)

    def test_results_through_pyarrow(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not installed")
        results = self.make_results()
        table = pyarrow.table(results)
        frame = results.to_pandas()
        self.assertEqual(table.column_names, results.columns)
        for name in results.columns:
            self.assertEqual(table[name].to_pylist(), [None if own is None or own != own else own for own in frame[name]])

    def test_results_that_are_not_there_or_damaged(self):
        results = self.make_results()
        shards = os.path.join(self.folder, "plan.out", "shards")
        name = [name for name in sorted(os.listdir(shards)) if name.endswith(".safetensors")][1]
        path = os.path.join(shards, name)
        with open(path, "r+b") as file:
            file.seek(-3, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-3, os.SEEK_END)
            file.write(bytes([byte ^ 1]))
        results.to_pandas(0)
        with self.assertRaisesRegex(addend.FailedPrecondition, "is damaged"):
            results.to_pandas()
        with self.assertRaisesRegex(ValueError, "is damaged"):
            read_stream(results)
        os.rename(path, os.path.join(shards, name.replace(name.split(".")[1], "0" * 64)))
        shutil.copy(os.path.join(shards, name.replace(name.split(".")[1], "0" * 64)), path)
        with self.assertRaisesRegex(addend.FailedPrecondition, "shard 1 has different results"):
            addend.Job.results(self.plan)
        os.remove(path)
        os.remove(os.path.join(shards, name.replace(name.split(".")[1], "0" * 64)))
        with self.assertRaisesRegex(addend.FailedPrecondition, "1 of 3 shards are missing, the first is 1"):
            addend.Job.results(self.plan)
        shutil.rmtree(os.path.join(self.folder, "plan.out"))
        self.make(format="csv")
        with self.assertRaisesRegex(addend.InvalidArgument, "CSV"):
            addend.Job.results(self.plan)

    def test_results_of_another_plan(self):
        results = self.make_results()
        # The other plan has as many shards as before, of other rows.
        path = os.path.join(self.folder, "rows.npy")
        np.save(path, self.rows[60:120])
        other = dict(rows=[path], targets=["0", "1"], batch=8, shards=3)
        with self.assertRaisesRegex(addend.FailedPrecondition, "plan.out holds the results of another plan"):
            self.make(**other)
        self.make_another(**other)
        with self.assertRaisesRegex(addend.FailedPrecondition,
                                    "(?s)00000.*belongs to another plan.*Remove what is wrong from .*plan.out/shards"):
            addend.Job.results(self.plan)
        # Results that were found before are still those of their plan, if their receipts are.
        results.to_pandas(0)
        receipts = [path.replace(".safetensors", ".json") for path, _ in results._files]
        with open(receipts[0]) as file:
            text = file.read()
        for wrong, why in ((text.replace("finite", "infinite"), "is damaged: its hash"), (text[:50], "is no receipt"),
                           ("[]", "is no receipt")):
            with open(receipts[0], "w") as file:
                file.write(wrong)
            with self.assertRaisesRegex(addend.FailedPrecondition, "00000.*json " + why):
                results.to_pandas(0)
        shutil.copy(receipts[1], receipts[0])
        with self.assertRaisesRegex(addend.FailedPrecondition, "00000.*json belongs to another plan or another shard"):
            results.to_pandas(0)

    def test_results_of_a_plan_that_was_changed(self):
        self.make_results()
        with open(self.plan) as file:
            plan = json.load(file)
        plan["names"]["components"].reverse()
        plan["shards"]["rows"] = 40
        with open(self.plan, "w") as file:
            json.dump(plan, file)
        with self.assertRaisesRegex(addend.InvalidArgument, "plan.json was changed since"):
            addend.Job.results(self.plan)
        del plan["names"]
        with open(self.plan, "w") as file:
            json.dump(plan, file)
        with self.assertRaisesRegex(addend.InvalidArgument, "plan.json"):
            addend.Job.results(self.plan)
        with self.assertRaisesRegex(addend.NotFound, "none.json"):
            addend.Job.results(os.path.join(self.folder, "none.json"))

    def test_components_that_are_called_like_columns(self):
        results = self.make_results()
        expected = results.to_pandas()
        # Plans refuse such names; what has them all the same loses nothing.
        for place, name in ((5, "value"), (6, "row"), (7, "column 3")):
            results._fields[place] = results._fields[place]._replace(name=name)
            results.columns[place] = name
        frame = results.to_pandas()
        self.assertEqual(list(frame.columns), results.columns)
        self.assertEqual(list(results.no_rows().columns), results.columns)
        for place in range(len(results.columns)):
            np.testing.assert_array_equal(frame.iloc[:, place], expected.iloc[:, place])

    def test_shards_that_are_not_there(self):
        results = self.make_results()
        for shard in (-1, 3, 2**70):
            with self.assertRaisesRegex(addend.InvalidArgument, "there is no shard %d: the plan has 3, from 0" % shard):
                results.to_pandas(shard)
            with addend.Job(self.plan) as job, self.assertRaisesRegex(addend.InvalidArgument, "no shard %d" % shard):
                job.run(shard)
        for shard in ("0", 1.0):
            with self.assertRaisesRegex(TypeError, "a shard is a whole number, not " + repr(shard)):
                results.to_pandas(shard)
            with addend.Job(self.plan) as job, self.assertRaisesRegex(TypeError, "a shard is a whole number"):
                job.run(shard)
        self.assertEqual(results.to_pandas(np.int64(2))["row"].iloc[0], 48)

    def test_texts_that_are_too_long_together(self):
        results = self.make_results()
        self.addCleanup(setattr, _arrow, "_MOST_BYTES", _arrow._MOST_BYTES)
        _arrow._MOST_BYTES = 100
        with self.assertRaisesRegex(ValueError, "of 100 at most; plan more shards"):
            read_stream(results)

    def test_files_and_names(self):
        expected = self.make()["sha256"]
        self.assertEqual(self.make(rows=ROWS)["sha256"], expected)
        self.assertEqual(self.make(rows=pathlib.Path(ROWS))["sha256"], expected)
        self.assertEqual(self.make(rows=iter([pathlib.Path(ROWS)]))["sha256"], expected)
        for rows in (self.rows, 3, [None]):
            with self.assertRaisesRegex(TypeError, "rows are .npy or .safetensors files with the rows of each input, not a"):
                self.make(rows=rows)
        for word in ("names", "groups", "classes"):
            for given in ("abc", 3, [1, 2]):
                with self.assertRaisesRegex(TypeError, word + " are a list of texts, not"):
                    self.make(**{word: given})

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
