"""Jobs from the command line: the same bytes from one process, from several, and from those that are killed."""

import csv
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_testing import PROGRAM, JobTest, Network, Weighted, page_blocks, read_safetensors  # noqa: E402

# How many jobs are killed at random; more in the long test.
JOBS = int(os.environ.get("ADDEND_CHAOS_JOBS", "2"))


class Drawn(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, True)


class Looked(torch.nn.Module):
    """Digits of ids that float32 does not hold."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 1)
        self.embedding.weight = torch.nn.Parameter(torch.arange(10.0).unsqueeze(1))

    def forward(self, ids):
        return self.embedding(ids % 10).sum(1)


class Coupled(torch.nn.Module):
    """A row's output depends on the rows beside it."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


class DataTest(JobTest):
    def test_tensors(self):
        numbers = self.numbers(100, 5)
        made = self.make(self.model(Weighted(5)), "--input", self.path("rows.npy"), "--shards", "4", "--batch", "10")
        self.assertEqual((made["rows"], made["shards"], made["shard_rows"]), (100, 4, 30))
        merged = self.run_all()
        tensors, metadata = read_safetensors(merged["path"])
        weights = numpy.arange(1, 6, dtype=numpy.float64)
        numpy.testing.assert_allclose(tensors["contributions"], numbers * weights, rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(tensors["value"], (numbers * weights).sum(1), rtol=1e-4, atol=1e-5)
        self.assertEqual(json.loads(metadata["names"]), ["column %d" % k for k in range(5)])
        with open(merged["path"], "rb") as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest(), merged["sha256"])

    def test_tables_with_bad_rows(self):
        rows = [["1", "red", "2.5"], ["oops", "red", "1"], ["3", "blue", ""], ["4", "green", "1"], ["5", "blue", "-1"],
                ["6", "red", "1e99"], ["7", "red"], ["8", "blue", "0.5"]]
        lines = ["size,colour,\"two\nlines\""] + [",".join(row) for row in rows] + ["", ""]
        self.write("rows.csv", "\n".join(lines))
        self.write("mapping.json", json.dumps({"colour": ["red", "blue"]}))
        self.make(self.model(Weighted(4)), "--input", self.path("rows.csv"), "--mapping", self.path("mapping.json"),
                  "--batch", "2", "--shards", "3")
        merged = self.run_all()
        self.assertEqual([own["row"] for own in merged["refused"]], [1, 2, 3, 5, 6])
        reasons = [own["reason"] for own in merged["refused"]]
        for reason, part in zip(reasons, ["\"oops\", which is no number", "is empty", "\"green\"", "no finite number",
                                          "has 2 fields"]):
            self.assertIn(part, reason)
        self.assertIn("row 1 (counted from 0; line 4)", reasons[0])
        tensors, metadata = read_safetensors(merged["path"])
        # Size, red and blue, the last one: of one part each but for the colours, which are one.
        numpy.testing.assert_allclose(
            tensors["contributions"][[0, 4, 7]], [[1, 2, 10], [5, 3, -4], [8, 3, 2]], rtol=1e-6)
        self.assertTrue(numpy.isnan(tensors["contributions"][[1, 2, 3, 5, 6]]).all())
        self.assertEqual(json.loads(metadata["names"]), ["size", "colour", "two\nlines"])

    def test_numbers_that_become_others(self):
        ids = [3, 16777217, 16777216, 16777219, "oops", 16777221]
        self.write("rows.csv", "id,b\n" + "".join("%s,%s\n" % (own, "1e-60" if own == 3 else "1") for own in ids))
        self.make(self.model(Weighted(2)), "--input", self.path("rows.csv"), "--batch", "2", "--shards", "3")
        merged = self.run_all()
        told = [(own["note"], own["warning"], own["row"], own["rows"])
                for own in merged["notes"] if "of which" in own["note"]]
        self.assertEqual(told, [
            ('column "b" is 1e-60, of which float32 makes 0: that is what is explained', True, 0, 1),
            ('column "id" is 16777217, of which float32 makes 16777216: that is what is explained', True, 1, 3),
        ])

    def test_tables_as_csv(self):
        self.write("rows.csv", "a,b\n" + "".join("%d,%d\n" % (k, -k) for k in range(50)))
        self.make(self.model(Weighted(2)), "--input", self.path("rows.csv"), "--format", "csv", "--batch", "8",
                  "--shards", "5")
        merged = self.run_all()
        with open(merged["path"], newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 50)
        for k, row in enumerate(rows):
            self.assertEqual(int(row["row"]), k)
            self.assertEqual((float(row["a"]), float(row["b"])), (k, -2 * k))
            self.assertEqual(row["refused"], "")

    def test_folders_of_tensors(self):
        os.mkdir(self.path("data"))
        for k in range(12):
            numpy.save(self.path("data/%02d.npy" % k), numpy.full((1, 3), k, numpy.float32))
        self.write("data/05.npy", b"no tensor at all")
        numpy.save(self.path("data/07.npy"), numpy.zeros((1, 4), numpy.float32))
        self.make(self.model(Weighted(3)), "--input", self.path("data") + ":dim=1", "--batch", "4", "--shards", "2")
        merged = self.run_all()
        self.assertEqual([own["row"] for own in merged["refused"]], [5, 7])
        self.assertIn("other rows are f32[3]", merged["refused"][1]["reason"])
        tensors, _ = read_safetensors(merged["path"])
        numpy.testing.assert_allclose(tensors["contributions"][11], [11, 22, 33], rtol=1e-6)
        os.remove(self.path("data/11.npy"))
        self.refused("has 11 files, and had 12", "run", self.plan, "--again")

    def test_bytes_that_are_no_text(self):
        self.write("rows.csv", b"a,town,b\n1,x,2\n\xfc,x,3\n4,M\xfcnchen,5\n6,K\xc3\xb6ln,7\n")
        self.write("mapping.json", json.dumps({"town": None}))
        self.make(self.model(Weighted(2)), "--input", self.path("rows.csv"), "--mapping", self.path("mapping.json"),
                  "--group", "town", "--batch", "2")
        merged = self.run_all()
        self.assertEqual([own["row"] for own in merged["refused"]], [1, 2])
        self.assertIn("row 1 (counted from 0; line 3), column \"a\" is \"\\xfc\"", merged["refused"][0]["reason"])
        self.assertIn("row 2 (counted from 0; line 4), column \"town\" is not UTF-8", merged["refused"][1]["reason"])
        report = json.loads(self.job("report", self.plan, "--json"))
        self.assertEqual([group["text"] for group in report["targets"][0]["columns"][0]["groups"]], ["K\u00f6ln", "x"])

    def test_folders_of_whatever_lies_there(self):
        """Ids of 32 bits among what is no row, what cannot be read, and rows of another kind."""
        os.mkdir(self.path("data"))
        for k in range(20, 32):
            numpy.save(self.path("data/%02d.npy" % k), numpy.array([[16777217 + k, 1]], numpy.int32))
        os.mkdir(self.path("data/07 folder"))
        os.symlink("nowhere.npy", self.path("data/08.npy"))
        self.write("data/09.npy", b"no tensor at all")
        os.symlink("20.npy", self.path("data/19.npy"))
        open(os.fsencode(self.path("data/")) + b"21\xff.npy", "wb").close()
        self.write("data/25.npy", b"")
        numpy.save(self.path("data/27.npy"), numpy.array([[1.5, 2]], numpy.float32))
        numpy.save(self.path("data/28.npy"), numpy.array([[1, 2]], numpy.int64))
        model = self.path("model.pt")
        torch.jit.script(Looked()).save(model)
        self.make(model, "--input", self.path("data") + ":dim=1", "--baseline", "token:0", "--batch", "16", "--shards", "1")
        with open(self.plan) as file:
            self.assertEqual(json.load(file)["data"]["rows"], 16)
        merged = self.run_all()
        refused = {own["row"]: own["reason"] for own in merged["refused"]}
        self.assertEqual(sorted(refused), [0, 1, 5, 9, 11, 12])
        self.assertIn("08.npy is a link to a file that is not there", refused[0])
        self.assertIn("21\\xff.npy", refused[5])
        self.assertIn("27.npy is f32[2], and other rows are i32[2]", refused[11])
        self.assertIn("28.npy is i64[2], and other rows are i32[2]", refused[12])
        tensors, _ = read_safetensors(merged["path"])
        numpy.testing.assert_array_equal(tensors["value"][[2, 3, 4, 6, 7, 8, 10, 13, 14, 15]],
                                         [8, 8, 9, 10, 1, 2, 4, 7, 8, 9])
        os.symlink("../rows.npy", self.path("data/32.npy"))
        self.refused("has 17 files, and had 16", "run", self.plan, "--again")

    def test_what_cannot_be_planned(self):
        self.numbers(10, 3)
        model = self.model(Weighted(3))
        self.refused("--out", "plan", model, "--input", self.path("rows.npy"))
        self.refused("No such file", "plan", model, "--input", self.path("none.npy"), "--out", self.plan)
        self.refused("dimension 0 counts the rows", "plan", model, "--input", self.path("rows.npy") + ":dim=0", "--out",
                     self.plan)
        self.refused("safetensors or csv", "plan", model, "--input", self.path("rows.npy"), "--format", "parquet",
                     "--out", self.plan)
        self.refused("draws random numbers", "plan", self.model(Drawn()), "--input", self.path("rows.npy"), "--out",
                     self.plan)
        self.refused("influence each other", "plan", self.model(Coupled()), "--input", self.path("rows.npy"), "--out",
                     self.plan)
        model = self.model(Weighted(3))
        numpy.save(self.path("few.npy"), numpy.zeros((10, 2), numpy.float32))
        self.refused("", "plan", model, "--input", self.path("few.npy"), "--out", self.plan)
        self.write("rows.csv", "a,b,c\n1,2,3\n4,\"5,6\n7,8,9\n")
        self.refused("quotation mark", "plan", model, "--input", self.path("rows.csv"), "--out", self.plan)
        for content, said in [("", "is empty; its first line has to name the columns"), ("\n\n", "is empty"),
                              ("a,b,c\n", "has names of columns, but no rows"),
                              ("a,b,c\r1,2,3\r", "lines end with CR; they have to end with LF or CR LF")]:
            self.write("rows.csv", content)
            self.refused(said, "plan", model, "--input", self.path("rows.csv"), "--out", self.plan)
        self.write("rows.csv", "a,value,c\n1,2,3\n")
        self.refused(["two columns of the results would be called \"value\"", "--names"], "plan", model, "--input",
                     self.path("rows.csv"), "--out", self.plan)
        self.assertFalse(os.path.exists(self.plan))


    def test_numbers_of_options(self):
        self.numbers(10, 3)
        plan = ["plan", self.model(Weighted(3)), "--input", self.path("rows.npy"), "--out", self.plan]
        for option, numbers, said in [
                ("--threads", ["0", "-1", "4294967297", "many"], "a whole number from 1 to 4096 is expected"),
                ("--batch", ["0", "-1", "9223372036854775807"], "a whole number from 1 to 2147483647 is expected"),
                ("--shards", ["0", "9223372036854775808"], "a whole number from 1 on is expected")]:
            for number in numbers:
                message = self.refused([option, said, "run addend job plan --help"], *plan, option, number)
                self.assertLess(len(message), 120)
        self.refused("--slurm", *plan, "--slurm", "--json")
        for shards in [str(2 ** 62), str(2 ** 63 - 1)]:
            made = json.loads(self.job(*plan, "--json", "--shards", shards, "--batch", "3"))
            self.assertEqual((made["shards"], made["shard_rows"]), (4, 3))


