import unittest
import xml.etree.ElementTree as ElementTree

import page


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
