"""Cost of Spark as the engine of a job, on this machine: the processor's time of the same shards as tasks and under xargs.

usage: spark_engine.py ADDEND ADDEND_JAR ADDEND_SPARK_JAR PYSPARK [--rows N] [--shards N] [--rounds N] [--json FILE]

ADDEND is the program; the archives are addend.jar and addend-spark.jar; PYSPARK is the folder that tools/setup --pyspark fills.
Each round runs two workers under xargs, then by spark-submit with a master, two workers and two executors. The time counts all
processes of each, the JVMs and their start among it.
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
sys.path.insert(0, HERE)
import measure  # noqa: E402

CONFIGURATION = """spark.master local-cluster[2,1,1024]
spark.ui.enabled false
spark.log.level ERROR
spark.local.dir %s
spark.sql.warehouse.dir %s
"""


def environment(pyspark, folder):
    home, conf = os.path.join(os.path.abspath(pyspark), "pyspark"), os.path.join(folder, "conf")
    os.mkdir(conf)
    with open(os.path.join(conf, "spark-defaults.conf"), "w") as file:
        file.write(CONFIGURATION % (os.path.join(folder, "local"), os.path.join(folder, "warehouse")))
    return dict(os.environ, SPARK_HOME=home, SPARK_CONF_DIR=conf, SPARK_LOCAL_IP="127.0.0.1", OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", LC_ALL="C.UTF-8")


def spent(command, environment, text=""):
    """(seconds of the clock, seconds of the processor) of a command and all that it starts and waits for."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=environment, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(command), done.stderr[-3000:]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(arguments, folder):
    own = environment(arguments.pyspark, folder)
    data, model, plan = (os.path.join(folder, name) for name in ("rows.npy", "model.pt", "plan.json"))
    out = os.path.join(folder, "plan.out")
    measure.make_model(model)
    measure.make_rows(data, arguments.rows)
    measure.run(arguments.addend, "job", "plan", model, "--input", data, "--baseline", "0", "--target", "0",
                "--shards", str(arguments.shards), "--out", plan)
    lines = "\n".join(" ".join("--shard %d" % shard for shard in range(first, arguments.shards, 2)) for first in range(2))
    ways = {
        "xargs": (["sh", "-c", "xargs -P 2 -L 1 '%s' job run '%s' && '%s' job merge '%s'" % (
            arguments.addend, plan, arguments.addend, plan)], lines),
        "spark": ([os.path.join(own["SPARK_HOME"], "bin", "spark-submit"), "--jars", arguments.addend_jar, "--class",
                   "dev.addend.spark.RunJob", arguments.addend_spark_jar, plan], ""),
    }
    found = {"rows": arguments.rows, "shards": arguments.shards, "load": [], "shard_seconds": []}
    digests = set()
    for _ in range(arguments.rounds):
        for name, (command, text) in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            found["load"].append(os.getloadavg()[0])
            seconds, processor = spent(command, own, text)
            found.setdefault(name + "_seconds", []).append(seconds)
            found.setdefault(name + "_processor_seconds", []).append(processor)
            with open(os.path.join(out, "merged.json")) as file:
                digests.add(json.load(file)["result"]["sha256"])
        status = json.loads(measure.run(arguments.addend, "job", "status", plan, "--json")[1])
        found["shard_seconds"].append(status["seconds"] / arguments.shards)
    if len(digests) != 1:
        raise SystemExit("the ways give different bytes: %s" % digests)
    found["more_processor_seconds"] = min(found["spark_processor_seconds"]) - min(found["xargs_processor_seconds"])
    found["spark_over_xargs"] = min(found["spark_processor_seconds"]) / min(found["xargs_processor_seconds"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("addend", "addend_jar", "addend_spark_jar", "pyspark"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--rows", type=int, default=2000000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    main()