class EnginesTest(JobTest):
    def make_network(self, rows=600):
        self.numbers(rows, 6)
        return self.make(self.model(Network(6)), "--input", self.path("rows.npy"), "--shards", "20", "--batch", "10")

    def forget(self):
        subprocess.check_call(["rm", "-r", self.path("plan.out")])

    def test_one_process_and_xargs_give_the_same_bytes(self):
        made = self.make_network()
        single = self.run_all()["sha256"]
        self.forget()
        numbers = "".join("%d\n" % k for k in range(made["shards"]))
        subprocess.run(["xargs", "-P", "2", "-n", "1", PROGRAM, "job", "run", self.plan, "--shard"], check=True,
                       input=numbers, universal_newlines=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.merge()["sha256"], single)

    def test_killed_workers_lose_and_double_nothing(self):
        made = self.make_network()
        single = self.run_all()["sha256"]
        for seed in range(JOBS):
            self.forget()
            draw = random.Random(seed)
            kills = 0
            workers = []

            def start():
                own = list(range(made["shards"]))
                draw.shuffle(own)
                arguments = [argument for shard in own for argument in ("--shard", str(shard))]
                return subprocess.Popen([PROGRAM, "job", "run", self.plan] + arguments, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

            deadline = time.monotonic() + 600
            while json.loads(self.job("status", self.plan, "--json"))["done"] < made["shards"]:
                self.assertLess(time.monotonic(), deadline)
                workers = [worker for worker in workers if worker.poll() is None]
                while len(workers) < 2:
                    workers.append(start())
                time.sleep(draw.uniform(0.2, 0.8))
                if kills < 6:
                    victim = draw.choice(workers)
                    victim.send_signal(signal.SIGKILL)
                    victim.wait()
                    kills += 1
            for worker in workers:
                worker.kill()
                worker.wait()
            merged = self.merge()
            self.assertEqual((merged["sha256"], merged["rows"]), (single, 600))
            self.assertEqual(json.loads(self.job("status", self.plan, "--json"))["attempts"], 0)

    def slurm_tasks(self, tools, kernels, *arguments):
        """Plans, and runs the script for each task as Slurm would, with the program of a folder. Gives the script."""
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        script = self.job("plan", self.model(Network(6)), "--input", self.path("rows.npy"), *arguments, "--out",
                          self.plan, "--slurm", env=dict(environment, **kernels))
        (last,) = re.findall("^#SBATCH --array=0-([0-9]+)$", script, re.MULTILINE)
        self.write("job.sh", script)
        # One shell for all of them, as there may be a thousand.
        subprocess.run(["sh", "-euc", "task=0; while [ $task -le %s ]; do SLURM_ARRAY_TASK_ID=$task sh '%s'; "
                        "task=$((task + 1)); done" % (last, self.path("job.sh"))], check=True,
                       env=dict(environment, PATH=tools + os.pathsep + os.environ["PATH"]),
                       stdout=subprocess.DEVNULL)
        return script

    def test_slurm_script(self):
        self.numbers(100, 6)
        script = self.slurm_tasks(os.path.dirname(PROGRAM), {}, "--batch", "10", "--shards", "5")
        self.assertIn("#SBATCH --array=0-4\n", script)
        self.assertNotIn("OPENBLAS_CORETYPE", script)
        self.assertEqual(self.merge()["rows"], 100)
        self.assertEqual(os.listdir(self.path("plan.slurm")), [])
        alone = subprocess.run(["sh", self.path("job.sh")], stderr=subprocess.PIPE, universal_newlines=True)
        self.assertNotEqual(alone.returncode, 0)
        self.assertIn("SLURM_ARRAY_TASK_ID", alone.stderr)

    def test_slurm_script_of_many_shards(self):
        # A program that only writes down how it is called.
        tools = self.path("tools")
        os.mkdir(tools)
        os.chmod(self.write("tools/addend", "#!/bin/sh\necho \"$OPENBLAS_CORETYPE $*\" >>'%s'\n" % self.path("calls")),
                 0o755)
        self.numbers(2345, 6)
        script = self.slurm_tasks(tools, {"OPENBLAS_CORETYPE": "Haswell"}, "--batch", "1", "--shards", "2345")
        self.assertIn("#SBATCH --array=0-999\n", script)
        with open(self.path("calls")) as file:
            calls = file.read().splitlines()
        self.assertEqual(len(calls), 1000)
        shards = []
        for call in calls:
            words = call.split()
            self.assertEqual(words[:4], ["Haswell", "job", "run", self.plan])
            self.assertEqual(set(words[4::2]), {"--shard"})
            shards += [int(word) for word in words[5::2]]
        self.assertEqual(sorted(shards), list(range(2345)))

    def test_slurm_script_behind_links(self):
        """A folder above that of a link is the one above what the link leads to."""
        self.numbers(10, 6)
        os.makedirs(self.path("store/deep"))
        os.symlink("store/deep", self.path("link"))
        script = self.job("plan", self.model(Network(6)), "--input", self.path("rows.npy"), "--out",
                          self.path("link/../plan.json"), "--slurm")
        real = os.path.realpath(self.path("store"))
        self.assertIn("exec addend job run %s/plan.json " % real, script)
        self.assertIn("--output=\"%s/plan.slurm/" % real, script)
        self.assertTrue(os.path.exists(real + "/plan.json"))
        # Results stand beside the name of the plan, which may be a link itself.
        os.symlink("store/plan.json", self.path("other.json"))
        os.remove(self.path("rows.npy"))
        self.numbers(12, 6)
        script = self.job("plan", self.path("model.pt"), "--input", self.path("rows.npy"), "--out",
                          self.path("other.json"), "--slurm")
        self.assertIn("%s/other.json " % os.path.realpath(self.folder), script)

    def test_a_plan_moves_with_what_it_names(self):
        numbers = self.numbers(30, 6)
        os.makedirs(self.path("job"))
        os.makedirs(self.path("store"))
        os.rename(self.path("rows.npy"), self.path("store/rows.npy"))
        os.symlink("../store/rows.npy", self.path("job/rows.npy"))
        self.model(Network(6))
        os.rename(self.path("model.pt"), self.path("job/model.pt"))
        self.job("plan", "job/model.pt", "--input", "job/rows.npy", "--out", "job/plan.json", cwd=self.folder)
        os.makedirs(self.path("elsewhere/far"))
        os.rename(self.path("job"), self.path("elsewhere/far/job"))
        os.remove(self.path("elsewhere/far/job/rows.npy"))
        numpy.save(self.path("elsewhere/far/job/rows.npy"), numbers)
        self.plan = self.path("elsewhere/far/job/plan.json")
        self.assertEqual(self.run_all()["rows"], 30)

    def test_slurm_script_where_slurm_cannot_write(self):
        self.numbers(10, 6)
        for name in ["back\\slash.json", "two\nlines.json"]:
            self.refused("backslash or a line break", "plan", self.model(Network(6)), "--input", self.path("rows.npy"),
                         "--out", self.path(name), "--slurm")
            self.assertFalse(os.path.exists(self.path(name)))

    def test_pods_of_an_indexed_job(self):
        """Runs the command of docs/jobs.md like the job controller of Kubernetes: with an index and nothing else; again
        if a pod fails; in two pods of one index if the controller lost sight of the first."""
        (manifest,) = page_blocks("docs/jobs.md", "yaml", "completionMode: Indexed")
        command = json.loads(re.search(r"command: (\[.*\])$", manifest, re.MULTILINE).group(1))
        environment = dict(re.findall(r"- \{name: (\w+), value: \"(.*)\"\}$", manifest, re.MULTILINE))
        self.assertEqual(environment, {"OMP_NUM_THREADS": "1"})
        completions, limit = (int(re.search(key + r": ([0-9]+)\b", manifest).group(1))
                              for key in ["completions", "backoffLimitPerIndex"])
        self.numbers(600, 6)
        made = self.make(self.model(Network(6)), "--input", self.path("rows.npy"), "--shards", str(completions),
                         "--batch", "10")
        self.assertEqual(made["shards"], completions)
        single = self.run_all()["sha256"]
        self.forget()
        command = [word.replace("/data/plan.json", self.plan) for word in command]
        self.assertIn(self.plan, " ".join(command))

        def start(index):
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", env=dict(
                environment, PATH=os.path.dirname(PROGRAM) + ":/usr/bin:/bin", JOB_COMPLETION_INDEX=str(index)))

        draw = random.Random(3)
        killed = 0
        for index in range(completions):
            failures = 0
            while True:
                pods = [start(index) for _ in range(draw.choice([1, 1, 2]))]
                if killed < 5 and failures < limit and draw.random() < 0.6:
                    time.sleep(draw.uniform(0, 0.6))
                    pods[0].kill()
                    killed += 1
                codes = [pod.wait() for pod in pods]
                if 0 in codes:
                    break
                failures += 1
                self.assertLessEqual(failures, limit)
        self.assertGreater(killed, 0)
        merged = self.merge()
        self.assertEqual((merged["sha256"], merged["rows"]), (single, 600))
        self.assertEqual(json.loads(self.job("status", self.plan, "--json"))["attempts"], 0)


