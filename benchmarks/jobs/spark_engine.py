"""Cost of Spark as the engine of a job, on this machine: the time of the same shards as tasks and under xargs.

usage: spark_engine.py ADDEND ADDEND_JAR ADDEND_SPARK_JAR PYSPARK [--seconds S | --rows N] [--shards N] [--rounds N] [--json FILE]

ADDEND is the program; the archives are addend.jar and addend-spark.jar; PYSPARK is the folder that tools/setup --pyspark fills.
Each round runs two workers under xargs, then by spark-submit with a master, two workers and two executors; both merge. The
processor's time counts all processes of each, the JVMs and their start among it. A trial finds how many rows take a worker
the seconds of a shard, 10 unless given. What a round has found is told on stderr at once.
"""

import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import measure  # noqa: E402

TRIAL = 100000  # rows
BATCH = 256  # rows that a plan puts together
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
CONFIGURATION = """spark.master local-cluster[2,1,1024]
spark.ui.enabled false
spark.log.level ERROR
spark.local.dir %s
spark.sql.warehouse.dir %s
"""


def environment(pyspark, folder):
    # Executors work in Spark's home, which has to be a folder that can be written.
    installed, home, conf = os.path.join(pyspark, "pyspark"), os.path.join(folder, "spark"), os.path.join(folder, "conf")
    os.mkdir(home)
    for name in os.listdir(installed):
        os.symlink(os.path.join(installed, name), os.path.join(home, name))
    os.mkdir(conf)
    with open(os.path.join(conf, "spark-defaults.conf"), "w") as file:
        file.write(CONFIGURATION % (os.path.join(folder, "local"), os.path.join(folder, "warehouse")))
    return dict(os.environ, SPARK_HOME=home, SPARK_CONF_DIR=conf, SPARK_LOCAL_IP="127.0.0.1", OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", LC_ALL="C.UTF-8")


def spent(command, environment, text=""):
    """(seconds of the clock, seconds of the processor) of a command and of all processes that it starts."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=environment, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(command), done.stderr[-3000:]))
    seconds = time.monotonic() - begin
    # Executors may end after the driver, and become children of this process then.
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_plan(arguments, folder, rows, shards):
    data, model, plan = (os.path.join(folder, name) for name in ("rows.npy", "model.pt", "plan.json"))
    shutil.rmtree(os.path.join(folder, "plan.out"), ignore_errors=True)
    measure.make_model(model)
    measure.make_rows(data, rows)
    measure.run(arguments.addend, "job", "plan", model, "--input", data, "--baseline", "0", "--target", "0", "--shards",
                str(shards), "--out", plan)
    return plan


def rows_of(arguments, folder):
    """How many rows make shards of the seconds that are asked for, by a trial."""
    plan = make_plan(arguments, folder, TRIAL, 1)
    measure.run(arguments.addend, "job", "run", plan)
    seconds = json.loads(measure.run(arguments.addend, "job", "status", plan, "--json")[1])["seconds"]
    batches = max(1, round(arguments.seconds / seconds * TRIAL / BATCH))
    return batches * BATCH * arguments.shards


def spread(numbers):
    return {"minimum": min(numbers), "median": statistics.median(numbers), "maximum": max(numbers)}


def compare(arguments, folder):
    own = environment(arguments.pyspark, folder)
    rows = arguments.rows or rows_of(arguments, folder)
    plan, out = make_plan(arguments, folder, rows, arguments.shards), os.path.join(folder, "plan.out")
    lines = "\n".join(" ".join("--shard %d" % shard for shard in range(first, arguments.shards, 2)) for first in range(2))
    ways = {
        "xargs": (["sh", "-c", "xargs -P 2 -L 1 '%s' job run '%s' && '%s' job merge '%s'" % (
            arguments.addend, plan, arguments.addend, plan)], lines),
        "spark": ([os.path.join(own["SPARK_HOME"], "bin", "spark-submit"), "--jars", arguments.addend_jar, "--class",
                   "dev.addend.spark.RunJob", arguments.addend_spark_jar, plan], ""),
    }
    found = {"rows": rows, "shards": arguments.shards, "load": [], "shard_seconds": {}}
    digests = set()
    for number in range(arguments.rounds):
        for name, (command, text) in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            found["load"].append(os.getloadavg()[0])
            seconds, processor = spent(command, own, text)
            found.setdefault(name + "_seconds", []).append(seconds)
            found.setdefault(name + "_processor_seconds", []).append(processor)
            with open(os.path.join(out, "merged.json")) as file:
                digests.add(json.load(file)["result"]["sha256"])
            status = json.loads(measure.run(arguments.addend, "job", "status", plan, "--json")[1])
            found["shard_seconds"].setdefault(name, []).append(status["seconds"] / arguments.shards)
            print("round %d of %d, %s: %.1f s, %.1f s of the processor, shards of %.1f s" % (
                number + 1, arguments.rounds, name, seconds, processor, found["shard_seconds"][name][-1]), file=sys.stderr)
    if len(digests) != 1:
        raise SystemExit("the ways give different bytes: %s" % digests)
    for kind in ("seconds", "processor_seconds"):
        pairs = list(zip(found["spark_" + kind], found["xargs_" + kind]))
        found["spark_over_xargs_" + kind] = spread([spark / xargs for spark, xargs in pairs])
        found["spark_minus_xargs_" + kind] = spread([spark - xargs for spark, xargs in pairs])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("addend", "addend_jar", "addend_spark_jar", "pyspark"):
        parser.add_argument(name, type=os.path.abspath)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--seconds", type=float, default=10)
    size.add_argument("--rows", type=int)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    if ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("the time of orphans cannot be counted: prctl: %s" % os.strerror(ctypes.get_errno()))
    folder = tempfile.mkdtemp()
    try:
        found = compare(arguments, folder)
    finally:
        shutil.rmtree(folder)
    text = json.dumps(found, indent=1)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(text + "\n")
    print(text)
    for kind, what in (("seconds", "time"), ("processor_seconds", "processor's time")):
        ratio = found["spark_over_xargs_" + kind]
        print("%s of Spark over xargs in %d rounds of shards of %.1f s: minimum %.3f, median %.3f, maximum %.3f" % (
            what, arguments.rounds, statistics.median(found["shard_seconds"]["xargs"]), ratio["minimum"], ratio["median"],
            ratio["maximum"]), file=sys.stderr)


if __name__ == "__main__":
    main()
