import json
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import page_lm

RESULTS = Path(__file__).parent / "results"


def entry(seconds, runs=5, error=1e-6):
    times = {"median": seconds, "quartiles": [seconds, seconds], "runs": runs}
    return {
        "clock": times, "processor": times, "forwards": {"clock": seconds / 0.01, "processor": seconds / 0.02},
        "model_runs": 50, "peak_mib": 2048.0, "sum_error": error,
    }


def results(load=0.4):
    slow = {"reason": "takes more than 60 s", "too_slow": True}
    return {
        "machine": {
            "processor": "one & only", "threads": 1, "torch": "2.14", "transformers": "5", "load": load, "cores": 2,
        },
        "peers": {"Captum": "0.8.0", "Inseq": None},
        "load_at_end": 0.5,
        "limits": {"seconds": 60, "memory_gib": 12},
        "seconds": 60,
        "model": {
            "vocab_size": 4000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8,
            "intermediate_size": 704,
        },
        "prompts": [128, 512],
        "generated": [1, 16],
        "questions": {
            "each": {
                "Addend <faithful>": {"128+1": entry(0.04), "512+1": entry(0.2), "128+16": entry(0.3), "512+16": entry(1)},
                "Captum ablation": {"128+1": entry(3, 1, 0.5), "512+1": slow, "128+16": slow, "512+16": slow},
            },
            "together": {"Addend <faithful>": {"128+16": entry(0.05), "512+16": entry(0.3)}},
        },
    }


def drawings(text):
    """The drawings of a page, each as the words in it."""
    found = []
    for part in text.split("<svg")[1:]:
        drawing = ElementTree.fromstring("<svg" + part[: part.index("</svg>")] + "</svg>")
        found.append([element.text for element in drawing.iter() if element.text and element.text.strip()])
    return found


class Names(unittest.TestCase):
    def test_those_that_would_overlap_move_apart_and_stay_in_order(self):
        placed = page_lm.spread({"a": 50.0, "b": 51.0, "c": 100.0}, 14, 0, 200)
        self.assertEqual(placed, {"a": 50.0, "b": 64.0, "c": 100.0})

    def test_those_at_the_end_move_back(self):
        placed = page_lm.spread({"a": 90.0, "b": 99.0, "c": 100.0}, 14, 0, 100)
        self.assertEqual(placed, {"a": 72.0, "b": 86.0, "c": 100.0})


class Page(unittest.TestCase):
    def test_a_plot_of_time_memory_and_error_for_each_count_that_was_asked(self):
        titles = [words[0] for words in drawings(page_lm.render(results()))]
        self.assertEqual(titles, 3 * ["1 token generated", "16 tokens generated"] + 3 * ["16 tokens generated"])

    def test_a_line_that_ends_early_says_so_and_one_that_is_missing_says_why(self):
        few, many = drawings(page_lm.render(results()))[:2]
        self.assertIn("Captum ablation \N{BLACK UP-POINTING TRIANGLE}", few)
        self.assertIn("Addend <faithful>", few)
        self.assertIn("Captum ablation: takes more than 60 s", many)

    def test_numbers_are_in_the_tables(self):
        text = page_lm.render(results())
        self.assertIn("<td>3 s (300x) *<td>50<td>2 GiB<td>0.5", text)
        self.assertIn("<td>40 ms (4x)<td>50<td>2 GiB<td>1e-6", text)
        self.assertIn("<td colspan=4 class=bad>takes more than 60 s", text)
        self.assertIn("Addend &lt;faithful&gt;", text)

    def test_a_busy_machine_is_told_and_times_are_the_processors(self):
        text = page_lm.render(results(load=7.0))
        self.assertIn("not of the clock", text)
        self.assertIn("(150x)", text)

    def test_the_committed_page_is_that_of_the_committed_results(self):
        stored = json.loads((RESULTS / "lm.json").read_text())
        self.assertEqual(page_lm.render(stored), (RESULTS / "lm.html").read_text())

    def test_nothing_is_fetched(self):
        text = page_lm.render(results())
        for word in ("http", "<script", "src=", "@import", "url("):
            self.assertNotIn(word, text)


if __name__ == "__main__":
    unittest.main()
