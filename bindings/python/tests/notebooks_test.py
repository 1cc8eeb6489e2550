"""The notebooks in docs/notebooks run, and print what is stored in them."""

import array
import base64
import copy
import glob
import html
import importlib.util
import json
import os
import re
import tempfile
import unittest

FOLDER = "docs/notebooks/"
# Notebooks run in their own folder. Figures need no screen, and fonts are listed where files may be written.
if "ADDEND_PROGRAM" in os.environ:
    os.environ["ADDEND_PROGRAM"] = os.path.abspath(os.environ["ADDEND_PROGRAM"])
os.environ["MPLBACKEND"] = "agg"
os.environ.setdefault("MPLCONFIGDIR", os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp())
spec = importlib.util.spec_from_file_location("run", FOLDER + "run.py")
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


def read(name):
    with open(FOLDER + name + ".ipynb", encoding="utf-8") as file:
        return json.load(file)


def needs(*packages):
    missing = [package for package in packages if not importlib.util.find_spec(package)]
    return unittest.skipIf(missing, "needs " + " and ".join(missing))


def outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


class NotebooksTest(unittest.TestCase):
    def check(self, name):
        stored = read(name)
        self.assertEqual(run.compare(stored, run.run(FOLDER + name + ".ipynb")), [])
        # A picture, and text for those who cannot show it; a figure of matplotlib has its texts in it.
        pictures = [set(one.get("data", {})) for one in outputs(stored)]
        self.assertTrue([one for one in pictures if {"text/html", "text/plain"} <= one or "image/svg+xml" in one])
        ids = [cell["id"] for cell in stored["cells"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual((stored["nbformat"], stored["nbformat_minor"]), (4, 5))
        cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
        self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)))

    def test_table(self):
        self.check("table")

    def test_image(self):
        self.check("image")

    def test_text(self):
        self.check("text")

    def test_speaker(self):
        self.check("speaker")

    @needs("transformers")
    def test_language_model(self):
        self.check("language_model")

    @needs("matplotlib", "pandas")
    def test_credit(self):
        self.check("credit")

    @needs("matplotlib")
    def test_time_series(self):
        self.check("time_series")

    @needs("matplotlib")
    def test_recommender(self):
        self.check("recommender")

    @needs("matplotlib")
    def test_survival(self):
        self.check("survival")

    def test_lessons_are_short_and_end_with_three_lines(self):
        for name in ("credit", "time_series", "recommender", "survival"):
            with self.subTest(name):
                cells = read(name)["cells"]
                self.assertLessEqual(len(cells), 12)
                self.assertIn("?", cells[0]["source"][0])
                last = "".join(cells[-1]["source"])
                self.assertTrue(last.startswith("## What you may and may not conclude\n\n- "))
                self.assertEqual(len(last.split("\n")[2:]), 3)

    def test_each_has_a_test(self):
        names = {os.path.basename(path)[: -len(".ipynb")] for path in glob.glob(FOLDER + "*.ipynb")}
        tests = {name[len("test_") :] for name in dir(self) if name.startswith("test_")}
        self.assertEqual(names - tests, set())
        self.assertEqual(len(names), 9)


