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


class Axis(unittest.TestCase):
    def test_whole_decades_around_the_values(self):
        axis = page.Axis([0.3, 40.0], left=100, width=300)
        self.assertEqual(axis.ticks(), [0.1, 1.0, 10.0, 100.0])
        self.assertAlmostEqual(axis.place(1.0), 200)
        self.assertAlmostEqual(axis.place(100.0), 400)

    def test_zero_is_at_the_start(self):
        self.assertEqual(page.Axis([0.0, 5.0], left=10, width=50).place(0.0), 10)

    def test_ticks_have_room(self):
        for width in (100, 150, 200):
            self.assertLessEqual(len(page.Axis([1e-9, 10.0], 0, width).ticks()), width // 50 + 1)


class Numbers(unittest.TestCase):
    def test_two_digits_or_all_before_the_point(self):
        told = [page.digits(value) for value in (0, 0.0312, 0.5, 3.0, 3.26, 41.2, 1234.5)]
        self.assertEqual(told, ["0", "0.031", "0.5", "3", "3.3", "41", "1234"])

    def test_units(self):
        self.assertEqual(page.milliseconds(2500.0), "2.5 s")
        self.assertEqual(page.milliseconds(12.0), "12 ms")
        self.assertEqual(page.mebibytes(0.0), "under 0.1 MiB")
        self.assertEqual(page.mebibytes(3072.0), "3 GiB")
        self.assertEqual(page.power(1.4e-07), "1e-7")
        self.assertEqual(page.power(1.1e10), "1e10")


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
