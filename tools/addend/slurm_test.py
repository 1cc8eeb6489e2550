"""Jobs under Slurm: its own daemons, started here for one machine, and the script and the page that users have."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_testing import PROGRAM, JobTest, Network, page_blocks  # noqa: E402
from slurm_testing import MISSING, Cluster, kill  # noqa: E402


@unittest.skipIf(MISSING, "Slurm is not installed (tools/setup --slurm does it): no " + ", ".join(MISSING))
class SlurmTest(JobTest):
    def setUp(self):
        super().setUp()
        if os.getuid() == 0:
            try:
                os.setgroups(os.getgroups())
            except PermissionError:
                self.skipTest("Slurm's daemons give up groups when root runs them, which this root may not do")
        slurm = self.path("slurm")
        os.mkdir(slurm)
        self.cluster = Cluster(slurm, os.path.dirname(PROGRAM), cpus=4)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_all()

    def work_in(self, name):
        """Puts the plan and what belongs to it into a folder of this name."""
        self.folder = self.path(name)
        os.mkdir(self.folder)
        self.plan = self.path("plan.json")

    def script(self, *arguments):
        """Plans, and gives the path of the script."""
        return self.write("job.sh", self.job("plan", *arguments, "--out", self.plan, "--slurm"))

    def submit(self, *arguments):
        text = self.cluster.ask("sbatch", "--parsable", *arguments, cwd=self.folder)
        self.assertIsNotNone(text, self.cluster.said)
        return text.strip()

    def wait_for_all(self):
        self.cluster.wait("every task ended", lambda: not self.cluster.queue())

    def status(self):
        return json.loads(self.job("status", self.plan, "--json"))

    def single(self):
        """The digest of the merged file that one process makes; what it made is removed."""
        sha256 = self.run_all()["sha256"]
        shutil.rmtree(self.path("plan.out"))
        return sha256

    def merged(self):
        """The digest of the merged file, which a task made."""
        self.assertTrue(os.path.exists(self.path("plan.out/_SUCCESS")))
        with open(self.path("plan.out/merged.safetensors"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def receipts(self):
        """The shards whose receipts are there, each as often as there is one."""
        shards = []
        for name in os.listdir(self.path("plan.out/shards")):
            if name.endswith(".json"):
                with open(os.path.join(self.path("plan.out/shards"), name)) as file:
                    shards.append(json.load(file)["shard"])
        return sorted(shards)

    def test_the_page_leads_to_the_merged_file(self):
        (block,) = page_blocks("docs/jobs.md", "sh", "sbatch")
        self.work_in("it's 100% \"done\" & #1")
        self.numbers(600, 6)
        self.model(Network(6))
        done = subprocess.run(["sh", "-euc", block], cwd=self.folder, env=self.cluster.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stdout + self.cluster.logs())
        self.wait_for_all()
        shards = self.status()["shards"]
        self.assertGreater(shards, 5)
        self.assertEqual(self.receipts(), list(range(shards)))
        said = sorted(os.listdir(self.path("plan.slurm")))
        self.assertEqual(len(said), shards + 1, said)
        with open(os.path.join(self.path("plan.slurm"), said[-1])) as file:
            self.assertIn(self.merged(), file.read())
        # No other files are left in the folder.
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["job.sh", "model.pt", "plan.json", "plan.out", "plan.slurm", "rows.npy"])
        sha256 = self.merged()
        self.assertEqual(self.single(), sha256)

    def test_more_shards_than_an_array_may_have(self):
        self.numbers(1200, 6)
        script = self.script(self.model(Network(6)), "--input", self.path("rows.npy"), "--batch", "1", "--shards", "1200")
        self.assertIsNotNone(self.cluster.ask("sbatch", "--test-only", script), self.cluster.said)
        self.assertIsNone(self.cluster.ask("sbatch", "--test-only", "--array=0-1199", script))
        self.assertIn("Invalid job array specification", self.cluster.said)
        self.submit("--array=0,199,200,999", script)
        self.wait_for_all()
        self.assertEqual(self.receipts(), [0, 199, 200, 999, 1000, 1199])

    def test_killed_tasks_and_daemons_lose_and_double_nothing(self):
        self.numbers(10000, 6)
        script = self.script(self.model(Network(6)), "--input", self.path("rows.npy"), "--batch", "1", "--shards", "10")
        single = self.single()
        cluster = self.cluster

        def kill_a_worker():
            for process, command in cluster.steps().items():
                if command[0].endswith("addend"):
                    kill(process)
                    return True
            return False

        first = self.submit(script)
        cluster.wait("a task runs", cluster.running)
        cluster.wait("a worker runs", kill_a_worker)
        # A second job computes the same shards at the same time.
        second = self.submit(script)
        cluster.wait("a task runs", cluster.running)
        for number, task in zip(["KILL", "TERM"], cluster.running()):
            cluster.ask("scancel", "--batch", "--signal=" + number, task)
        for task in cluster.running()[:1]:
            cluster.ask("scontrol", "requeue", task)
        # The machine loses its power: its tasks begin anew when it is back, without being submitted again.
        cluster.wait("several tasks run", lambda: len(cluster.running()) > 2)
        lost = cluster.crash_node()
        self.assertTrue(lost)
        cluster.start_node()
        cluster.wait("a lost task was begun anew", lambda: any(cluster.restarts(task) for task in lost))
        cluster.wait("a task runs", cluster.running)
        # The daemons alone die.
        cluster.kill_controller()
        kill_a_worker()
        cluster.start_controller()
        cluster.kill("slurmd")
        kill_a_worker()
        cluster.start_node()
        cluster.wait("a task runs", cluster.running)
        # The user has enough, and submits the array once more.
        cluster.ask("scancel", first, second)
        self.wait_for_all()
        third = self.submit(script)
        self.submit("--dependency=afterany:" + third, "--wrap", "addend job merge plan.json")
        self.wait_for_all()
        self.assertEqual(self.merged(), single)
        self.assertEqual(self.receipts(), list(range(10)))
        self.assertEqual((self.status()["rows_done"], self.status()["attempts"]), (10000, 0))


if __name__ == "__main__":
    unittest.main()
