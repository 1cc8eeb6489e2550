"""An ONNX model behind what takes a model: plans, recordings, jobs, logs of decisions, and where things are in it."""

import hashlib
import os
import sys
import tempfile
import unittest

import numpy as np

import addend

MODELS = "tests/conformance/models/"
TABLE = "docs/examples/models/breast_cancer/"
sys.path.insert(0, MODELS)

import onnx_file  # noqa: E402


def tensors_of(path):
    return {name: np.array(value) for name, value in addend.read_tensors(path).items()}


def split(name):
    """A model's input, and another one of its size, both split along dimension 1."""
    tensors = tensors_of(MODELS + name + ".safetensors")
    value = tensors[next(key for key in ("table", "image", "sequence", "tokens") if key in tensors)]
    other = np.roll(value, 1, axis=0) if len(value) > 1 else value * np.float32(0.5)
    return [addend.Input(given, 1, baseline=tensors["baseline"]) for given in (value, other)]


def calls(program):
    """The operators of a recorded program."""
    return [node for node in program.graph()["nodes"] if node["kind"] == "call"]


class DoorsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_plans_give_the_bits_of_attributions(self):
        for name in ("mlp", "cnn", "lstm", "transformer_encoder", "nested"):
            with self.subTest(name):
                model = addend.load_model(MODELS + name + ".onnx")
                first, other = split(name)
                plan = model.plan(first, targets=[(0, 1), (1, 0)])
                for given in (other, first):
                    alone = model.explain(given, targets=[(0, 1), (1, 0)])
                    self.assertEqual(
                        [list(target.contributions) for target in plan.attribute(given.value)],
                        [list(target.contributions) for target in alone],
                    )

    def test_recordings_give_the_bits_of_the_model(self):
        for name in ("mlp", "relu_network", "lstm", "lstm_loop", "gru", "transformer_encoder"):
            with self.subTest(name):
                model = addend.load_model(MODELS + name + ".onnx")
                first, other = split("lstm" if name == "lstm_loop" else name)
                model.record(first.value).save(self.path(name))
                program = addend.Program.load(self.path(name))
                for given in (first.value, other.value):
                    np.testing.assert_array_equal(np.array(program(given)), np.array(model.run(given)[0]))

    def test_recordings_learn_sizes(self):
        model = addend.load_model(MODELS + "mlp.onnx")
        rows = np.random.default_rng(0).standard_normal((7, 6)).astype(np.float32)
        program = model.record(rows[:2], learn_sizes=True)
        np.testing.assert_array_equal(np.array(program(rows)), np.array(model.run(rows)[0]))

    def test_jobs_compute_each_row(self):
        rows = tensors_of(TABLE + "heldout.safetensors")["input"][:40]
        np.save(self.path("rows.npy"), rows)
        plan = self.path("plan.json")
        given = addend.Input(rows[:1], 1, baseline=0)
        addend.Job.plan(plan, TABLE + "model.onnx", given, rows=[self.path("rows.npy")], targets="0", batch=16, shards=2)
        with addend.Job(plan) as job:
            for shard in range(job.shards):
                job.run(shard)
        merged = tensors_of(addend.Job.merge(plan)["path"])
        # TorchScript rows give the known numbers.
        model = addend.load_model(TABLE + "model.pt")
        for row in range(0, 40, 7):
            alone = model.explain(addend.Input(rows[row : row + 1], 1, baseline=0), targets="0")[0]
            known = np.array(alone.contributions)
            np.testing.assert_allclose(merged["contributions"][row], known, rtol=0, atol=1e-5 * np.abs(known).max())
            self.assertAlmostEqual(merged["value"][row], alone.value, delta=1e-5 * np.abs(known).max())

    def written_in_two_files(self):
        """y = relu(x w + b) with w in a file beside the model; returns the paths of both."""
        weights = np.arange(1, 13, dtype=np.float32).reshape(6, 2) / 8
        graph = onnx_file.Graph("two_files")
        x = graph.input("x", ["rows", 6])
        product = graph.node("MatMul", [x, graph.floats_elsewhere("w", [6, 2], "weights.bin")])
        graph.node("Relu", [graph.node("Add", [product, graph.floats("b", [2], [0.5, -0.5])])], to="y")
        graph.output("y", ["rows", 2])
        with open(self.path("model.onnx"), "wb") as file:
            file.write(onnx_file.model(graph, 17, 8))
        with open(self.path("weights.bin"), "wb") as file:
            file.write(weights.tobytes())
        return self.path("model.onnx"), self.path("weights.bin")

    def test_the_digest_is_that_of_all_files(self):
        model_path, weights_path = self.written_in_two_files()

        def digest(path):
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

        def of_both():
            listed = "%s  model.onnx\n%s  weights.bin\n" % (digest(model_path), digest(weights_path))
            return hashlib.sha256(listed.encode()).hexdigest()

        before = addend.Model.sha256(model_path)
        self.assertEqual(before, of_both())
        with addend.AuditLog(self.path("log")) as log:
            explained = addend.load_model(model_path).explain(addend.Input(np.ones((1, 6), np.float32), 1, baseline=0))
            self.assertEqual(log.append(explained)["model"]["sha256"], before)
        with open(weights_path, "r+b") as file:
            file.write(b"\x01")
        self.assertEqual(addend.Model.sha256(model_path), of_both())
        self.assertNotEqual(addend.Model.sha256(model_path), before)
        os.remove(weights_path)
        with self.assertRaisesRegex(addend.NotFound, "weights.bin"):
            addend.Model.sha256(model_path)

    def test_a_log_tells_of_one_other_byte_of_the_weights(self):
        model_path, weights_path = self.written_in_two_files()
        rows = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
        np.save(self.path("rows.npy"), rows)
        log_path = self.path("log")
        model = addend.load_model(model_path)
        with addend.AuditLog(log_path) as log:
            for row in rows:
                log.append(model.explain(addend.Input(row[None], 1, baseline=0)))
        del model

        def verify(model=model_path):
            return addend.AuditLog.verify(log_path, models=[model], inputs=[self.path("rows.npy")])

        found = verify()
        self.assertTrue(found["verified"], found)
        self.assertEqual((found["computed"]["same"], found["computed"]["of"]), (4, 4))
        # The model under another name, and its weights beside it as they were.
        os.rename(model_path, self.path("renamed.onnx"))
        self.assertTrue(verify(self.path("renamed.onnx"))["verified"])
        os.rename(self.path("renamed.onnx"), model_path)
        with open(weights_path, "r+b") as file:
            file.seek(17)
            (byte,) = file.read(1)
            file.seek(17)
            file.write(bytes([byte ^ 1]))
        found = verify()
        self.assertFalse(found["verified"])
        self.assertEqual((found["computed"]["same"], found["computed"]["other_models"]), (0, 4))

    def test_positions_come_from_names_of_nodes(self):
        model = addend.load_model(MODELS + "transformer_encoder.onnx")
        tokens = tensors_of(MODELS + "transformer_encoder.safetensors")["tokens"]
        paths = {node["module_path"] for node in calls(model.record(tokens))}
        self.assertTrue({"encoder.layers.1.norm2", "encoder.layers.0.self_attn", "embedding"} <= paths, paths)

    def test_positions_come_from_the_newer_exporter(self):
        graph = onnx_file.Graph("positions")
        metadata = {
            "pkg.torch.onnx.name_scopes": "['', 'head', 'head.norm', 'det']",
            "pkg.torch.onnx.stack_trace": '  File "/src/network.py", line 31, in forward\n    return torch.special.i0e(x)\n',
        }
        x = graph.input("x", ["rows", 6])
        graph.node("Relu", [x], to="y", metadata=metadata)
        graph.output("y", ["rows", 6])
        model = addend.load_model(onnx_file.model(graph, 17, 8))
        (node,) = calls(model.record(np.ones((2, 6), np.float32)))
        self.assertEqual(node["module_path"], "head.norm")
        self.assertEqual([(frame["file"], frame["line"]) for frame in node["frames"]], [("/src/network.py", 31)])


if __name__ == "__main__":
    unittest.main()
