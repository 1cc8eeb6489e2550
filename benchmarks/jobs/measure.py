"""Cost of a job from one end to the other: rows of 32 features through an MLP, contributions and reasons of each.

usage: measure.py ADDEND [--rows N] [--shards N] [--slurm] [--folder FOLDER] [--json FILE]

Makes the model and the rows, plans the job, and runs all shards by one worker and by two at once (xargs). Tells seconds, rows a
second, the merged file, and the memory of a worker after each shard, which receipts hold. --slurm: then also under Slurm, whose
daemons are started for it with two tasks at once, and what each shard costs beside its own seconds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "addend"))
from slurm_testing import MISSING, Cluster  # noqa: E402

FEATURES = 32
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENVIRONMENT = dict(os.environ, **{name: "1" for name in THREADS})


def make_model(path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 2)).eval()
    torch.jit.trace(model, torch.zeros(2, FEATURES)).save(path)
    return model


def make_rows(path, rows):
    numbers = numpy.lib.format.open_memmap(path, mode="w+", dtype=numpy.float32, shape=(rows, FEATURES))
    random = numpy.random.RandomState(1)
    for begin in range(0, rows, 100000):
        end = min(rows, begin + 100000)
        numbers[begin:end] = random.standard_normal((end - begin, FEATURES))
    numbers.flush()


def run(*command, **options):
    begin = time.monotonic()
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, universal_newlines=True, check=True, **options)
    return time.monotonic() - begin, done.stdout


def receipts(folder):
    shards = os.path.join(folder, "plan.out", "shards")
    found = []
    for name in sorted(os.listdir(shards)):
        if name.endswith(".json"):
            with open(os.path.join(shards, name)) as file:
                found.append(json.load(file))
    return sorted(found, key=lambda own: own["shard"])


def run_under_slurm(addend, folder, plan, more):
    """Seconds from sbatch to the end of the last task, with two at once."""
    own = os.path.join(folder, "slurm")
    os.mkdir(own)
    cluster = Cluster(own, os.path.dirname(os.path.abspath(addend)), cpus=2)
    cluster.environment.update({name: "1" for name in THREADS})
    try:
        cluster.start_all()
        _, script = run(addend, "job", "plan", *more, "--out", plan, "--slurm")
        begin = time.monotonic()
        if cluster.ask("sbatch", input=script, cwd=folder) is None:
            sys.exit(cluster.said)
        cluster.wait("every task ended", lambda: not cluster.queue(), patience=3600)
        return time.monotonic() - begin
    finally:
        cluster.stop()
        shutil.rmtree(own)


def plain_rows_per_second(model, path):
    """Rows that the model alone computes in a second of the processor, in the batches of the job."""
    rows = torch.from_numpy(numpy.load(path, mmap_mode="r")[:25600].copy())
    torch.set_num_threads(1)
    with torch.no_grad():
        model(rows[:256])
        begin = time.process_time()
        for batch in rows.split(256):
            model(batch)
    return len(rows) / (time.process_time() - begin)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("addend")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.slurm and MISSING:
        sys.exit("Slurm is not installed (tools/setup does it): no " + ", ".join(MISSING))
    folder = arguments.folder or tempfile.mkdtemp()
    data, model_path, plan = (os.path.join(folder, name) for name in ("rows.npy", "model.pt", "plan.json"))
    model = make_model(model_path)
    make_rows(data, arguments.rows)
    with open(os.path.join(folder, "concepts.json"), "w") as file:
        json.dump({"format": "addend.concepts", "version": 1, "at_most": 4, "concepts": [
            {"name": "Group %d" % k, "components": ["column %d" % c for c in range(4 * k, 4 * k + 4)]} for k in range(8)]}, file)
    result = {"rows": arguments.rows, "features": FEATURES, "plain_rows_per_second": plain_rows_per_second(model, data)}
    asked = [model_path, "--input", data, "--baseline", "0", "--target", "0", "--reasons", os.path.join(folder, "concepts.json")]
    asked += ["--shards", str(arguments.shards)] if arguments.shards else []
    result["plan_seconds"], text = run(arguments.addend, "job", "plan", *asked, "--out", plan, "--json")
    made = json.loads(text)
    result["shards"] = made["shards"]
    for engine in ("1", "2") + (("slurm",) if arguments.slurm else ()):
        shutil.rmtree(os.path.join(folder, "plan.out"), ignore_errors=True)
        if engine == "slurm":
            seconds = run_under_slurm(arguments.addend, folder, plan, asked)
        else:
            # One process runs shard after shard; of two, each takes every other one.
            workers = int(engine)
            lines = "\n".join(" ".join("--shard %d" % shard for shard in range(first, made["shards"], workers))
                              for first in range(workers))
            seconds, _ = run("sh", "-c", "xargs -P %d -L 1 '%s' job run '%s'" % (workers, arguments.addend, plan), input=lines)
        result["run_seconds_" + engine] = seconds
        own = receipts(folder)
        if engine == "slurm":
            # The time in which two workers, always busy, compute nothing that receipts tell of.
            work = sum(one["run"]["seconds"] for one in own)
            result["slurm_overhead_per_shard"] = (2 * seconds - work) / made["shards"]
        if engine == "1":
            result["peak_memory_first"] = own[0]["run"]["peak_memory"]
            result["peak_memory_last"] = own[-1]["run"]["peak_memory"]
            result["work_seconds"] = sum(one["run"]["seconds"] for one in own)
        seconds, text = run(arguments.addend, "job", "merge", plan, "--json")
        merged = json.loads(text)
        result["merge_seconds"] = seconds
        if result.setdefault("sha256", merged["sha256"]) != merged["sha256"]:
            sys.exit("engines give different bytes")
        result["bytes"] = merged["bytes"]
        result["refused"] = len(merged["refused"])
    result["speedup_of_two"] = result["run_seconds_1"] / result["run_seconds_2"]
    result["rows_per_second_1"] = arguments.rows / result["run_seconds_1"]
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(text + "\n")
    if not arguments.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
