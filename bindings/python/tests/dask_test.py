"""Jobs and collections on a cluster of Dask: processes on this machine, some of which are killed."""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import addend

try:
    import dask.array
    import dask.dataframe
    import distributed
    import pandas

    import addend.dask
except ImportError as error:
    raise unittest.SkipTest("the package distributed of Dask is not installed (%s)" % error)

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dask_cluster import Cluster, kill  # noqa: E402

# How many jobs lose workers, schedulers and callers at random; more in the long test.
JOBS = int(os.environ.get("ADDEND_CHAOS_JOBS", "2"))
FIRST_JOB = int(os.environ.get("ADDEND_CHAOS_FIRST_JOB", "0"))
PROGRAM = os.environ.get("ADDEND_PROGRAM")

CALLER = """
import sys
import distributed
import addend.dask
client = distributed.Client(scheduler_file=sys.argv[1], timeout=20)
addend.dask.run(client, sys.argv[2], patience=20)
"""


def slow_work(deadly=()):
    """Work that takes a while, that one worker refuses, and that ends others at some shards."""

    def work(shard):
        time.sleep(0.1)
        if "ADDEND_TEST_REFUSES" in os.environ:
            return addend.FailedPrecondition("not here")
        if shard in deadly:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    return work


class DaskTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.plan = self.path("plan.json")
        self.model = self.path("model.pt")

    def path(self, name):
        return os.path.join(self.folder, name)

    def cluster(self, workers=2):
        cluster = Cluster(self.folder, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="5s")
        self.addCleanup(cluster.stop)
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker()
        return cluster

    def connect(self, cluster, workers=2):
        client = cluster.client(workers)
        self.addCleanup(client.close)
        return client

    def save(self, module):
        torch.jit.script(module.eval()).save(self.model)

    def make(self, width=64, rows=400, shards=20, **options):
        torch.manual_seed(0)
        self.save(torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
                                      torch.nn.ReLU(), torch.nn.Linear(width, 3)))
        self.rows = np.random.RandomState(3).standard_normal((rows, 6)).astype(np.float32)
        np.save(self.path("rows.npy"), self.rows)
        given = dict(rows=[self.path("rows.npy")], targets="0", batch=10, shards=shards)
        given.update(options)
        return addend.Job.plan(self.plan, self.model, addend.Input(self.rows[:1], dims=1, baseline=0), **given)

    def forget(self):
        subprocess.check_call(["rm", "-rf", self.path("plan.out")])

    def single(self):
        """The digest of what one process computes."""
        with addend.Job(self.plan) as job:
            for shard in range(job.shards):
                job.run(shard)
        merged = addend.Job.merge(self.plan)
        self.forget()
        return merged["sha256"]