class RunnerTest(unittest.TestCase):
    def test_what_differs_is_found(self):
        stored = read("image")
        self.assertEqual(run.compare(stored, stored), [])

        def changed(kind, old, new):
            other = copy.deepcopy(stored)
            for output in outputs(other):
                texts = output if kind == "text" else output.get("data", {})
                if kind in texts:
                    texts[kind] = [line.replace(old, new) for line in texts[kind]]
            return run.compare(stored, other)

        self.assertEqual(changed("text", "6.7939", "6.7938"), [])
        self.assertIn("has 6.8939, stored is 6.7939", changed("text", "6.7939", "6.8939")[0])
        self.assertIn("is '", changed("text", "channels", "kernels")[0])
        self.assertIn("has 6.89388, stored is 6.79388", changed("text/plain", "6.79388", "6.89388")[0])
        self.assertIn("cell 2, text/html", changed("text/html", "row 7, column 3", "another")[0])
        self.assertEqual(changed("text/html", "1.13.1", "2.14.1"), [])
        silent = copy.deepcopy(stored)
        outputs(silent)[0]["output_type"] = "stream"
        silent["cells"][1]["outputs"] = []
        self.assertIn("cell 1: has", run.compare(stored, silent)[0])

    def test_what_differs_in_a_figure_is_found(self):
        stored = read("credit")
        self.assertEqual(run.compare(stored, stored), [])

        def changed(old, new):
            other = copy.deepcopy(stored)
            (figure,) = [one["data"] for one in outputs(other) if "image/svg+xml" in one.get("data", {})]
            text = "".join(figure["image/svg+xml"])
            self.assertIn(old, text)
            figure["image/svg+xml"] = [text.replace(old, new)]
            return run.compare(stored, other)

        self.assertIn("cell 4, image/svg+xml: is ", changed(">late_payments<", ">housing<")[0])
        self.assertIn("has +1.43, stored is +1.33", changed(">+1.33<", ">+1.43<")[0])
        self.assertIn("cell 4, image/svg+xml: is ", changed(">+1.33<", ">\u22121.33<")[0])
        self.assertEqual(changed('width="', 'class="'), [])

    @needs("matplotlib")
    def test_a_figure_is_an_output_and_closed(self):
        source = ["from matplotlib import pyplot\n", "print(1)\n", "pyplot.figure().text(0, 0, 'a < b');"]
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [], "execution_count": 1}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figure.ipynb")
            run.write(path, {"cells": [cell, dict(cell, source=["2"])], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
            (printed, drawn), (number,) = [one["outputs"] for one in run.run(path)["cells"]]
            again = run.run(path)["cells"][0]["outputs"][1]
        self.assertEqual((printed["text"], number["data"]), (["1\n"], {"text/plain": ["2"]}))
        self.assertEqual(set(drawn["data"]), {"image/svg+xml"})
        self.assertIn(">a &lt; b</text>", "".join(drawn["data"]["image/svg+xml"]))
        self.assertEqual(drawn, again)

    def test_what_differs_in_a_page_of_tokens_is_found(self):
        stored = read("speaker")
        self.assertEqual(run.compare(stored, stored), [])

        def changed(key, change):
            other = copy.deepcopy(stored)
            (page,) = [one["data"] for one in outputs(other) if "text/html" in one.get("data", {})]
            whole = "".join(page["text/html"])
            old = re.search(r"&quot;%s&quot;:(\[.*?\]|&quot;.*?&quot;)[,}]" % key, whole).group(1)
            page["text/html"] = [whole.replace(old, html.escape(json.dumps(change(json.loads(html.unescape(old))))), 1)]
            return run.compare(stored, other)

        def added(number):
            def change(text):
                numbers = array.array("d", base64.b64decode(text))
                numbers[-2] += number
                return base64.b64encode(numbers.tobytes()).decode()

            return change

        self.assertEqual(changed("matrix", added(1e-6)), [])
        self.assertIn("cell 2, text/html: has ", changed("matrix", added(0.1))[0])
        self.assertIn("cell 2, text/html: has ", changed("values", lambda values: [values[0] + 0.1, *values[1:]])[0])
        self.assertIn("cell 2, text/html: is ", changed("tokens", lambda tokens: [*tokens[:-1], "another"])[0])
        self.assertEqual(changed("notes", lambda notes: ["another"]), [])

    def test_a_cell_that_fails_fails(self):
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": ["1 / 0"], "outputs": [], "execution_count": 1}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "broken.ipynb")
            run.write(path, {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
            with self.assertRaises(ZeroDivisionError):
                run.run(path)
            cell["source"] = ["print('seven')\n", "7"]
            run.write(path, {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
            self.assertEqual(run.main(["--renew", path]), 0)
            self.assertEqual(run.main([path]), 0)
            with open(path, encoding="utf-8") as file:
                printed, value = outputs(json.load(file))
        self.assertEqual((printed["text"], value["data"]), (["seven\n"], {"text/plain": ["7"]}))


if __name__ == "__main__":
    unittest.main()
