"""Documents of the command line and the C interface against the schemas, which refuse keys that they do not have.

usage: documents_test.py ADDEND WRITE_DOCUMENTS
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import schema

ADDEND = WRITER = None
EXAMPLES = "docs/examples/models/"
MODELS = "tests/conformance/models/"


def example(name, *more):
    """A model with its sample."""
    return (EXAMPLES + name + "/model.pt", "--input", EXAMPLES + name + "/sample.safetensors" + (more[0] if more else ""))


def write_npy(path, numbers):
    """One row of float32."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, %d), }" % len(numbers)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(numbers), *numbers))


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        self.schemas = schema.Schemas("docs/schemas")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def expect(self, text, format):
        """The document, which is of that format and as its schema says."""
        document = schema.read(text)
        self.assertEqual(document["format"], "addend." + format)
        self.assertEqual(self.schemas.problems(document), [])
        return document

    def expect_file(self, path, format):
        with open(path) as file:
            return self.expect(file.read(), format)

    def written(self, format, *arguments, code=0):
        """The document that `addend` writes with these arguments."""
        with self.subTest(arguments):
            run = subprocess.run([ADDEND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(run.returncode, code, run.stderr.decode())
            return self.expect(run.stdout.decode(), format)

    def test_explanations_of_the_command_line(self):
        image = self.written("explanation", "decompose", *example("digits", ":dim=2,3"), "--baseline", "0", "--json")
        self.assertEqual((image["kind"], image["components"][9]["name"]), ("image", "row 1, column 1"))
        words = self.written("explanation", "decompose", *example("language", ":labels=segments"), "--json",
                             "--at", "logits", "--policy", "preset=fast", "--policy", "bias@head=abs")
        self.assertEqual(words["noun"], "word")
        self.assertIsNotNone(words["targets"][0]["probability"])
        table = self.written("explanation", "attribute", *example("breast_cancer"), "--json", "--nodes", "--target", "0",
                             "--target", "0-1", "--verify-reference")
        self.assertEqual(table["kind"], "table")
        self.assertEqual(len(table["operators"][0]["passed"]), 2)
        heads = MODELS + "heads.safetensors#table"
        inner = self.written("explanation", "decompose", MODELS + "heads.pt", "--input", heads, "--dtype", "float32",
                             "--inside", "aten::contiguous:dim=1", "--target", "0,1", "--json")
        self.assertEqual([component["name"] for component in inner["components"]], ["position 0", "position 1"])
        page = os.path.join(self.folder, "page.html")
        self.written("explanation", "decompose", *example("digits"), "--json", "--html", page)
        with open(page) as file:
            text = file.read()
        data = text[text.index('id="data">') + len('id="data">'):]
        self.expect(data[:data.index("</script>")], "explanation")

    def test_other_documents_of_the_command_line(self):
        digits = example("digits")
        checked = self.written("check", "check", *digits, "--json")
        self.assertEqual(checked["expected"], [])
        # One number is expected in another way, and one is not a number.
        scores = os.path.join(self.folder, "scores.npy")
        write_npy(scores, [0.0] * 9 + [float("nan")])
        checked = self.written("check", "check", *digits, "--json", "--expect", scores, code=1)
        self.assertEqual([(one["ok"], one["relative"], one["index"]) for one in checked["expected"]], [(False, None, [0, 9])])
        self.written("operators", "ops", "--json")
        self.written("graph", "trace", *digits, "--graph", "json")
        self.written("code_trace", "trace", *digits, "--json")
        self.written("check_trace", "trace", *digits, "--check", "--json")
        self.written("requirements", "trace", *digits, "--require", "--json")
        wrong = ("trace", digits[0], "--input", EXAMPLES + "breast_cancer/sample.safetensors")
        self.written("requirements", *wrong, "--require", "--json")
        page = os.path.join(self.folder, "graph.html")
        subprocess.run([ADDEND, "trace", *digits, "--graph", "html", "--out", page], check=True, stdout=subprocess.PIPE)
        with open(page) as file:
            text = file.read()
        data = text[text.index('type="application/json"'):]
        self.expect(data[data.index(">") + 1:data.index("</script>")], "graph")

    def test_reasons_of_the_command_line(self):
        with open("docs/schemas/examples/concepts.json") as file:
            description = schema.read(file.read())
        description.update(concepts=[{"name": "Tens", "components": ["worst *"], "text": "{concept} {contribution}"}],
                           threshold_share=0, threshold=0)
        concepts, stored = os.path.join(self.folder, "concepts.json"), os.path.join(self.folder, "stored.json")
        self.assertEqual(self.schemas.problems(description), [])
        with open(concepts, "w") as file:
            json.dump(description, file)
        command = ("attribute", *example("breast_cancer"), "--target", "0", "--json")
        asked = self.written("reasons", *command, "--reasons", concepts)
        with open(stored, "w") as file:
            json.dump(self.written("explanation", *command), file)
        again = self.written("reasons", "reasons", stored, concepts, "--json")
        self.assertEqual(asked["decisions"], again["decisions"])
        self.assertEqual(asked["inputs"], again["inputs"])

    def test_interactions_of_the_command_line(self):
        page = os.path.join(self.folder, "interactions.html")
        asked = self.written("interactions", "interactions", *example("breast_cancer"), "--target", "0", "--json", "--html", page)
        self.assertEqual(len(asked["groups"]), len(asked["groups"][0]["interactions"]))
        with open(page) as file:
            text = file.read()
        data = text[text.index('id="data"'):]
        self.expect(data[data.index(">") + 1:data.index("</script>")], "interactions")

    def test_means_over_baselines_of_the_command_line(self):
        rows = "rows:" + EXAMPLES + "breast_cancer/heldout.safetensors"
        asked = self.written("explanation", "attribute", *example("breast_cancer"), "--target", "0", "--baseline", rows, "--json")
        self.assertGreater(asked["targets"][0]["baselines"]["count"], 1)

    def test_jobs_of_the_command_line(self):
        rows = os.path.abspath(EXAMPLES + "breast_cancer/heldout.safetensors")
        plan = os.path.join(self.folder, "plan.json")
        command = example("breast_cancer")
        arguments = [command[0], "--input", rows, "--target", "0", "--shards", "3", "--batch", "16", "--out", plan]
        self.written("job_made", "job", "plan", *arguments, "--json")
        self.expect_file(plan, "job")
        subprocess.run([ADDEND, "job", "run", plan], check=True, stdout=subprocess.PIPE)
        self.assertGreater(self.written("job_status", "job", "status", plan, "--json")["done"], 1)
        shards = os.path.join(self.folder, "plan.out", "shards")
        for name in os.listdir(shards):
            if name.endswith(".json"):
                self.expect_file(os.path.join(shards, name), "shard")
        self.written("job_merged", "job", "merge", plan, "--json")
        self.expect_file(os.path.join(self.folder, "plan.out", "merged.json"), "job_result")
        page = os.path.join(self.folder, "report.html")
        report = self.written("job_report", "job", "report", plan, "--against", plan, "--json", "--out", page)
        with open(page) as file:
            text = file.read()
        data = text[text.index('id="data">') + len('id="data">'):]
        self.assertEqual(self.expect(data[:data.index("</script>")], "job_report"), report)

    def test_the_file_of_a_program(self):
        subprocess.run([ADDEND, "trace", *example("digits"), "--save", self.folder], check=True, stdout=subprocess.PIPE)
        with open(os.path.join(self.folder, "program.json")) as file:
            program = schema.read(file.read())
        self.assertEqual(self.schemas.problems(program), [])
        self.assertRegex(program["libtorch"], r"^\d+\.\d+\.\d+")

    def test_documents_of_the_c_interface(self):
        subprocess.run([WRITER, self.folder], check=True)
        found = {}
        for name in sorted(os.listdir(self.folder)):
            with self.subTest(name), open(os.path.join(self.folder, name)) as file:
                found[name] = self.expect(file.read(), name.split(".")[0])
        formats = {name.split(".")[0] for name in found}
        self.assertEqual(formats, {"audit", "decision", "explanation", "report", "program_summary", "code_trace", "graph",
                                   "check_trace", "requirements", "reasons", "interactions"})
        kinds = {name: found["explanation.%s.json" % name]["kind"] for name in ("image", "table", "text", "composition")}
        self.assertEqual(kinds, {name: "list" if name == "composition" else name for name in kinds})

    def test_the_same_run_is_the_same_document(self):
        """From the command line and from the C interface, but for what only files tell."""
        subprocess.run([WRITER, self.folder], check=True)
        with open(os.path.join(self.folder, "explanation.image.json")) as file:
            library = schema.read(file.read())
        command = self.written("explanation", "decompose", *example("digits", ":dim=2,3"), "--baseline", "0",
                               "--target", "8-3", "--json", "--policy", "preset=auto")
        for key in ("kind", "noun", "at", "image", "preset", "policy"):
            self.assertEqual(library[key], command[key], key)
        names = [[component["name"] for component in document["components"]] for document in (library, command)]
        self.assertEqual(names[0], names[1])
        own, other = library["targets"][0], command["targets"][0]
        for key in ("index", "subtract", "value", "reference", "leftover", "recovery", "tolerance", "conditioning", "mass",
                    "contributions"):
            self.assertEqual(own[key], other[key], key)


if __name__ == "__main__":
    ADDEND, WRITER = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