class JobTest(DaskTest):
    def test_two_workers_give_the_bytes_of_one_process(self):
        made = self.make()
        single = self.single()
        client = self.connect(self.cluster())
        seen = []
        status = addend.dask.run(client, self.plan, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen, [(k + 1, made["shards"]) for k in range(made["shards"])])
        self.assertEqual((status["done"], status["computed"], status["refused_workers"]), (20, 20, {}))
        self.assertEqual((status["missing"], status["wrong"]), ([], []))
        merged = addend.Job.merge(self.plan)
        self.assertEqual((merged["sha256"], merged["rows"]), (single, 400))
        with open(merged["path"], "rb") as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest(), single)
        # Both took part.
        shards = os.path.join(self.path("plan.out"), "shards")
        receipts = [name for name in os.listdir(shards) if name.endswith(".json")]
        processes = set()
        for name in receipts:
            with open(os.path.join(shards, name)) as file:
                processes.add(json.load(file)["run"]["process"])
        self.assertEqual((len(receipts), len(processes)), (20, 2))

        frame = addend.dask.results(self.plan)
        self.assertEqual(frame.npartitions, made["shards"])
        contributions = np.asarray(addend.read_tensors(merged["path"])["contributions"])
        self.assertAlmostEqual(frame["column 2"].sum().compute(), contributions[:, 2].sum(), places=9)

        # Shards that are there are not computed again, unless asked for.
        self.assertEqual(addend.dask.run(client, self.plan)["computed"], 0)
        os.remove(os.path.join(shards, next(n for n in sorted(os.listdir(shards)) if n.endswith(".safetensors"))))
        self.assertEqual(addend.dask.run(client, self.plan)["computed"], 1)
        self.assertEqual(addend.dask.run(client, self.plan, again=True)["computed"], 20)
        self.assertEqual(addend.Job.merge(self.plan)["sha256"], single)
        # Workers keep nothing between runs.
        self.assertEqual(set(client.run(lambda dask_worker: hasattr(dask_worker, "_addend_kept")).values()), {False})

    def test_workers_that_would_compute_other_bits(self):
        self.make()
        single = self.single()
        with open(self.plan) as file:
            blas = json.load(file)["libtorch"]["blas"]
        if "DYNAMIC_ARCH" not in blas:
            self.skipTest("this BLAS has one kind of kernels: " + blas)
        other = "Nehalem" if "Nehalem" not in blas else "Haswell"
        cluster = self.cluster(0)
        cluster.start_worker(OPENBLAS_CORETYPE=other)
        client = self.connect(cluster, 1)
        with warnings.catch_warnings(record=True) as said, self.assertRaisesRegex(
                addend.FailedPrecondition, "computes other bits"):
            warnings.simplefilter("always")
            addend.dask.run(client, self.plan)
        self.assertIn("gets no shards", str(said[0].message))
        cluster.start_worker()
        client.wait_for_workers(2, timeout=60)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            status = addend.dask.run(client, self.plan)
        (message,) = status["refused_workers"].values()
        self.assertIn(other, message)
        self.assertIn(blas, message)
        self.assertIn(message, str(said[0].message))
        self.assertEqual(status["computed"], 20)
        self.assertEqual(addend.Job.merge(self.plan)["sha256"], single)

    def test_shards_at_which_every_worker_fails(self):
        self.make(stop_at_refusal=True)
        rows = self.rows.copy()
        rows[123, 2] = np.nan
        np.save(self.path("rows.npy"), rows)
        client = self.connect(self.cluster())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(addend.FailedPrecondition, "rows 120 to 139 are not those"):
                addend.dask.run(client, self.plan)
        # Shards that were done before stay, and the next run computes the rest.
        self.assertGreater(addend.Job.status(self.plan)["done"], 0)
        np.save(self.path("rows.npy"), self.rows)
        self.assertEqual(addend.dask.run(client, self.plan)["done"], 20)

    @contextlib.contextmanager
    def kept_up(self, cluster):
        """Starts a worker for each that ends."""
        over = threading.Event()

        def keep_up():
            started = len(cluster.workers)
            while not over.wait(0.1):
                if sum(worker.poll() is None for worker in cluster.workers) < started:
                    cluster.start_worker()

        keeper = threading.Thread(target=keep_up)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()

    def test_shards_that_kill_workers(self):
        class Deadly:
            def __call__(self, shard):
                os.kill(os.getpid(), signal.SIGKILL)

        cluster = self.cluster(1)
        client = self.connect(cluster, 1)
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        with self.kept_up(cluster):
            loop = addend.dask._Loop(client, Deadly(), [7], "deadly", 20)
            with self.assertRaisesRegex(addend.ResourceExhausted, "workers die when they compute shard 7"):
                loop.run(None)
            loop.leave()
        self.assertGreaterEqual(len(cluster.workers), 3)

    def refusing_cluster(self):
        """A worker that computes, the first one, and one that refuses to."""
        cluster = self.cluster(1)
        cluster.start_worker(ADDEND_TEST_REFUSES="1")
        return cluster

    def loop(self, cluster, work, change=lambda loop: None, patience=60, shards=30):
        """The loop over shards, after it has ended, and what it raised, or None. `change` is called after each shard, until
        it gives True."""
        client = self.connect(cluster, 2)
        loop = addend.dask._Loop(client, work, range(shards), "lost", patience)
        raised, changed = [], []

        def progress(done):
            if not changed and change(loop):
                changed.append(True)

        def run():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    loop.run(progress)
            except BaseException as error:
                raised.append(error)

        # A loop that hangs fails the test.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(90)
        self.assertFalse(thread.is_alive(), "the loop hangs after %d shards" % loop.done)
        loop.leave()
        return loop, raised[0] if raised else None

    def test_the_last_good_worker_is_replaced_while_shards_wait_for_it(self):
        cluster = self.refusing_cluster()

        def replace():
            kill(cluster.workers[0])
            cluster.start_worker()

        def change(loop):
            if loop.refused:
                # While the loop waits for its shards.
                threading.Timer(0.25, replace).start()
            return loop.refused

        loop, raised = self.loop(cluster, slow_work(), change)
        self.assertIsNone(raised)
        self.assertEqual((loop.done, len(loop.refused), len(cluster.workers)), (30, 1, 3))

    def test_the_last_good_worker_is_gone_for_a_while(self):
        cluster = self.refusing_cluster()

        def change(loop):
            if loop.refused:
                kill(cluster.workers[0])
                threading.Timer(4, cluster.start_worker).start()
            return loop.refused

        loop, raised = self.loop(cluster, slow_work(), change)
        self.assertIsNone(raised)
        self.assertEqual((loop.done, len(loop.refused), len(cluster.workers)), (30, 1, 3))

    def test_the_last_good_worker_is_gone(self):
        cluster = self.refusing_cluster()
        loop, raised = self.loop(cluster, slow_work(), lambda loop: loop.refused and not kill(cluster.workers[0]), patience=3)
        self.assertIsInstance(raised, addend.FailedPrecondition)
        self.assertRegex(str(raised), "no worker is left for shard .* none joined within 3 s.*: not here")
        self.assertLess(loop.done, 30)

    def test_results_that_are_lost_with_their_worker(self):
        cluster = self.refusing_cluster()
        take = addend.dask._Loop._take
        self.addCleanup(setattr, addend.dask._Loop, "_take", take)

        def replaced(loop, future, shard):
            # The worker ends between its shard and the caller's look at it.
            if loop.refused and loop._finished and len(cluster.workers) == 2:
                kill(cluster.workers[0])
                cluster.start_worker()
            return take(loop, future, shard)

        addend.dask._Loop._take = replaced
        loop, raised = self.loop(cluster, slow_work())
        self.assertIsNone(raised)
        self.assertEqual((loop.done, len(cluster.workers)), (30, 3))

    def test_shards_that_kill_every_worker_that_might_compute_them(self):
        self.addCleanup(setattr, addend.dask, "_MOST_LOST", addend.dask._MOST_LOST)
        addend.dask._MOST_LOST = 2
        cluster = self.refusing_cluster()
        with self.kept_up(cluster):
            loop, raised = self.loop(cluster, slow_work(deadly=(2, 3)), shards=4)
        self.assertIsInstance(raised, addend.ResourceExhausted)
        self.assertRegex(str(raised), "workers that get shard [23] die")

    def test_a_program_and_a_plan_that_workers_do_not_see(self):
        self.make()
        cluster = self.cluster(1)
        client = self.connect(cluster, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(addend.NotFound, "/nonexistent/addend"):
                addend.dask.run(client, self.plan, program="/nonexistent/addend")
            with self.assertRaisesRegex(addend.FailedPrecondition, "denied.*" + self.folder):
                addend.dask.run(client, self.plan, program=self.folder)
            # A worker in another folder, beside one that sees the plan.
            os.mkdir(self.path("empty"))
            cluster.start("-c", "import os, runpy; os.chdir('empty'); runpy.run_module('distributed.cli.dask_worker', None, "
                          "'__main__')", "--scheduler-file", cluster.file, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            client.wait_for_workers(2, timeout=60)
            here = os.getcwd()
            self.addCleanup(os.chdir, here)
            os.chdir(self.folder)
            status = addend.dask.run(client, "/proc/self/cwd/plan.json")
        self.assertEqual((status["done"], status["wrong"]), (20, []))
        (message,) = status["refused_workers"].values()
        self.assertRegex(message, "No such file.*plan.json")

    def test_results_of_another_plan(self):
        self.make(shards=4)
        client = self.connect(self.cluster(1), 1)
        addend.dask.run(client, self.plan)
        np.save(self.path("rows.npy"), self.rows + 1)
        # `Job.plan` does not write it beside these results.
        addend.Job.plan(self.path("another.json"), self.model, addend.Input(self.rows[:1], dims=1, baseline=0),
                        rows=[self.path("rows.npy")], targets="0", batch=10, shards=4)
        os.replace(self.path("another.json"), self.plan)
        with self.assertRaisesRegex(addend.FailedPrecondition, "(?s)belongs to another plan.*Remove what is wrong from "):
            addend.dask.run(client, self.plan)
        with self.assertRaisesRegex(addend.FailedPrecondition, "belongs to another plan"):
            addend.dask.results(self.plan)
        with self.assertRaisesRegex(addend.FailedPrecondition, "holds the results of another plan"):
            addend.dask.run(client, self.plan, again=True)
        self.forget()
        self.assertEqual(addend.dask.run(client, self.plan)["computed"], 4)

    def test_results_that_are_not_seen_here(self):
        self.make(shards=4)
        client = self.connect(self.cluster(1), 1)
        # Results are removed, as if the workers' folder were another one.
        with self.assertRaisesRegex(addend.FailedPrecondition, "4 shards, of which 4 are not in .*plan.out"):
            addend.dask.run(client, self.plan, progress=lambda done, total: done == total and self.forget())

    def test_tables_through_the_program(self):
        if PROGRAM is None:
            self.skipTest("ADDEND_PROGRAM names no program")
        torch.manual_seed(0)
        self.save(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)))
        with open(self.path("rows.csv"), "w") as file:
            file.write("a,b\n" + "".join("%d,%d\n" % (k, k % 7) for k in range(50)) + "oops,1\n")
        program = os.path.abspath(PROGRAM)
        subprocess.run([program, "job", "plan", self.model, "--input", self.path("rows.csv"), "--target", "0", "--batch",
                        "5", "--shards", "6", "--out", self.plan], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([program, "job", "run", self.plan], check=True, stdout=subprocess.DEVNULL)
        single = addend.Job.merge(self.plan)["sha256"]
        self.forget()
        client = self.connect(self.cluster())
        with self.assertRaisesRegex(addend.Unimplemented, "program="):
            addend.dask.run(client, self.plan)
        status = addend.dask.run(client, self.plan, program=program)
        self.assertEqual((status["done"], status["refused"]), (status["shards"], 1))
        self.assertEqual(addend.Job.merge(self.plan)["sha256"], single)
        self.forget()
        os.remove(self.path("rows.csv"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(addend.FailedPrecondition, "rows.csv"):
                addend.dask.run(client, self.plan, program=program)

    def test_what_is_no_plan(self):
        with self.assertRaisesRegex(addend.NotFound, "none.json"):
            addend.dask.run(None, self.path("none.json"))
        with open(self.plan, "w") as file:
            file.write("{}")
        with self.assertRaisesRegex(ValueError, "is no plan of a job"):
            addend.dask.run(None, self.plan)


class PageTest(DaskTest):
    def test_the_page_leads_from_nothing_to_the_results(self):
        with open("docs/jobs.md") as file:
            section = file.read().split("\n## Dask\n")[1].split("\n## ")[0]
        commands, = re.findall(r"```sh\n(.*?)```", section, re.S)
        programs = re.findall(r"```python\n(.*?)```", section, re.S)
        torch.manual_seed(0)
        self.save(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)))
        numbers = np.random.RandomState(0).standard_normal((300, 3)).astype(np.float32)
        np.save(self.path("rows.npy"), numbers)
        pandas.DataFrame(numbers, columns=["a", "b", "c"]).to_csv(self.path("rows.csv"), index=False)
        # The page's programs are those of this Python, which lie beside it where it is that of a virtual environment.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        # The shell of the page is ended with all that it started.
        shell = subprocess.Popen(["sh", "-c", commands + "wait\n"], cwd=self.folder, start_new_session=True,
                                 env={**os.environ, "PATH": path},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(shell.wait)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("cluster.json")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(len(programs), 2)
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(programs) + "\nprint('done')"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "done")
        merged = addend.read_tensors(self.path("plan.out/merged.safetensors"))
        self.assertEqual(np.asarray(merged["contributions"]).shape, (300, 3))


class ChaosTest(DaskTest):
    def start_caller(self, cluster):
        return cluster.start("-c", CALLER, cluster.file, self.plan)

    def done(self):
        return addend.Job.status(self.plan)["done"]

    def test_workers_schedulers_and_callers_are_killed(self):
        # About a quarter of a second for each of 20 shards.
        made = self.make(width=2000, rows=3000, shards=20)
        single = self.single()
        cluster = self.cluster()
        killed = 0
        for seed in range(FIRST_JOB, FIRST_JOB + JOBS):
            self.forget()
            draw = random.Random(seed)
            caller = self.start_caller(cluster)
            kills = {"worker": 2, "scheduler": 1, "caller": 1}
            deadline = time.monotonic() + 200
            while self.done() < made["shards"] or caller.poll() is None:
                self.assertLess(time.monotonic(), deadline, cluster.log())
                time.sleep(draw.uniform(0.1, 0.6))
                left = [kind for kind, count in kills.items() for _ in range(count)]
                # Something is computed first, and something is left.
                if left and 0 < self.done() < made["shards"]:
                    kind = draw.choice(left)
                    kills[kind] -= 1
                    killed += 1
                    if kind == "worker":
                        kill(draw.choice([one for one in cluster.workers if one.poll() is None] or [cluster.scheduler]))
                    elif kind == "scheduler":
                        kill(cluster.scheduler)
                    else:
                        kill(caller)
                # Restarts processes, as whoever keeps a cluster up does. Workers end when their scheduler does; callers
                # wait for the next.
                if cluster.scheduler.poll() is not None:
                    cluster.start_scheduler()
                cluster.workers = [worker for worker in cluster.workers if worker.poll() is None]
                while len(cluster.workers) < 2:
                    cluster.start_worker()
                if caller.poll() is not None and self.done() < made["shards"]:
                    caller = self.start_caller(cluster)
            self.assertEqual(caller.wait(), 0, cluster.log())
            merged = addend.Job.merge(self.plan)
            self.assertEqual((merged["sha256"], merged["rows"], merged["refused"]), (single, 3000, []))
            status = addend.Job.status(self.plan)
            self.assertEqual((status["attempts"], status["wrong"]), (0, []))
        # At least two kills for each job: four are tried, but some jobs are done before.
        self.assertGreaterEqual(killed, 2 * JOBS)
        print("%d jobs, %d processes killed" % (JOBS, killed))

    def test_after_a_crash_of_everything_only_what_is_missing_is_computed(self):
        made = self.make(width=2000, rows=1000, shards=20)
        single = self.single()
        cluster = self.cluster()
        self.start_caller(cluster)
        deadline = time.monotonic() + 100
        while self.done() < 5:
            self.assertLess(time.monotonic(), deadline, cluster.log())
            time.sleep(0.02)
        cluster.stop()
        there = self.done()
        self.assertLess(there, made["shards"])
        client = self.connect(self.cluster())
        status = addend.dask.run(client, self.plan)
        self.assertEqual((status["computed"], status["done"]), (made["shards"] - there, made["shards"]))
        self.assertEqual(addend.Job.merge(self.plan)["sha256"], single)

    def test_a_new_scheduler_gets_what_is_missing(self):
        made = self.make(width=2000, rows=1000, shards=20)
        single = self.single()
        cluster = self.cluster()
        client = self.connect(cluster)

        def replace(done, total):
            if done == 3:
                kill(cluster.scheduler)
                cluster.start_scheduler()
                for _ in range(2):
                    cluster.start_worker()

        status = addend.dask.run(client, self.plan, progress=replace)
        # Shards that were lost with the cluster are given to it again; its first worker may have computed them all the
        # same.
        self.assertEqual((status["done"], status["computed"]), (made["shards"], made["shards"]))
        self.assertEqual(addend.Job.merge(self.plan)["sha256"], single)

    def test_a_scheduler_that_is_gone(self):
        self.make(width=2000, rows=1000, shards=20)
        cluster = self.cluster()
        client = self.connect(cluster)
        with self.assertRaisesRegex(ConnectionError, "is not computed again"):
            addend.dask.run(client, self.plan, patience=1, progress=lambda done, total: kill(cluster.scheduler))
        self.assertGreater(self.done(), 0)


class CollectionTest(DaskTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))
        self.save(self.network)
        self.numbers = np.random.RandomState(5).standard_normal((50, 4)).astype(np.float32)
        self.numbers[13, 2] = np.nan

    def by_hand(self, row, target=1):
        model = addend.load_model(self.model)
        return model.explain(addend.Input(self.numbers[row : row + 1], dims=1, baseline=0.5), targets=str(target))[0]

    def check(self, contributions, value, reference, leftover, refused, warned):
        self.assertEqual(list(warned), [""] * 50)
        self.assertEqual(contributions.shape, (50, 4))
        for row in (0, 12, 14, 49):
            alone = self.by_hand(row)
            np.testing.assert_allclose(contributions[row], alone.contributions, atol=1e-5)
            self.assertAlmostEqual(value[row], alone.value, places=5)
        there = np.arange(50) != 13
        np.testing.assert_allclose((reference + leftover + contributions.sum(1))[there], value[there], atol=1e-5)
        with torch.no_grad():
            truth = self.network(torch.from_numpy(self.numbers))[:, 1].numpy()
        np.testing.assert_allclose(value[there], truth[there], atol=1e-5)
        self.assertTrue(np.isnan(contributions[13]).all() and np.isnan(value[13]))
        self.assertEqual([row for row, why in enumerate(refused) if why], [13])
        self.assertIn("not finite", refused[13])

    def test_arrays(self):
        rows = dask.array.from_array(self.numbers, chunks=(20, 2))
        found = addend.dask.attribute(self.model, rows, baseline=0.5, target=1, batch=8)
        self.assertEqual(found.contributions.shape, (50, 4))
        self.assertEqual(found.contributions.chunks, ((20, 20, 10), (4,)))
        with dask.config.set(scheduler="threads"):
            here = dask.compute(*found)
        self.check(*here)
        client = self.connect(self.cluster())
        there = dask.compute(*found)
        for one, other in zip(here, there):
            np.testing.assert_array_equal(one, other)
        self.assertEqual(client.status, "running")

    def test_frames(self):
        frame = pandas.DataFrame(self.numbers, columns=["age", "height", "weight", "dose"])
        frame["dose"] = frame["dose"].astype("float64")
        frame.index = pandas.Index(["row %02d" % k for k in range(50)], name="id")
        rows = dask.dataframe.from_pandas(frame, npartitions=3)
        found = addend.dask.attribute(self.model, rows, baseline=0.5, target=1)
        names = ["age", "height", "weight", "dose", "value", "reference", "leftover", "refused", "warnings"]
        self.assertEqual(list(found.columns), names)
        self.connect(self.cluster())
        result = found.compute()
        self.assertEqual(list(result.columns), names)
        self.assertEqual(list(result.index), list(frame.index))
        self.assertEqual(result.index.name, "id")
        self.check(result[names[:4]].to_numpy(), *(result[name].to_numpy() for name in names[4:]))
        self.assertEqual(list(result.index[result["refused"] != ""]), ["row 13"])
        # A part of the result is a part of the work.
        self.assertEqual(len(found.partitions[1].compute()), len(rows.partitions[1]))

    def test_rows_of_more_dimensions_and_rows_that_fail(self):
        class Checked(torch.nn.Module):
            def forward(self, x):
                if bool((x > 9).any()):
                    raise ValueError("too large")
                return x.flatten(1).cumsum(1)

        self.save(Checked())
        numbers = np.arange(24, dtype=np.float32).reshape(4, 3, 2) / 2
        numbers[1, 0, 0] = 10
        rows = dask.array.from_array(numbers, chunks=2)
        found = addend.dask.attribute(self.model, rows, dims=(1, 2), target=5)
        with dask.config.set(scheduler="threads"):
            contributions, refused = dask.compute(found.contributions, found.refused)
        self.assertEqual(contributions.shape, (4, 6))
        np.testing.assert_allclose(contributions[[0, 2]], numbers.reshape(4, 6)[[0, 2]], atol=1e-6)
        self.assertTrue(np.isnan(contributions[[1, 3]]).all())
        self.assertEqual([bool(why) for why in refused], [False, True, False, True])
        self.assertIn("too large", refused[3])
        # Blocks without any other row are no fault of the request.
        again = addend.dask.attribute(self.model, rows[1::2].rechunk(1), dims=(-1, 1), target=5)
        with dask.config.set(scheduler="threads"):
            self.assertIn("too large", again.refused.compute()[1])
            self.assertTrue(np.isnan(again.value.compute()).all())

    def test_rows_carry_the_warnings_of_their_runs(self):
        class Steps(torch.nn.Module):
            def forward(self, x):
                return torch.where(x > 0.25, 3 * x, x - 1).cumsum(1)

        self.save(Steps())
        numbers = np.full((6, 2), 0.125, np.float32)
        numbers[4] = 2  # another condition than on the baseline
        alone = addend.load_model(self.model).explain(addend.Input(numbers[4:5], dims=1, baseline=0), targets="1")
        self.assertEqual(len(alone.warnings), 1)
        rows = dask.array.from_array(numbers, chunks=2)
        frame = dask.dataframe.from_pandas(pandas.DataFrame(numbers, columns=["a", "b"]), npartitions=3)
        with dask.config.set(scheduler="threads"):
            (said,) = dask.compute(addend.dask.attribute(self.model, rows, target=1, batch=1).warnings)
            found = addend.dask.attribute(self.model, frame, target=1, batch=1).compute()
        for warned in (list(said), list(found["warnings"])):
            self.assertEqual([bool(one) for one in warned], [False] * 4 + [True, False])
            self.assertEqual(warned[4], alone.warnings[0])

    def test_whole_numbers_that_float32_does_not_hold(self):
        class Sum(torch.nn.Module):
            def forward(self, x):
                return x.sum(1, keepdim=True)

        self.save(Sum())
        frame = pandas.DataFrame({"id": [3, 2**24 + 1, 2**24, -(2**62) - 1], "b": [1.0, 1.0, 1e-60, 0.0]})
        rows = dask.dataframe.from_pandas(frame, npartitions=2)
        with dask.config.set(scheduler="threads"):
            found = addend.dask.attribute(self.model, rows, target=0).compute()
        self.assertEqual(list(found["refused"]), [""] * 4)
        self.assertEqual(list(found["warnings"]), [
            "",
            'column "id" is 16777217, of which float32 makes 16777216: that is what is explained',
            'column "b" is 1e-60, of which float32 makes 0: that is what is explained',
            'column "id" is -4611686018427387905, of which float32 makes -4611686018427387904: that is what is explained',
        ])

    def test_requests_that_no_row_fits(self):
        rows = dask.array.from_array(self.numbers, chunks=20)
        frame = dask.dataframe.from_pandas(pandas.DataFrame(self.numbers, columns=list("abcd")), npartitions=2)
        wrong = self.path("wrong.pt")
        torch.jit.script(torch.nn.Linear(5, 1)).save(wrong)
        for options, error, why in (
            (dict(target=7), addend.InvalidArgument, "target 7 does not fit"),
            (dict(target="hm"), addend.InvalidArgument, "target hm is not understood"),
            (dict(at="hm"), addend.InvalidArgument, "nothing inside the model is called hm"),
            (dict(model=wrong), addend.InvalidArgument, "the model fails on an input"),
            (dict(baseline=np.zeros((1, 7), "f")), addend.InvalidArgument, "a baseline of shape"),
            (dict(baseline="mean:/nowhere.npy"), addend.NotFound, "/nowhere.npy"),
        ):
            given = dict(dict(model=self.model, target=0), **options)
            model = given.pop("model")
            with self.subTest(why=why), dask.config.set(scheduler="threads"):
                with self.assertRaisesRegex(error, why):
                    addend.dask.attribute(model, rows, **given).value.compute()
                with self.assertRaisesRegex(error, why):
                    addend.dask.attribute(model, frame, **given).compute()

    def test_what_is_refused(self):
        rows = dask.array.zeros((10, 4), chunks=5, dtype="float32")
        with self.assertRaisesRegex(TypeError, "a Dask array or a Dask frame, not a ndarray"):
            addend.dask.attribute(self.model, self.numbers)
        numbers = dask.dataframe.from_pandas(pandas.DataFrame(self.numbers), npartitions=1)
        for given in (rows, numbers):
            for dims, why in ((0, "split along 1 to 1"), (2, "split along 1 to 1"), ((), "names no dimension"),
                              ((1, 1), "names dimension 1 twice"), ((1, -1), "names dimension 1 twice")):
                with self.assertRaisesRegex(ValueError, why):
                    addend.dask.attribute(self.model, given, dims=dims)
        with self.assertRaisesRegex(ValueError, "batch is 0"):
            addend.dask.attribute(self.model, rows, batch=0)
        with self.assertRaisesRegex(ValueError, "two dimensions at least"):
            addend.dask.attribute(self.model, rows[:, 0])
        frame = pandas.DataFrame({"value": [1.0, 2.0], "b": [1, 2]})
        with self.assertRaisesRegex(ValueError, 'called "value"'):
            addend.dask.attribute(self.model, dask.dataframe.from_pandas(frame, npartitions=1))
        frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
        with self.assertRaisesRegex(TypeError, 'column "b" holds no numbers'):
            addend.dask.attribute(self.model, dask.dataframe.from_pandas(frame, npartitions=1))
        with self.assertRaises(FileNotFoundError):
            addend.dask.attribute(self.path("none.pt"), rows).contributions.compute(scheduler="threads")


if __name__ == "__main__":
    unittest.main()
