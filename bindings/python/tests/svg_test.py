"""Pictures of explanations, read by Python's parser of XML, beside numbers that are known without the library."""

import json
import os
import pickle
import random
import tempfile
import unittest
from xml.etree import ElementTree

import torch
from torch import nn

import addend
from addend._explanation import _read

SVG = "{http://www.w3.org/2000/svg}"
UP, DOWN = "#d4660a", "#2b6cb0"
# Elements and attributes that show something and fetch nothing.
ELEMENTS = {"svg", "title", "desc", "path", "text", "tspan", "rect", "circle"}
HOSTILE = ["<script>alert(1)</script>", "a&b\"'", "\x00\x07\x1b[31m", "\u202eabc\u2066", "\ufffe\uffff", "x" * 10**5,
           "\u6f22" * 500, "\u05e9\u05dc\u05d5\u05dd", "\U0001f600" * 99, "e\u0301" * 99, "", " ", "]]>", "--><!--", "&amp;",
           "\n\t\r", "%s%n", "\u2028"]


def picture(svg):
    """The elements of a picture, of which each may stand there."""
    root = ElementTree.fromstring(svg.encode("utf-8"))
    for element in root.iter():
        assert element.tag.startswith(SVG) and element.tag[len(SVG) :] in ELEMENTS, element.tag
        for name in element.attrib:
            assert "href" not in name and not name.startswith("on") and name != "style", name
    return root


def texts(root):
    return ["".join(text.itertext()) for text in root.iter(SVG + "text")]


class SvgTest(unittest.TestCase):
    def setUp(self):
        network = nn.Linear(15, 1).double()
        with torch.no_grad():
            network.weight.copy_(torch.linspace(-1, 2, 15).double())
            network.bias.fill_(0.5)
        self.weights = network.weight.tolist()[0]
        self.model = addend.compile(network)
        self.row = torch.ones(1, 15).double()

    def explain(self, names=()):
        return self.model.explain(addend.Input(self.row, dims=1, baseline=0, names=names), targets=["0"])[0]

    def test_bars_are_the_contributions(self):
        found = self.explain()
        root = picture(found.to_svg())
        bars = [(float(bar.get("width")), bar.get("fill")) for bar in root.iter(SVG + "rect")]
        order = sorted(self.weights, key=abs, reverse=True)
        moves = [*order[:12], sum(order[12:])]
        unit = bars[0][0] / moves[0]
        self.assertGreater(unit, 0)
        for (width, fill), move in zip(bars, moves):
            self.assertAlmostEqual(width, unit * abs(move), delta=0.03)
            self.assertEqual(fill, DOWN if move < 0 else UP)
        self.assertEqual(len(bars), len(moves))
        start, end = [float(dot.get("cx")) for dot in root.iter(SVG + "circle")]
        self.assertAlmostEqual(end - start, unit * sum(self.weights), delta=0.1)
        shown = texts(root)
        self.assertIn("3 others together", shown)
        self.assertIn("+2.000", shown)
        self.assertIn("8.000 = 0.500 (reference) + 7.500 (15 features) + 0.000 (leftover)", shown)

    def test_a_screen_reader_has_the_sum_and_the_steps(self):
        root = picture(self.explain(names=["first"] + ["c%d" % k for k in range(14)]).to_svg())
        self.assertEqual([child.tag for child in root][:2], [SVG + "title", SVG + "desc"])
        self.assertEqual(root[0].text, "Score for \u201coutput [0, 0]\u201d")
        self.assertIn("first \u22121.000; ", root[1].text)
        self.assertIn("value 8.000.", root[1].text)

    def test_it_is_written_and_the_same_again(self):
        found = self.explain()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figure.svg")
            svg = found.to_svg(path)
            with open(path, encoding="utf-8", newline="") as file:
                self.assertEqual(file.read(), svg)
        self.assertEqual(found.to_svg(), svg)
        self.assertEqual(self.explain().to_svg(), svg)
        self.assertEqual(pickle.loads(pickle.dumps(found)).to_svg(), svg)

    def test_every_note_is_in_it(self):
        found = self.explain()
        self.assertTrue(found.notes)
        said = " ".join(texts(picture(found.to_svg())))
        for note in found.notes:
            self.assertIn(note, said)

    def test_numbers_that_are_not_finite_are_refused(self):
        broken = addend.Composition(torch.tensor([[float("nan")], [1.0]])).explain(0)
        with self.assertRaisesRegex(addend.FailedPrecondition, "not finite.*HTML"):
            broken.to_svg()
        self.assertIn("</html>", broken.to_html())

    def test_any_text_and_any_numbers_make_a_picture(self):
        document = self.explain().to_dict()
        draw = random.Random(3)

        def text():
            return "".join(draw.choice(HOSTILE) for _ in range(draw.randint(1, 3)))

        for _ in range(60):
            count = draw.choice((0, 1, 2, 13, 14, 100))
            scale = 10.0 ** draw.randint(-320, 300)
            numbers = [draw.gauss(0, 1) * scale for _ in range(count)]
            target = document["targets"][0]
            target.update(name=text(), contributions=numbers, reference=draw.gauss(0, 1) * 10.0 ** draw.randint(-320, 300))
            target["value"] = draw.choice((0.0, 1.0, target["reference"]))
            document["components"] = [{"name": text(), "value": draw.choice((None, 1.5)), "baseline": None} for _ in numbers]
            document["kind"], document["noun"] = draw.choice((("text", "word"), ("list", text())))
            document["at"] = draw.choice((None, text()))
            document["report"]["notes"] = [text() for _ in range(draw.randint(0, 4))]
            document["report"]["warnings"] = document["report"]["notes"][:1]
            root = picture(_read(json.dumps(document)).to_svg())
            width, height = float(root.get("width")), float(root.get("height"))
            for bar in root.iter(SVG + "rect"):
                x, y, wide = (float(bar.get(key)) for key in ("x", "y", "width"))
                self.assertTrue(0 <= x <= x + wide <= width and 0 <= y <= height, bar.attrib)
            self.assertTrue(all(0 <= float(one.get("y")) < height for one in root.iter(SVG + "text")))


if __name__ == "__main__":
    unittest.main()