class FaultsTest(JobTest):
    def make_network(self):
        self.numbers(200, 6)
        self.make(self.model(Network(6)), "--input", self.path("rows.npy"), "--shards", "4", "--batch", "10")

    def test_a_full_disk(self):
        self.make_network()

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        # Python ignores the signal that would end the process, and so does what it starts here.
        said = self.refused("too large", "run", self.plan, preexec_fn=limit, restore_signals=False)
        self.assertEqual(said.count("\n"), 1)
        status = json.loads(self.job("status", self.plan, "--json"))
        self.assertEqual((status["done"], status["attempts"]), (0, 0))
        self.assertEqual(self.run_all()["rows"], 200)

    def test_other_kernels(self):
        self.make_network()
        with open(self.plan) as file:
            blas = json.load(file)["libtorch"]["blas"]
        if "DYNAMIC_ARCH" not in blas:
            self.skipTest("this BLAS has one kind of kernels: " + blas)
        other = "Nehalem" if "Nehalem" not in blas else "Haswell"
        self.refused(["computes other bits", "BLAS", other, blas], "run", self.plan,
                     env=dict(os.environ, OPENBLAS_CORETYPE=other))

    def test_other_models_and_data(self):
        self.make_network()
        model = self.path("model.pt")
        with open(model, "rb") as file:
            content = file.read()
        torch.manual_seed(1)
        torch.jit.script(torch.nn.Linear(6, 3)).save(model)
        self.refused("is not the model that the plan was made for", "run", self.plan)
        self.write("model.pt", content)
        rows = numpy.load(self.path("rows.npy"))
        rows[120] += 1
        numpy.save(self.path("rows.npy"), rows)
        self.refused("rows 100 to 149 are not those that the plan was made for", "run", self.plan, "--shard", "2")
        os.remove(self.path("rows.npy"))
        self.refused("rows.npy", "run", self.plan, "--shard", "0")

    def test_results_of_another_plan(self):
        self.make_network()
        self.run_all()
        self.make_network()  # the same plan once more
        with open(self.plan, "rb") as file:
            before = file.read()
        numpy.save(self.path("rows.npy"), numpy.load(self.path("rows.npy")) + 1)
        model = self.path("model.pt")
        said = ["plan.out holds the results of another plan", "remove that folder", "another path"]
        plan = ["plan", model, "--input", self.path("rows.npy"), "--shards", "4", "--batch", "10", "--out"]
        self.refused(said, *plan, self.plan)
        self.refused(said, *plan, self.path("plan"))  # whose results would lie in the same folder
        with open(self.plan, "rb") as file:
            self.assertEqual(file.read(), before)
        self.job(*plan, self.path("other.json"))
        os.replace(self.path("other.json"), self.plan)
        self.refused(said, "run", self.plan)
        self.refused(said, "run", self.plan, "--shard", "0", "--again")
        done = self.run_program("job", "status", self.plan)
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 of 4 are done\n", done.stdout)
        self.assertIn("belongs to another plan", " ".join(done.stdout.split()))
        self.refused(["4 of 4 shards are wrong", "belongs to another plan", "remove what is wrong"], "merge", self.plan)

    def test_merges_at_once(self):
        self.make_network()
        single = self.run_all()["sha256"]
        for _ in range(3):
            merges = [subprocess.Popen([PROGRAM, "job", "merge", self.plan, "--json"], stdout=subprocess.PIPE)
                      for _ in range(3)]
            self.assertEqual([json.loads(merge.communicate()[0])["sha256"] for merge in merges], [single] * 3)
        subprocess.run(["sha256sum", "--check", "--quiet", "_SUCCESS"], check=True, cwd=self.path("plan.out"))
        self.assertEqual(sorted(os.listdir(self.path("plan.out"))),
                         ["_SUCCESS", "attempts", "merged.json", "merged.safetensors", "shards"])
        self.refused("it is read as well", "report", self.plan, "--out", self.path("plan.out/_SUCCESS"))

    def test_flipped_and_missing_shards(self):
        self.make_network()
        self.refused("4 of 4 shards are missing", "merge", self.plan)
        self.job("run", self.plan)
        shards = os.path.join(self.path("plan.out"), "shards")
        name = [name for name in sorted(os.listdir(shards)) if name.endswith(".safetensors")][2]
        with open(os.path.join(shards, name), "r+b") as file:
            file.seek(1000)
            byte = file.read(1)
            file.seek(1000)
            file.write(bytes([byte[0] ^ 4]))
        self.refused([name, "damaged"], "merge", self.plan)
        self.assertFalse(os.path.exists(os.path.join(self.path("plan.out"), "_SUCCESS")))
        os.remove(os.path.join(shards, name))
        self.refused("1 of 4 shards are missing: 2", "merge", self.plan)
        self.assertEqual(self.run_all()["rows"], 200)


