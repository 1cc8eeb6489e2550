import json
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import page

RESULTS = Path(__file__).parent / "results"


def summary(median):
    return {"median": median, "quartiles": [median, median], "runs": 5}


def results(load):
    return {
        "machine": {"processor": "one & only", "threads": 1, "torch": "1.13", "load": load, "cores": 2},
        "peers": {"PyDec": "0.3.0", "Captum": None},
        "load_at_end": 0.5,
        "seconds": 60,
        "networks": {
            "mlp": {
                "title": "a small MLP",
                "methods": {
                    "plain run": {"clock": summary(0.001), "processor": summary(0.002), "peak_mib": 0.0},
                    "Addend attribute, fast": {
                        "clock": summary(0.003), "processor": summary(0.008), "peak_mib": 2048.0,
                        "completeness_error": 2e-7,
                    },
                    "Captum LRP": {"reason": "no rule for <Softmax>"},
                },
            }
        },
    }


class Page(unittest.TestCase):
    def test_drawing_is_xml_and_says_reasons(self):
        text = page.render(results(load=0.4))
        drawing = text[text.index("<svg"):text.index("</svg>") + len("</svg>")]
        words = [element.text for element in ElementTree.fromstring(drawing).iter() if element.text]
        self.assertIn("no rule for <Softmax>", words)
        self.assertIn("3 ms (3x)", words)
        self.assertIn("2 GiB", words)
        self.assertIn("one &amp; only", text)

    def test_rows_of_a_table_have_what_one_costs(self):
        found = results(load=0.4)
        network = found["networks"]["mlp"]
        self.assertNotIn("rows a second", page.render(found))  # nobody counted
        network["rows"] = 100
        network["methods"]["plain run"]["model_runs"] = 100
        network["methods"]["Addend attribute, fast"].update(model_runs=217801, completeness_error_median=3e-8)
        text = page.render(found)
        table = text[text.index("<table>"):text.index("</table>")]
        self.assertIn("fast<td>33,000<td>2178<td>3x<td>3e-8<td>2e-7", table)
        self.assertIn("plain run<td>100,000<td>1<td>1x<td><td>", table)
        self.assertIn("no rule for &lt;Softmax&gt;", table)

    def test_committed_pages_are_those_of_committed_results(self):
        for name in ("cpu", "rows"):
            with self.subTest(name):
                stored = json.loads((RESULTS / (name + ".json")).read_text())
                self.assertEqual(page.render(stored), (RESULTS / (name + ".html")).read_text())

    def test_nothing_is_fetched(self):
        text = page.render(results(load=0.4))
        for word in ("http", "<script", "src=", "@import", "url("):
            self.assertNotIn(word, text)

    def test_a_busy_machine_is_told_and_times_are_the_processors(self):
        text = page.render(results(load=7.0))
        self.assertIn("not of the clock", text)
        self.assertIn("8 ms (4x)", text)
        self.assertNotIn("not of the clock", page.render(results(load=1.0)))


if __name__ == "__main__":
    unittest.main()
