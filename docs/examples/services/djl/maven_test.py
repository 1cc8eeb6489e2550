"""The packages install with Maven, and the service over DJL builds and runs with Maven alone, also without a network."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

HERE = "docs/examples/services/"
sys.path.insert(0, os.path.abspath(HERE))
import load_test  # noqa: E402, it lies there

TABLE = os.path.abspath("docs/examples/models/breast_cancer")
WORK = os.environ["TEST_TMPDIR"]
REPOSITORY = WORK + "/maven"
NEEDS = os.environ["NEEDS"]
POM = "{http://maven.apache.org/POM/4.0.0}"


def maven(*options, folder=None):
    """The command; folders of the user are not written."""
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "-Dmaven.repo.local=" + REPOSITORY]
    return command + (["--file", folder + "/pom.xml"] if folder else []) + list(options)


def run(*options, folder=None):
    done = subprocess.run(
        maven(*options, folder=folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if "Could not transfer" in done.stdout or "Unknown host" in done.stdout:
        raise unittest.SkipTest("Maven cannot reach where it fetches from: " + done.stdout.strip().splitlines()[0])
    if done.returncode:
        raise AssertionError(done.stdout)


def install(stem):
    run("install:install-file", "-Dfile=%s.jar" % stem, "-DpomFile=%s.pom" % stem, "-Dsources=%s-sources.jar" % stem,
        "-Djavadoc=%s-javadoc.jar" % stem)


def dependencies(pom):
    """(group, artifact) -> (version, classifier)."""
    return {
        (one.findtext(POM + "groupId"), one.findtext(POM + "artifactId")): (
            one.findtext(POM + "version"), one.findtext(POM + "classifier"))
        for one in ElementTree.parse(pom).iter(POM + "dependency")
    }


class MavenTest(unittest.TestCase):
    def setUp(self):
        # The sources of the project lie beside its folder.
        self.project = WORK + "/services/djl"
        os.makedirs(self.project, exist_ok=True)
        for name in ("ScoreService.java", "djl/DjlScoreService.java", "djl/pom.xml"):
            shutil.copyfile(HERE + name, WORK + "/services/" + name)

    def test_versions_are_those_that_are_tested(self):
        with open("VERSION") as file:
            version = file.read().strip()
        self.assertEqual(ElementTree.parse(self.project + "/pom.xml").find(".//" + POM + "addend.version").text, version)
        tested = dependencies("third_party/djl/pom.xml")
        named = dependencies(self.project + "/pom.xml")
        self.assertEqual({key: value for key, value in named.items() if key[0] != "dev.addend"},
                         {key: value for key, value in tested.items() if key[0].startswith("ai.djl")})
        self.assertEqual(dependencies("bindings/java/djl/addend-djl.pom"), {
            ("dev.addend", "addend"): (version, None),
            ("ai.djl.pytorch", "pytorch-engine"): tested["ai.djl.pytorch", "pytorch-engine"],
        })

    @unittest.skipUnless(shutil.which("mvn"), "there is no mvn")
    def test_the_service_builds_and_runs(self):
        # Links: the archives of DJL are large. What Maven writes is new files.
        subprocess.check_call(["cp", "-rs", os.environ["MAVEN_CACHE"] + "/.", REPOSITORY])
        os.environ["DJL_CACHE_DIR"] = WORK + "/djl"
        install("bindings/java/addend")
        install("bindings/java/djl/addend-djl")
        run("compile", folder=self.project)
        if not os.path.exists(NEEDS):
            self.skipTest("it builds; there is no %s to run it with: see ADDEND_IMPLEMENTATIONS" % NEEDS)
        first = self.answers()
        # All is there now.
        self.assertEqual(self.answers("--offline"), first)

    def answers(self, *options):
        """The answers of the service, one for each row."""
        rows = load_test.Rows(TABLE + "/heldout.safetensors")
        files = ["-Dmodel=%s/model.pt" % TABLE, "-Dbaseline=%s/baseline.npy" % TABLE,
                 "-Dsample=%s/sample.safetensors" % TABLE]
        # In a group of its own: Maven starts a JVM for the service.
        service = subprocess.Popen(
            maven("compile", "exec:exec", "-Dport=0", *files, *options, folder=self.project), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, universal_newlines=True, start_new_session=True)
        said = []
        try:
            for line in service.stdout:
                said.append(line)
                if "listening on " in line:
                    break
            else:
                self.fail("".join(said))
            connection = http.client.HTTPConnection(*load_test.address_of(line.split()[-1]), timeout=60)
            answers = []
            for row in range(5):
                connection.request("POST", "/score", json.dumps({"features": rows.features(row)}))
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                answers.append(json.loads(answer.read().decode("utf-8")))
                self.assertEqual(load_test.judge(answers[-1], rows), "")
            return answers
        finally:
            os.killpg(service.pid, signal.SIGTERM)
            service.communicate(timeout=60)


if __name__ == "__main__":
    unittest.main()