class ReportTest(JobTest):
    """`addend job report`, against the rows themselves."""

    def read_page(self, path):
        with open(path) as file:
            text = file.read()
        self.assertNotIn("http://", text.replace("http://www.w3.org/2000/svg", ""))
        self.assertNotIn("https://", text)
        data = text[text.index('id="data">') + len('id="data">'):]
        return json.loads(data[:data.index("</script>")])

    def plan_table(self, name="plan.json", shift=0.0, columns="age,income", more=()):
        random_numbers = numpy.random.RandomState(3).standard_normal((300, 2))
        random_numbers[:, 0] += shift
        lines = [columns + ",month,region"]
        for k, (a, b) in enumerate(random_numbers.tolist()):
            lines.append("%r,%r,%s,%s" % (a if k != 7 else "?", b, "2024-%02d" % (12 - k % 12), "nes"[k % 3]))
        self.write(name + ".csv", "\n".join(lines) + "\n")
        self.write("mapping.json", json.dumps({"month": None, "region": None}))
        self.plan = self.path(name)
        self.make(self.model(Weighted(2)), "--input", self.plan + ".csv", "--mapping", self.path("mapping.json"),
                  "--batch", "50", "--shards", "3", "--group", "month", "--group", "region", "--target", "0", *more)
        numbers = random_numbers.astype(numpy.float32) * [1, 2]
        return numpy.delete(numbers, 7, 0)

    def test_the_page_holds_what_the_rows_say(self):
        exact = self.plan_table()
        self.run_all()
        said = self.job("report", self.plan)
        page = os.path.join(self.path("plan.out"), "report.html")
        self.assertIn(page, said.replace("\n           ", ""))
        report = self.read_page(page)
        self.assertEqual(report, json.loads(self.job("report", self.plan, "--json")))
        self.assertEqual((report["format"], report["rows"], report["refused_rows"]), ("addend.job_report", 300, 1))
        self.assertEqual(report["refused"][0]["row"], 7)
        self.assertIn("no number", report["refused"][0]["reason"])
        with open(report["result"]["path"], "rb") as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest(), report["result"]["sha256"])
        (target,) = report["targets"]
        self.assertEqual((target["rows"], report["components"]), (299, ["age", "income"]))
        for c in range(2):
            own = target["components"][c]
            self.assertAlmostEqual(own["mean"], exact[:, c].mean(), places=6)
            self.assertAlmostEqual(own["mean_magnitude"], numpy.abs(exact[:, c]).mean(), places=6)
            self.assertEqual(own["positive"], (exact[:, c] > 0).sum())
            for share, told in zip(report["shares"], own["quantiles"]):
                nearest = numpy.sort(exact[:, c])[int(numpy.floor(share * 298 + 0.5))]
                self.assertLessEqual(abs(told - nearest), abs(nearest) / 100)
        self.assertEqual(target["detailed"], [1, 0])
        months, regions = target["columns"]
        self.assertEqual(months["order"], "dates")
        self.assertEqual([group["text"] for group in months["groups"]], ["2024-%02d" % k for k in range(1, 13)])
        self.assertEqual((regions["order"], sorted(group["rows"] for group in regions["groups"])), ("texts", [99, 100, 100]))
        rows = numpy.delete(numpy.arange(300), 7)
        for group in months["groups"]:
            mine = exact[12 - rows % 12 == int(group["text"][5:])]
            self.assertEqual(group["rows"], len(mine))
            numpy.testing.assert_allclose(group["means"], mine.mean(0)[[1, 0]], rtol=1e-4, atol=1e-6)

    def test_more_texts_than_there_are_groups(self):
        self.write("rows.csv", "a,b,id\n" + "".join("%d,1,%d\n" % (k, 10000 + k * 7 % 1200) for k in range(2400)))
        self.write("mapping.json", json.dumps({"id": None}))
        self.make(self.model(Weighted(2)), "--input", self.path("rows.csv"), "--mapping", self.path("mapping.json"),
                  "--group", "id", "--batch", "100", "--shards", "6")
        self.run_all()
        (column,) = json.loads(self.job("report", self.plan, "--json"))["targets"][0]["columns"]
        self.assertEqual([group["text"] for group in column["groups"]], [str(k) for k in range(10000, 11000)])
        self.assertEqual({group["rows"] for group in column["groups"]}, {2})
        rows = [k for k in range(2400) if k * 7 % 1200 >= 1000]
        self.assertEqual(column["others"]["rows"], len(rows))
        numpy.testing.assert_allclose(column["others"]["means"], [numpy.mean(rows), 2], rtol=1e-6)

    def test_worst_rows_are_those_of_the_file(self):
        self.numbers(400, 6)
        self.make(self.model(Network(6)), "--input", self.path("rows.npy"), "--shards", "4", "--batch", "10", "--target",
                  "top1", "--target", "1-2", "--classes", "x,y,z")
        merged = self.run_all()
        tensors, _ = read_safetensors(merged["path"])
        out = self.path("elsewhere.html")
        self.job("report", self.plan, "--out", out)
        report = self.read_page(out)
        self.assertFalse(os.path.exists(os.path.join(self.path("plan.out"), "report.html")))
        self.assertEqual([target["name"] for target in report["targets"]], ["top1", "y minus z"])
        for t, target in enumerate(report["targets"]):
            leftovers = numpy.abs(tensors["leftover"][:, t])
            worst = sorted(range(400), key=lambda row: (-leftovers[row], row))[:10]
            self.assertEqual([own["row"] for own in target["worst_leftover"]], [row for row in worst if leftovers[row]])
            self.assertTrue(target["worst_rows"])
            for own in target["worst_rows"]:
                row = own["row"]
                self.assertEqual((own["value"], own["reference"], own["leftover"], own["element"]),
                                 tuple(tensors[key][row, t] for key in ("value", "reference", "leftover", "target")))
                told = {part["component"]: part["contribution"] for part in own["contributions"]}
                self.assertEqual(told, dict(enumerate(tensors["contributions"][row, t])))

    def test_drift(self):
        before = self.plan_table("may.json")
        self.run_all()
        after = self.plan_table("june.json", shift=1.0)
        self.run_all()
        drift = json.loads(self.job("report", self.path("june.json"), "--against", self.path("may.json"), "--json"))["drift"]
        (target,) = drift["targets"]
        for c in range(2):
            points = numpy.concatenate([before[:, c], after[:, c]])
            shares = [[(numbers[:, c] <= x).mean() for x in points] for numbers in (before, after)]
            exact = numpy.abs(numpy.subtract(*shares)).max()
            self.assertLessEqual(target["components"][c]["distance"], exact + 1e-9)
            self.assertGreaterEqual(target["components"][c]["distance"], exact - 0.02)
        self.assertGreater(target["components"][0]["distance"], 0.3)
        self.assertEqual(target["components"][1]["distance"], 0)
        self.assertTrue(drift["same_model"] and drift["same_baselines"] and drift["same_policy"])
        self.plan_table("july.json", columns="age,rent")
        self.run_all()
        self.refused(["july.json has not the components of", "no income"], "report", self.path("june.json"), "--against",
                     self.path("july.json"))
        self.plan_table("august.json")
        self.refused("august.json is not merged; run addend job merge", "report", self.path("june.json"), "--against",
                     self.path("august.json"))

    def test_results_as_text(self):
        self.plan_table(more=("--format", "csv"))
        self.run_all()
        self.job("report", self.plan)
        report = self.read_page(os.path.join(self.path("plan.out"), "report.html"))
        self.assertEqual((report["result"]["format"], report["targets"][0]["worst_rows"]), ("csv", []))

    def test_what_is_refused(self):
        self.plan_table()
        self.refused("is not merged; run addend job merge " + self.plan, "report", self.plan)
        self.job("run", self.plan)
        self.refused("is not merged; run addend job merge " + self.plan, "report", self.plan)
        self.merge()
        path = os.path.join(self.path("plan.out"), "merged.json")
        with open(path, "rb") as file:
            whole = file.read()
        draw = random.Random(1)
        for place in [10, whole.index(b'"sum":') + 9, len(whole) - 3] + [draw.randrange(len(whole) - 1) for _ in range(3)]:
            self.write(path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
            self.refused(["merged.json is damaged", "addend job merge"], "report", self.plan)
        self.write(path, whole[:len(whole) // 2])
        self.refused("merged.json is damaged", "report", self.plan)
        self.write(path, whole)
        with open(os.path.join(self.path("plan.out"), "merged.safetensors"), "ab") as file:
            file.write(b"x")
        self.refused("bytes, and had", "report", self.plan)
        self.merge()
        self.refused("it is read as well", "report", self.plan, "--out", self.plan)
        self.job("report", self.plan)
        # Another plan in the place of the one that was merged.
        self.plan_table("other.json", more=("--no-contributions", "--reasons", self.concepts()))
        self.plan = self.path("plan.json")
        os.replace(self.path("other.json"), self.plan)
        self.refused(["belongs to another plan", "addend job merge"], "report", self.plan)

    def concepts(self):
        self.write("concepts.json", json.dumps({"format": "addend.concepts", "version": 1, "concepts": [
            {"name": "all", "components": ["age", "income"]}]}))
        return self.path("concepts.json")


if __name__ == "__main__":
    unittest.main()
