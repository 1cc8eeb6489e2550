"""Addend by spark-submit and from PySpark, as docs/jobs.md says: PySpark of PyPI, the archives that are published, and two
executors, each a process of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import addend
import numpy
import torch

PYSPARK = os.environ["PYSPARK"]
ROWS = [(0, 41.0, 2500.5), (1, 23.0, 1200.0), (2, None, 900.0), (3, 67.0, 0.0)]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def why_not():
    """Why nothing can be tested here; empty where it can."""
    (wanted,) = re.findall(r"spark-sql_2.13</artifactId>\s*<version>(.*?)<", read("third_party/spark/pom.xml"))
    version = os.path.join(PYSPARK, "pyspark", "version.py")
    found = re.findall(r"""^__version__.*["'](.*)["']""", read(version), re.M) if os.path.exists(version) else []
    return "" if found == [wanted] else "there is no PySpark %s in %s, but %s: tools/setup --pyspark fetches it" % (
        wanted, PYSPARK, found[0] if found else "none")


def blocks(language, word):
    """The blocks of the page in a language that hold a word."""
    section = read("docs/jobs.md").split("\n## Spark\n")[1].split("\n## ")[0]
    return [block for block in re.findall(r"^```%s\n(.*?)^```$" % language, section, re.M | re.S) if word in block]


@unittest.skipIf(why_not(), why_not())
class PySparkTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(os.environ["ADDEND_JAR"], self.path("addend.jar"))
        shutil.copy(os.environ["ADDEND_SPARK_JAR"], self.path("addend-spark.jar"))
        os.mkdir(self.path("conf"))
        with open(self.path("conf", "spark-defaults.conf"), "w") as file:
            file.write("spark.master local-cluster[2,1,1024]\nspark.ui.enabled false\nspark.log.level ERROR\n"
                       "spark.local.dir %s\nspark.sql.warehouse.dir %s\n" % (self.path("local"), self.path("warehouse")))
        # Executors of a local cluster work in its home, which has to be a folder that can be written.
        installed, home = os.path.join(os.path.abspath(PYSPARK), "pyspark"), self.path("spark")
        os.mkdir(home)
        for name in os.listdir(installed):
            os.symlink(os.path.join(installed, name), os.path.join(home, name))
        program = os.path.dirname(os.path.abspath(os.environ["ADDEND_PROGRAM"]))
        java = [os.path.join(os.environ["JAVA_HOME"], "bin")] if os.environ.get("JAVA_HOME") else []
        self.environment = dict(
            os.environ, SPARK_HOME=home, SPARK_CONF_DIR=self.path("conf"), SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.path.abspath(PYSPARK), XDG_CACHE_HOME=self.path("cache"),
            PATH=os.pathsep.join([os.path.join(home, "bin"), program, *java, os.environ["PATH"]]), LC_ALL="C.UTF-8")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def save(self, columns):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).eval()
        torch.jit.script(self.model).save(self.path("model.pt"))

    def run_in_folder(self, *command):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-6000:])
        return done.stdout

    def test_the_page_leads_from_a_model_to_a_report(self):
        self.save(3)
        numpy.save(self.path("rows.npy"), numpy.random.RandomState(0).standard_normal((3000, 3)).astype("float32"))
        commands, = blocks("sh", "spark-submit")
        said = self.run_in_folder("sh", "-euc", commands)
        merged = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        self.assertEqual(merged["rows"], 3000)
        self.assertIn("<!DOCTYPE html>", read(self.path("plan.out", "report.html")))
        # The page's command has computed one shard, executors all others.
        processes = {}
        for name in os.listdir(self.path("plan.out", "shards")):
            if name.endswith(".json"):
                receipt = json.loads(read(self.path("plan.out", "shards", name)))
                processes[receipt["shard"]] = receipt["run"]["process"]
        self.assertGreater(len(processes), 5)
        self.assertNotIn(processes.pop(0), processes.values())
        # One process without Spark gives the same bytes.
        os.rename(self.path("plan.out"), self.path("by_spark"))
        self.run_in_folder("addend", "job", "run", "plan.json")
        alone = json.loads(self.run_in_folder("addend", "job", "merge", "plan.json", "--json"))
        self.assertEqual(alone["sha256"], merged["sha256"])

    def test_the_page_leads_python_to_explained_rows(self):
        self.save(2)
        programs = blocks("python", "_jvm") + blocks("python", "_jdf")
        self.assertEqual(len(programs), 2)
        (query,) = re.findall(r'spark\.sql\("(.*?)"\)', programs[0])
        page = "".join(programs).replace("/data/", self.folder + "/")
        with open(self.path("program.py"), "w") as file:
            file.write("""import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame(%r, "id long, age double, income double")
rows.createOrReplaceTempView("rows")
%s
own = spark.sql("SELECT id, e.* FROM (SELECT id, addend_explain(struct(age, income)) AS e FROM rows)")
json.dump({
    "sql": [row.asDict() for row in own.sort("id").collect()],
    "frame": [row.asDict() for row in explained.sort("id").collect()],
    "plan": spark.sql(%r)._jdf.queryExecution().optimizedPlan().toString(),
}, open("found.json", "w"))
""" % (ROWS, page, query))
        said = self.run_in_folder("spark-submit", "--jars", "addend.jar,addend-spark.jar", "program.py")
        self.assertIn("contributions", said)
        found = json.loads(read(self.path("found.json")))
        # The function is called once for each row, however many of its fields are asked for.
        self.assertEqual(found["plan"].count("addend_explain("), 1, found["plan"])
        model = addend.load_model(self.path("model.pt"))
        for way in ("sql", "frame"):
            self.assertEqual([row["id"] for row in found[way]], [0, 1, 2, 3])
            for row, (_, age, income) in zip(found[way], ROWS):
                if age is None:
                    self.assertEqual((row["refused"], row["value"]), ("column age is null", None))
                    continue
                numbers = torch.tensor([[age, income]])
                self.assertIsNone(row["refused"])
                with torch.no_grad():
                    self.assertAlmostEqual(row["value"], self.model(numbers)[0, 1].item(), places=5)
                (expected,) = model.explain(addend.Input(numbers, dims=1, baseline=0), targets=["0,1"])
                numpy.testing.assert_allclose(row["contributions"], expected.contributions, rtol=1e-5, atol=1e-6)
                self.assertAlmostEqual(row["value"], row["reference"] + sum(row["contributions"]) + row["leftover"], places=5)


if __name__ == "__main__":
    unittest.main()
