"""--device: the same numbers on a device that is not the CPU, which is made of the CPU (tests/far)."""

import json
import os
import sys
import unittest

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_testing import JobTest, Network, read_safetensors  # noqa: E402

FAR = "privateuseone"
ENVIRONMENT = dict(os.environ, LD_PRELOAD=os.path.abspath("tests/far/libfar.so"))


class DeviceTest(JobTest):
    def setUp(self):
        super().setUp()
        self.network = self.model(Network(5))
        self.numbers(12, 5)
        self.sample = (self.network, "--input", self.path("rows.npy"), "--row", "3")

    def document(self, *arguments):
        done = self.run_program(*arguments, "--json", env=ENVIRONMENT)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def same_numbers(self, near, far, where=""):
        """Two documents that differ in nothing but the last digits of their numbers."""
        self.assertEqual(type(near), type(far), where)
        if isinstance(near, dict):
            self.assertEqual(near.keys(), far.keys(), where)
            for key in near:
                if key not in ("seconds", "rows_per_second", "path", "sha256"):
                    self.same_numbers(near[key], far[key], where + "." + key)
        elif isinstance(near, list):
            self.assertEqual(len(near), len(far), where)
            for k, (one, other) in enumerate(zip(near, far)):
                self.same_numbers(one, other, "%s[%d]" % (where, k))
        elif isinstance(near, float):
            # How much of an error is left says how sums were rounded; both devices are within their tolerance.
            exact = not where.endswith(("recovery_error", "leftover", "leftover_without", "asymmetry", "conditioning"))
            self.assertAlmostEqual(near, far, places=5 if exact else 1, msg=where)
        else:
            self.assertEqual(near, far, where)

    def test_explanations(self):
        for command in ("attribute", "interactions"):
            near, far = (self.document(command, *self.sample, *device) for device in ((), ("--device", FAR)))
            del near["libtorch"], far["libtorch"]
            if command == "attribute":
                del near["report"], far["report"]
                self.assertEqual(len(near["targets"][0]["contributions"]), 5)
            self.same_numbers(near, far)

    def test_components_in_files(self):
        found = []
        for k, device in enumerate(((), ("--device", FAR))):
            out = self.path("out%d.safetensors" % k)
            self.document("decompose", *self.sample, "--out", out, *device)
            found.append(read_safetensors(out)[0])
        self.assertEqual(found[0].keys(), found[1].keys())
        self.assertIn((5, 1, 3), [tensor.shape for tensor in found[1].values()])
        for name, tensor in found[0].items():
            numpy.testing.assert_allclose(found[1][name], tensor, rtol=0, atol=1e-6, err_msg=name)

    def test_the_log_is_verified_where_it_was_written(self):
        log = self.path("decisions.log")
        self.document("attribute", *self.sample, "--device", FAR, "--log", log, "--keep-inputs")
        with open(log) as file:
            self.assertIn('"device":"%s' % FAR, file.read())
        self.assertEqual(self.document("audit", "verify", log, "--model", self.network)["computed"]["same"], 1)

    def test_jobs(self):
        found = []
        for k, device in enumerate(((), ("--device", FAR))):
            self.plan = self.path("plan%d.json" % k)
            self.document("job", "plan", self.network, "--input", self.path("rows.npy"), "--batch", "4", "--shards", "3",
                          "--target", "0", "--out", self.plan, *device)
            done = self.run_program("job", "run", self.plan, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(read_safetensors(self.document("job", "merge", self.plan)["path"])[0])
        self.assertEqual(found[1]["contributions"].shape, (12, 5))
        for name in ("contributions", "value", "reference"):
            numpy.testing.assert_allclose(found[1][name], found[0][name], rtol=0, atol=1e-6, err_msg=name)
        # A worker without such a device refuses, and says which one it lacks.
        done = self.run_program("job", "run", self.plan, "--shard", "0", "--again")
        self.assertEqual(done.returncode, 2)
        self.assertIn(FAR, done.stderr)

    def test_what_is_no_device(self):
        done = self.run_program("attribute", *self.sample, "--device", "gpu")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"gpu" names no device; use cpu, cuda or cuda:1', done.stderr)
        done = self.run_program("attribute", *self.sample, "--device", "cuda")
        if not torch.cuda.is_available():
            self.assertEqual(done.returncode, 2)
            self.assertIn("the model cannot be copied to cuda", done.stderr)


if __name__ == "__main__":
    unittest.main()
