"""Cost of Dask as the engine of a job, on this machine.

usage: dask_engine.py ADDEND PACKAGE overhead|sleeping|caller [--rows N] [--shards N] [--workers N] [--json FILE]

ADDEND is the program, PACKAGE the folder in which Python finds the package addend.

overhead  seconds of two workers under xargs and of two under Dask for the same shards, one after the other, three times each
sleeping  shards that sleep, on many workers: the share of the workers' time in which they sleep
caller    the memory of the process that calls addend.dask.run, for a plan of many rows
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../bindings/python/tests")]
import measure  # noqa: E402
from dask_cluster import Cluster  # noqa: E402

SLEEP = 5.0


class Sleep:
    def __call__(self, shard):
        time.sleep(SLEEP)


def start_cluster(folder, package, workers):
    cluster = Cluster(folder, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1",
                      PYTHONPATH=os.pathsep.join([package, HERE]))
    cluster.start_scheduler()
    for _ in range(workers):
        cluster.start_worker()
    return cluster


def make_job(program, folder, rows, shards):
    data, model, plan = (os.path.join(folder, name) for name in ("rows.npy", "model.pt", "plan.json"))
    measure.make_model(model)
    measure.make_rows(data, rows)
    measure.run(program, "job", "plan", model, "--input", data, "--baseline", "0", "--target", "0", "--shards", str(shards),
                "--out", plan)
    return plan


def overhead(arguments, folder):
    import addend.dask

    rows, shards = arguments.rows or 2000000, arguments.shards or 8
    plan = make_job(arguments.addend, folder, rows, shards)
    out = os.path.join(folder, "plan.out")
    lines = "\n".join(" ".join("--shard %d" % shard for shard in range(first, shards, 2)) for first in range(2))
    cluster = start_cluster(folder, arguments.package, 2)
    found = {"rows": rows, "shards": shards, "xargs_seconds": [], "dask_seconds": [], "shard_seconds": []}
    try:
        client = cluster.client(2)
        for _ in range(3):
            shutil.rmtree(out, ignore_errors=True)
            seconds, _ = measure.run(
                "sh", "-c", "xargs -P 2 -L 1 '%s' job run '%s'" % (arguments.addend, plan), input=lines)
            found["xargs_seconds"].append(seconds)
            shutil.rmtree(out, ignore_errors=True)
            begin = time.monotonic()
            status = addend.dask.run(client, plan)
            found["dask_seconds"].append(time.monotonic() - begin)
            found["shard_seconds"].append(status["seconds"] / shards)
        client.close()
    finally:
        cluster.stop()
    found["dask_over_xargs"] = min(found["dask_seconds"]) / min(found["xargs_seconds"])
    return found


def sleeping(arguments, folder):
    import addend.dask

    workers = arguments.workers or 64
    shards = arguments.shards or 10 * workers
    cluster = start_cluster(folder, arguments.package, workers)
    try:
        client = cluster.client(workers, patience=300)
        # The first task of a worker imports the module.
        warm = addend.dask._Loop(client, Sleep(), range(workers), "warm", 60)
        warm.run(None)
        loop = addend.dask._Loop(client, Sleep(), range(shards), "sleep", 60)
        begin = time.monotonic()
        loop.run(None)
        seconds = time.monotonic() - begin
        client.close()
    finally:
        cluster.stop()
    return {"workers": workers, "shards": shards, "shard_seconds": SLEEP, "seconds": seconds,
            "efficiency": shards * SLEEP / (workers * seconds)}


def caller(arguments, folder):
    rows, shards = arguments.rows or 10000000, arguments.shards or 2000
    plan = make_job(arguments.addend, folder, rows, shards)
    cluster = start_cluster(folder, arguments.package, 2)
    code = """
import json, sys
import distributed
import addend.dask
from processes import peak_memory

client = distributed.Client(scheduler_file=sys.argv[1], timeout=60)
before = peak_memory()
status = addend.dask.run(client, sys.argv[2])
print(json.dumps({"shards": status["shards"], "computed": status["computed"], "resident_before": before,
                  "resident_peak": peak_memory()}))
"""
    path = os.pathsep.join([arguments.package, os.path.join(HERE, "../peers")])
    try:
        cluster.client(2).close()
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code, cluster.file, plan], stdout=subprocess.PIPE, check=True,
                              universal_newlines=True, env=dict(os.environ, PYTHONPATH=path))
        found = json.loads(done.stdout)
        found["seconds"] = time.monotonic() - begin
    finally:
        cluster.stop()
    return dict(found, rows=rows, plan_bytes=os.path.getsize(plan))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("addend")
    parser.add_argument("package")
    parser.add_argument("what", choices=["overhead", "sleeping", "caller"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--shards", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.addend, arguments.package = os.path.abspath(arguments.addend), os.path.abspath(arguments.package)
    sys.path.insert(0, arguments.package)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        found = {"overhead": overhead, "sleeping": sleeping, "caller": caller}[arguments.what](arguments, folder)
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
