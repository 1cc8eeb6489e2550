"""Figures: their numbers are read back from what was drawn. docs/plots.md: its programs run."""

import inspect
import itertools
import json
import os
import re
import sys
import tempfile
import unittest
import warnings
from unittest import mock

# Fonts are listed once for each place of settings; that of the user may not be there to be written.
os.environ.setdefault("MPLCONFIGDIR", os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp())
try:
    import matplotlib
except ImportError as error:
    raise unittest.SkipTest("matplotlib is not installed (%s)" % error)

matplotlib.use("Agg")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from matplotlib import colors, pyplot  # noqa: E402

import addend  # noqa: E402
from addend import _plot_axes, plots  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None

MODELS = "docs/examples/models/"
MINUS = "\u2212"
SIGNED = (_plot_axes.DOWN, _plot_axes.UP)


def numbers_of(text):
    """The numbers that a text holds, with a sign before a term as part of it."""
    text = re.sub(r"([%s+]) (?=\d)" % MINUS, r"\1", text).replace(MINUS, "-")
    return [float(number) for number in re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e-?\d+)?(?= \()", text)]


def paragraphs(ax):
    """The paragraphs under an axes, with their colours."""
    return [(one.paragraph, one.get_color()) for one in ax.get_children() if isinstance(one, _plot_axes.Below)]


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def texts(ax):
    """The texts of an axes but for those paragraphs."""
    return [one for one in ax.texts if not isinstance(one, _plot_axes.Below)]


def bars(ax):
    """The two ends of each bar, by label."""
    patches = ax.containers[0].patches
    places = [round(patch.get_y() + patch.get_height() / 2) for patch in patches]
    return {labels(ax)[place]: (patch.get_x(), patch.get_x() + patch.get_width()) for place, patch in zip(places, patches)}


def lanes(ax):
    """The dots of each lane, by label."""
    found = {}
    for dots in ax.collections:
        place = round(float(np.median(np.asarray(dots.get_offsets())[:, 1])))
        found[labels(ax)[place]] = dots
    return found


def network(*sizes):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(*pair) for pair in zip(sizes, sizes[1:])]
    return torch.nn.Sequential(*itertools.chain(*((layer, torch.nn.GELU()) for layer in layers[:-1])), layers[-1]).eval()


def explained(count=6, **policy):
    """An explanation of the first element of a row of so many numbers."""
    x, baseline = torch.linspace(-1, 1, count)[None], torch.full((1, count), 0.25)
    model = addend.compile(network(count, 8, 3), **policy)
    return model.explain(addend.Input(x, dims=1, baseline=baseline), targets="0")[0]


class Letters(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.embed, self.mix = torch.nn.Embedding(27, 16), torch.nn.GRU(16, 16, batch_first=True)
        self.head = torch.nn.Linear(16, 27)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids))[0])


LETTERS = (lambda text: [ord(one) - 96 for one in text], lambda ids: "".join(chr(96 + one) for one in ids))


def letters(**options):
    return addend.lm.attribute(Letters(), "addend", "umi", LETTERS, baseline=0, **options)


class Figures(unittest.TestCase):
    def setUp(self):
        self.before = dict(matplotlib.rcParams)
        self.addCleanup(pyplot.close, "all")
        self.random = np.random.default_rng(7)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        # A layout that was given up, and a sign that the font lacks.
        warnings.filterwarnings("error", ".*not applied|Glyph")

    def tearDown(self):
        self.assertEqual(dict(matplotlib.rcParams), self.before, "settings of matplotlib were changed")

    def assert_sum(self, ax, value, rows=1):
        """The first paragraph is a sum that is true as it is written, and its total is the value."""
        text = paragraphs(ax)[0][0]
        *terms, total = numbers_of(text)
        self.assertGreaterEqual(len(terms), 2 if "reference" in text.split("=")[0] else 1, text)
        unit = 10.0 ** -len(re.search(r"= .*?\d\.?(\d*)", text).group(1))
        self.assertAlmostEqual(sum(terms), total, delta=unit * 1.01, msg=text)
        self.assertAlmostEqual(total, value, delta=unit, msg=text)


class WaterfallTest(Figures):
    def test_goes_from_the_reference_to_the_value(self):
        for count, most in [(2, 10), (6, 3), (10, 10), (25, 10), (25, None), (7, 1)]:
            with self.subTest(count=count, most=most):
                numbers = self.random.normal(size=count)
                value, reference = 1.5 + numbers.sum(), 1.25
                ax = plots.waterfall(numbers, reference=reference, value=value, max_shown=most)
                found = bars(ax)
                self.assertAlmostEqual(sum(end - start for start, end in found.values()), value - reference)
                ends = [reference]
                for start, end in found.values():
                    self.assertAlmostEqual(start, ends[-1])
                    ends.append(end)
                self.assertAlmostEqual(ends[-1], value)
                shown = min(count, most or count)
                order = np.argsort(-np.abs(numbers))
                self.assertEqual(list(found)[:shown], ["feature %d" % k for k in order[:shown]])
                for k in order[:shown]:
                    start, end = found["feature %d" % k]
                    self.assertAlmostEqual(end - start, numbers[k])
                if count > shown:
                    plural = "" if count - shown == 1 else "s"
                    start, end = found["%d other feature%s" % (count - shown, plural)]
                    self.assertAlmostEqual(end - start, numbers[order[shown:]].sum())
                start, end = found["leftover"]
                self.assertAlmostEqual(end - start, 0.25)
                self.assert_sum(ax, value)
                self.assertEqual(labels(ax)[0], "reference")
                self.assertEqual(labels(ax)[-1], "value")
                marks = [line for line in ax.lines if line.get_marker() == "D"][0].get_xdata()
                np.testing.assert_allclose(marks, [reference, value])

    def test_an_explanation(self):
        found = explained()
        ax = plots.waterfall(found, max_shown=4)
        self.assertNotIn("leftover", labels(ax))
        ends = list(bars(ax).values())
        self.assertAlmostEqual(ends[0][0], found.reference)
        self.assertAlmostEqual(ends[-1][1], found.value, places=5)
        self.assertAlmostEqual(
            ends[-1][1] - ends[-1][0], sum(found.contributions) - sum(one.value for one in found.top(4)), places=6)
        self.assert_sum(ax, found.value)
        self.assertIn(found.to_dict()["targets"][0]["name"], ax.get_title("left"))
        (told,) = numbers_of(ax.get_title("left") + " (")
        self.assertAlmostEqual(told, found.value, delta=1e-3)

    def test_a_leftover_has_a_bar(self):
        found = explained(nonlinearity="gradient")
        self.assertGreater(abs(found.leftover), 1e-3)
        ax = plots.waterfall(found)
        start, end = bars(ax)["leftover"]
        self.assertAlmostEqual(end - start, found.leftover)
        self.assertAlmostEqual(end, found.value, places=5)
        self.assert_sum(ax, found.value)

    def test_what_is_missing_has_a_bar_and_a_warning(self):
        numbers = np.array([1.0, -0.5, 0.25])
        ax = plots.waterfall(numbers, reference=1.0, value=3.0, leftover=0.5)
        start, end = bars(ax)["missing"]
        self.assertAlmostEqual(end, 3.0)
        self.assertAlmostEqual(end - start, 0.75)
        (text, colour), = [one for one in paragraphs(ax) if "do not add up" in one[0]]
        self.assertIn("0.75", text)
        self.assertEqual(colour, _plot_axes.BAD)
        self.assert_sum(ax, 3.0)
        # In single precision as much is rounding.
        single = np.array([1e3, 1.0, -2.0], dtype="float32")
        ax = plots.waterfall(single, reference=0.0, value=float(single.sum()) + 1e-4, leftover=0.0)
        self.assertEqual(labels(ax)[-2:], ["feature 1", "value"])
        ax = plots.waterfall(single.astype("float64"), reference=0.0, value=float(single.sum()) + 1e-4, leftover=0.0)
        self.assertEqual(labels(ax)[-2:], ["missing", "value"])

    def test_what_was_not_given_follows_and_is_said(self):
        numbers = np.array([1.0, -0.25])
        ax = plots.waterfall(numbers, reference=2.0)
        self.assertAlmostEqual(list(bars(ax).values())[-1][1], 2.75)
        self.assertIn("2.750 (the sum; it was not given)", paragraphs(ax)[0][0])
        ax = plots.waterfall(numbers, value=2.0)
        self.assertAlmostEqual(list(bars(ax).values())[0][0], 1.25)
        with self.assertRaisesRegex(ValueError, "reference= or value="):
            plots.waterfall(numbers)
        with self.assertRaisesRegex(ValueError, "belongs to a value"):
            plots.waterfall(numbers, leftover=1.0)

    def test_a_row_of_several(self):
        x = torch.linspace(-1, 1, 12).reshape(3, 4)
        found = addend.compile(network(4, 8, 3)).explain(
            addend.Input(x, dims=1, baseline=0), targets=[0, 1, 2], each_example=True)
        ax = plots.waterfall(found, row=1)
        self.assertAlmostEqual(list(bars(ax).values())[-1][1], found[1].value, places=5)
        with self.assertRaisesRegex(ValueError, "3 explained numbers, .* row=0 to row=2"):
            plots.waterfall(found)
        with self.assertRaises(IndexError):
            plots.waterfall(found, row=3)
        table = [one.contributions for one in found]
        array = plots.waterfall(table, row=-2, reference=[one.reference for one in found])
        self.assertAlmostEqual(list(bars(array).values())[-1][1], found[1].value, places=5)

    def test_tokens(self):
        found = letters()
        for row in range(3):
            ax = plots.waterfall(found, row=row, max_shown=3)
            self.assertAlmostEqual(list(bars(ax).values())[0][0], found.references[row])
            self.assertAlmostEqual(list(bars(ax).values())[-1][1], found.values[row], places=4)
            self.assert_sum(ax, found.values[row])
        # Two tokens that are called alike are told apart by their places.
        ax = plots.waterfall(found, row=2, max_shown=None)
        self.assertTrue({"d@1", "d@2", "d@5", "a", "e"} < set(labels(ax)), labels(ax))
        grouped = plots.waterfall(found.by([("prompt", slice(0, 6))]), row=2)
        start, end = bars(grouped)["prompt"]
        self.assertAlmostEqual(end - start, float(np.sum(np.asarray(found.matrix)[2, :6])))


class BarTest(Figures):
    def test_one_row(self):
        numbers = self.random.normal(size=15)
        ax = plots.bar(numbers, max_shown=5)
        order = np.argsort(-np.abs(numbers))
        found = {label: end - start for label, (start, end) in bars(ax).items()}
        self.assertEqual(list(found), [*("feature %d" % k for k in order[:5]), "10 other features"])
        np.testing.assert_allclose(list(found.values())[:5], numbers[order[:5]])
        self.assertAlmostEqual(found["10 other features"], numbers[order[5:]].sum())
        self.assertIn("value and reference were not given", paragraphs(ax)[0][0])
        self.assertAlmostEqual(numbers_of(paragraphs(ax)[0][0])[-1], numbers.sum(), places=2)
        for label, size in found.items():
            self.assertIn(colors.to_hex(self.colour(ax, label)), SIGNED)
            self.assertEqual(colors.to_hex(self.colour(ax, label)) == _plot_axes.UP, size > 0)

    def colour(self, ax, label):
        return ax.containers[0].patches[labels(ax).index(label)].get_facecolor()[:3]

    def test_mean_magnitudes_of_rows(self):
        numbers = self.random.normal(size=(40, 12))
        leftover = self.random.normal(size=40)
        reference = 0.5
        value = reference + numbers.sum(1) + leftover
        for given in (numbers, torch.tensor(numbers), numbers.tolist(), addend.as_tensor(numbers)):
            ax = plots.bar(given, value=value, reference=reference, max_shown=4)
            means = np.abs(numbers).mean(0)
            order = np.argsort(-means)
            found = {label: end - start for label, (start, end) in bars(ax).items()}
            np.testing.assert_allclose(list(found.values())[:4], means[order[:4]], rtol=1e-6)
            self.assertAlmostEqual(found["8 other features"], means[order[4:]].sum(), places=5)
            self.assertAlmostEqual(found["leftover"], np.abs(leftover).mean(), places=5)
            self.assert_sum(ax, value.mean())
            self.assertIn("means of 40 rows", paragraphs(ax)[0][0])

    def test_explanations(self):
        x = torch.linspace(-1, 1, 20).reshape(5, 4)
        model = addend.compile(network(4, 8, 3))
        names = ["age", "height", "weight", "pulse"]
        found = model.explain(
            addend.Input(x, dims=1, baseline=0, names=names), targets=[0, 1, 2, 1, 0], each_example=True)
        means = np.abs([one.contributions for one in found]).mean(0)
        for given in (found, list(found)):
            sizes = {label: end for label, (_, end) in bars(plots.bar(given)).items()}
            self.assertEqual(set(sizes), set(names))
            for name, mean in zip(names, means):
                self.assertAlmostEqual(sizes[name], mean)
        one = {label: end for label, (_, end) in bars(plots.bar(found, row=2)).items()}
        self.assertEqual(one, dict(zip(names, found[2].contributions)))

    def test_standard_errors(self):
        x, backgrounds = torch.linspace(-1, 1, 4)[None], torch.rand(6, 4)
        found = addend.compile(network(4, 8, 3)).explain(addend.Input(x, dims=1, baselines=backgrounds), targets="0")[0]
        ax = plots.bar(found)
        lines = ax.containers[1].lines[2][0].get_segments()
        by_place = [part.component for part in found.top()]
        for place, line in enumerate(lines):
            self.assertAlmostEqual(line[1][0] - line[0][0], 2 * found.standard_errors[by_place[place]])
        self.assertTrue(any("means over 6 baselines" in text for text, _ in paragraphs(ax)))

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_frames(self):
        frame = pandas.DataFrame(self.random.normal(size=(6, 3)), columns=["b", "a", "c"])
        sizes = {label: end for label, (_, end) in bars(plots.bar(frame)).items()}
        self.assertEqual(sizes, {name: frame[name].abs().mean() for name in sizes})
        self.assertEqual(set(sizes), {"a", "b", "c"})
        one = bars(plots.bar(frame.iloc[2]))
        self.assertEqual({label: end for label, (_, end) in one.items()}, dict(frame.iloc[2]))
        data = pandas.DataFrame({"a": range(6), "b": range(10, 16), "c": range(20, 26)})
        ax = plots.scatter(frame, "a", data)
        np.testing.assert_allclose(ax.collections[0].get_offsets(), np.stack([np.arange(6), frame["a"]], 1))
        with self.assertRaisesRegex(ValueError, "other columns than the contributions: c, d"):
            plots.beeswarm(frame, data.rename(columns={"c": "d"}))

    def test_results_of_a_job(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = np.load(os.path.abspath(MODELS + "breast_cancer/baseline.npy")).reshape(1, -1)
            rows = (rows + self.random.normal(size=(8, rows.shape[1]))).astype("float32")
            plan = os.path.join(folder, "plan.json")
            source = os.path.join(folder, "rows.npy")
            rows[3] = np.nan
            np.save(source, rows)
            self.plan(plan, source)
            addend.Job(plan).run(0)
            results = addend.Job.results(plan)
            with open(plan, encoding="utf-8") as file:
                names = json.load(file)["names"]["components"]
            frame = {name: column for name, column in zip(results.columns, results._columns(0))}
            kept = [k for k, reason in enumerate(frame["refused"]) if reason is None]
            self.assertEqual(len(kept), 7)
            ax = plots.bar(results, max_shown=None)
            sizes = {label: end for label, (_, end) in bars(ax).items()}
            for name in names:
                self.assertAlmostEqual(sizes[name], np.abs(np.array(frame[name])[kept]).mean(), places=5)
            self.assertTrue(any("1 of 8 rows were refused" in text for text, _ in paragraphs(ax)))
            self.assert_sum(ax, np.array(frame["value"])[kept].mean())
            dots = lanes(plots.beeswarm(results, max_shown=2))
            self.assertEqual(len(dots), 3)

    def plan(self, plan, source):
        row = addend.Input(np.zeros((1, 30), dtype="float32"), dims=1, baseline=0)
        addend.Job.plan(plan, os.path.abspath(MODELS + "breast_cancer/model.pt"), row, rows=source, targets=0, shards=1)


class BeeswarmTest(Figures):
    def setUp(self):
        super().setUp()
        self.numbers = self.random.normal(size=(60, 9)) * np.arange(1, 10)
        self.data = self.random.uniform(size=(60, 9))

    def test_dots_are_contributions(self):
        ax = plots.beeswarm(self.numbers, self.data, max_shown=6, reference=1.0)
        found = lanes(ax)
        order = np.argsort(-np.abs(self.numbers).mean(0))
        self.assertEqual(list(found), [*("feature %d" % k for k in order[:6]), "3 other features"])
        for k in order[:6]:
            np.testing.assert_allclose(found["feature %d" % k].get_offsets()[:, 0], self.numbers[:, k])
        np.testing.assert_allclose(found["3 other features"].get_offsets()[:, 0], self.numbers[:, order[6:]].sum(1))
        for place, dots in enumerate(found.values()):
            self.assertLess(np.abs(dots.get_offsets()[:, 1] - place).max(), 0.5)
        total = sum(dots.get_offsets()[:, 0] for dots in found.values())
        np.testing.assert_allclose(total, self.numbers.sum(1))
        self.assert_sum(ax, 1.0 + self.numbers.sum(1).mean())

    def test_colours_are_the_numbers_of_features(self):
        found = lanes(plots.beeswarm(self.numbers, self.data, max_shown=None))
        for k in range(9):
            dots = found["feature %d" % k]
            low, high = np.percentile(self.data[:, k], [5, 95])
            shares = np.clip((self.data[:, k] - low) / (high - low), 0, 1)
            np.testing.assert_allclose(dots.get_array(), shares)
            self.assertEqual(dots.get_clim(), (0, 1))
        low, high = (colors.to_hex(_plot_axes.ORDERED(share)) for share in (0.0, 1.0))
        self.assertEqual((low, high), (_plot_axes.LOW, _plot_axes.HIGH))

    def test_dots_that_are_alike_do_not_hide_each_other(self):
        numbers = np.zeros((50, 2))
        numbers[:, 1] = np.arange(50)
        dots = lanes(plots.beeswarm(numbers))["feature 0"].get_offsets()
        self.assertEqual(len(set(map(tuple, np.round(dots, 9)))), 50)

    def test_data_may_be_missing_in_places(self):
        self.data[3, 2], self.data[:, 4] = np.nan, np.nan
        found = lanes(plots.beeswarm(self.numbers, self.data))
        self.assertEqual(len(found["feature 2"].get_offsets()), 60)
        self.assertTrue(np.isnan(np.asarray(found["feature 2"].get_array())[3]))
        self.assertIsNone(found["feature 4"].get_array())
        found["feature 2"].figure.canvas.draw()
        # They are seen, in the colour of what has none.
        for dots, row in ((found["feature 2"], 3), (found["feature 4"], 0)):
            colour = dots.get_facecolor()[row % len(dots.get_facecolor())]
            self.assertEqual((colors.to_hex(colour), round(colour[3], 2)), (_plot_axes.SOFT, 0.85))
        self.assertIn("61 dots gray: what the feature is there is missing or not finite.",
                      [text for text, *_ in paragraphs(found["feature 2"].axes)])

    def test_columns_of_one_name_keep_their_places(self):
        import pandas

        given = pandas.DataFrame(self.numbers[:, :3], columns=["a", "b", "a"])
        data = pandas.DataFrame(self.data[:, :3], columns=["a", "b", "a"])
        for place in range(3):
            np.testing.assert_allclose(
                plots.scatter(given, place, data).collections[0].get_offsets(),
                np.stack([self.data[:, place], self.numbers[:, place]], 1))
        with self.assertRaisesRegex(ValueError, "several columns of data are called a"):
            plots.beeswarm(given, data.iloc[:, [1, 0, 2]])
        with self.assertRaisesRegex(ValueError, "other columns than the contributions: 2 of them, not 3"):
            plots.beeswarm(given, data.iloc[:, :2])

    def test_rows_of_frames_stand_in_one_order(self):
        import pandas

        given = pandas.DataFrame(self.numbers[:, :3], columns=list("abc"))
        data = pandas.DataFrame(self.data[:, :3], columns=list("abc"))
        for other in (data.iloc[::-1], data["b"].iloc[::-1]):
            with self.assertRaisesRegex(ValueError, "the rows of the contributions in another order"):
                plots.scatter(given, "b", other)
        # Labels of other rows say nothing.
        data.index += 7
        plots.scatter(given, "b", data["b"])

    def test_tables_hold_numbers(self):
        import pandas

        def frame(column):
            return pandas.DataFrame({"a": column, "b": self.data[:, 1], "c": self.data[:, 2]})

        numbers = self.numbers[:, :3]
        dates = pandas.to_datetime(["2024-05-17"] * 60)
        for column, told in ((["3"] * 60, "texts or dates"), (pandas.Categorical(["3"] * 60), 'column "a" is of the type category'),
                             (dates, 'column "a" is of the type datetime')):
            with self.assertRaisesRegex(TypeError, told):
                plots.beeswarm(numbers, frame(column), names=list("abc"))
        for given in (np.array(["3"] * 60), np.array(dates)):
            with self.assertRaisesRegex(TypeError, "texts or dates"):
                plots.scatter(numbers, 0, given)
        with self.assertRaisesRegex(ValueError, r"or \[60\], this has shape \[0\]"):
            plots.scatter(numbers, 0, [])
        # Nullable integers may be missing.
        ax = plots.scatter(numbers, "a", frame(pandas.array([1, None] * 30, dtype="Int64")), names=list("abc"))
        self.assertIn("30 rows not drawn", paragraphs(ax)[1][0])

    def test_a_leftover_has_a_lane(self):
        value = self.numbers.sum(1) + 1 + self.random.normal(size=60)
        ax = plots.beeswarm(self.numbers, value=value, reference=1.0)
        np.testing.assert_allclose(
            lanes(ax)["leftover"].get_offsets()[:, 0], value - 1 - self.numbers.sum(1), atol=1e-12)

    def test_scatter(self):
        for feature, data in [(4, self.data), ("feature 4", self.data), (-5, self.data[:, 4]), (4, self.data[:, 4].tolist())]:
            ax = plots.scatter(self.numbers, feature, data, reference=0.5)
            np.testing.assert_allclose(
                ax.collections[0].get_offsets(), np.stack([self.data[:, 4], self.numbers[:, 4]], 1))
            self.assert_sum(ax, 0.5 + self.numbers.sum(1).mean())
            own = numbers_of(paragraphs(ax)[0][0])[1]
            self.assertAlmostEqual(own, self.numbers[:, 4].mean(), delta=1e-3)
        self.data[2, 4] = np.inf
        ax = plots.scatter(self.numbers, 4, self.data)
        self.assertIn("1 row not drawn", paragraphs(ax)[1][0])


class ImageTest(Figures):
    def setUp(self):
        super().setUp()
        self.numbers = self.random.normal(size=(3, 6, 8))
        self.photograph = self.random.uniform(size=(6, 8, 3))

    def drawn(self, ax):
        """The photograph and the map."""
        return ax.images if len(ax.images) == 2 else (None, *ax.images)

    def test_a_map_over_a_photograph_in_colour(self):
        from PIL import Image

        layouts = [
            (self.numbers, self.photograph),
            (self.numbers[None], self.photograph.transpose(2, 0, 1)),
            (self.numbers.sum(0), self.photograph.transpose(2, 0, 1)[None]),
            (torch.tensor(self.numbers.transpose(1, 2, 0)), torch.tensor(self.photograph)),
            (self.numbers, np.round(255 * self.photograph).astype("uint8")),
            (self.numbers, Image.fromarray(np.round(255 * self.photograph).astype("uint8"))),
            (self.numbers, Image.fromarray(np.round(255 * self.photograph).astype("uint8")).convert("RGBA")),
        ]
        for numbers, photograph in layouts:
            ax = plots.image(numbers, photograph, value=2.0, reference=2.0 - self.numbers.sum())
            under, over = self.drawn(ax)
            np.testing.assert_allclose(over.get_array(), self.numbers.sum(0), atol=1e-6)
            # Paler, in the same colours.
            white = 1 - np.asarray(under.get_array())
            np.testing.assert_allclose(white / (1 - self.photograph), np.full((6, 8, 3), white[0, 0, 0] / (
                1 - self.photograph[0, 0, 0])), rtol=0.3, atol=0.02)
            self.assertEqual(under.get_array().shape, (6, 8, 3))
            low, high = over.get_clim()
            self.assertEqual(-low, high)
            self.assertAlmostEqual(high, np.abs(self.numbers.sum(0)).max(), places=6)
            self.assertEqual(over.get_extent(), under.get_extent())
            self.assert_sum(ax, 2.0)

    def test_strong_pixels_hide_the_photograph(self):
        over = self.drawn(plots.image(self.numbers, self.photograph, opacity=0.5))[1]
        sizes, hidden = np.abs(self.numbers.sum(0)).ravel(), over.get_alpha().ravel()
        self.assertAlmostEqual(hidden.max(), 0.5)
        self.assertEqual(list(np.argsort(sizes)), list(np.argsort(hidden)))

    def test_a_limit_is_said(self):
        total = self.numbers.sum(0)
        ax = plots.image(self.numbers, self.photograph, limit=1.0)
        self.assertEqual(self.drawn(ax)[1].get_clim(), (-1.0, 1.0))
        beyond = (np.abs(total) > 1).sum()
        self.assertTrue(any("%d pixels are beyond" % beyond in text for text, _ in paragraphs(ax)), paragraphs(ax))

    def test_a_coarse_map_and_gray(self):
        ax = plots.image(np.arange(12.0).reshape(3, 4), 16 * self.photograph[:, :, 0])
        under, over = self.drawn(ax)
        self.assertEqual((over.get_array().shape, over.get_extent()), ((3, 4), under.get_extent()))
        gray = np.asarray(under.get_array())
        self.assertTrue((gray[:, :, 0] == gray[:, :, 2]).all())
        self.assertEqual(len(plots.image(self.numbers).images), 1)

    def test_pixels_of_an_explanation(self):
        image = addend.read_tensors(MODELS + "digits/sample.safetensors")["input"]
        model = addend.load_model(MODELS + "digits/model.pt2")
        found = model.decompose(addend.Input(image, dims=(2, 3), baseline=0)).explain("top1")
        ax = plots.image(found, image)
        np.testing.assert_allclose(self.drawn(ax)[1].get_array().ravel(), found.contributions)
        self.assert_sum(ax, found.value)
        same = model.explain(addend.Input(image, dims=(2, 3), baseline=0), targets="8")
        np.testing.assert_allclose(
            self.drawn(plots.image(same.inputs[0], image))[1].get_array(), np.asarray(same.inputs[0]).reshape(8, 8), atol=1e-6)
        with self.assertRaisesRegex(ValueError, "no pixels"):
            plots.image(explained(), image)

    def test_errors(self):
        for numbers, photograph, says in [
            (self.numbers[None].repeat(2, 0), None, r"shape \[2, 3, 6, 8\]"),
            (np.zeros(5), None, r"shape \[5\]"),
            (self.numbers, self.photograph[:5], "6 x 8 does not fit the photograph of 5 x 8"),
            (self.numbers, self.photograph[:, :, :2], "one or three channels"),
            (self.numbers, 4 * self.photograph - 2, "undo what was done to it"),
            (self.numbers * np.nan, None, "NaN or infinite"),
        ]:
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                plots.image(numbers, photograph)
        for options in ({"limit": 0}, {"limit": -1.0}, {"opacity": 0}, {"opacity": 2}):
            with self.assertRaisesRegex(ValueError, "is expected"):
                plots.image(self.numbers, **options)


class TokensTest(Figures):
    WORDS = ["Die", "Mehrheit", "der", "Pakete", "ist", "\n", "von", "$x$ der", "\u00c4nderung", " ", "betroffen"]

    def tokens(self, ax):
        return [one for one in texts(ax) if one.get_gid() == "token"]

    def test_tokens_are_coloured_by_contributions(self):
        numbers = np.array([1.25, 0.6, -0.5, 2.5, 0.0, 0.1, -2.5, 0.2, 2.4, -0.1, 0.7])
        ax = plots.text(numbers, names=self.WORDS, reference=0.5)
        found = self.tokens(ax)
        self.assertEqual([one.get_text() for one in found], [
            "Die", "Mehrheit", "der", "Pakete", "ist", "\u21b5", "von", "$x$ der", "\u00c4nderung", "\u2423", "betroffen"])
        for one, number in zip(found, numbers):
            red, _, blue, _ = one.get_bbox_patch().get_facecolor()
            self.assertEqual(np.sign(round(red - blue, 6)), np.sign(number), one.get_text())
        told = [one.get_text() for one in texts(ax) if one.get_gid() == "number"]
        self.assertEqual([float(one.replace(MINUS, "-")) for one in told], [
            number for number in np.round(numbers, 1) if number != 0])
        self.assert_sum(ax, 0.5 + numbers.sum())

    def test_tokens_do_not_overlap(self):
        numbers = self.random.normal(size=120)
        names = ["w%d" % k * (1 + k % 5) for k in range(120)]
        figure, narrow = pyplot.subplots(figsize=(3.5, 9), layout="constrained")
        for ax in (plots.text(numbers, names=names), plots.text(numbers, names=names, ax=narrow)):
            ax.figure.canvas.draw()
            boxes = [one.get_window_extent() for one in texts(ax)]
            for one, other in itertools.combinations(boxes, 2):
                self.assertFalse(one.x0 < other.x1 - 0.5 and other.x0 < one.x1 - 0.5 and one.y0 < other.y1 - 0.5
                                 and other.y0 < one.y1 - 0.5, "%s %s" % (one, other))
            for box in boxes:
                self.assertGreaterEqual(box.x0, ax.figure.bbox.x0)
                self.assertLessEqual(box.x1, ax.figure.bbox.x1)
            places = [(round(-one.get_window_extent().y1), one.get_window_extent().x0) for one in self.tokens(ax)]
            self.assertEqual(places, sorted(places), "in their order")
        _, small = pyplot.subplots(figsize=(2, 1))
        with self.assertRaisesRegex(ValueError, "120 tokens take .* too small"):
            plots.text(numbers, names=names, ax=small)

    def test_words_and_tokens_of_results(self):
        found = letters()
        ax = plots.text(found, row=1)
        self.assertEqual([one.get_text() for one in self.tokens(ax)], list("addendu"))
        self.assert_sum(ax, found.values[1])
        one = explained(4)
        self.assertEqual([token.get_text() for token in self.tokens(plots.text(one))], one.names)
        with self.assertRaisesRegex(ValueError, "names are missing"):
            plots.text(np.zeros(3))

    def test_matrix(self):
        found = letters()
        ax = plots.matrix(found)
        cells = np.asarray(ax.images[0].get_array())
        np.testing.assert_allclose(cells[:, :9], np.asarray(found.matrix))
        low, high = ax.images[0].get_clim()
        self.assertEqual(-low, high)
        self.assertEqual(labels(ax), found.rows)
        self.assertEqual([label.get_text() for label in ax.get_xticklabels()][:9], found.names)
        # The sum of each row, in numbers.
        told = [one.get_text().replace(MINUS, "-") for one in texts(ax) if one.get_gid() == "sum"]
        columns = np.array([float(one) for one in told]).reshape(-1, 3)
        heads = [one.get_text() for one in texts(ax) if one.get_gid() == "head"]
        self.assertEqual(heads, ["reference", "tokens", "leftover", "value"])
        np.testing.assert_allclose(columns[0], found.references, atol=6e-3)
        np.testing.assert_allclose(columns[3], found.values, atol=6e-3)
        np.testing.assert_allclose(columns[:3].sum(0), columns[3], atol=2e-2)

    def test_columns_beyond_share_one(self):
        numbers = self.random.normal(size=(5, 30))
        ax = plots.matrix(numbers, max_shown=10, reference=np.arange(5.0), rows=list("abcde"))
        cells = np.asarray(ax.images[0].get_array())
        self.assertEqual(cells.shape, (5, 11))
        np.testing.assert_allclose(cells.sum(1), numbers.sum(1))
        kept = np.sort(np.argsort(-np.abs(numbers).sum(0))[:10])
        np.testing.assert_allclose(cells[:, :10], numbers[:, kept])
        self.assertEqual([label.get_text() for label in ax.get_xticklabels()][-1], "20 other columns")
        with self.assertRaisesRegex(ValueError, "2 names for 5 rows"):
            plots.matrix(numbers, rows=["a", "b"])
        value = numbers.sum(1) + np.arange(5.0) + 3
        ax = plots.matrix(numbers, value=value, reference=np.arange(5.0))
        np.testing.assert_allclose(np.asarray(ax.images[0].get_array())[:, -1], np.full(5, 3.0))


class NotesTest(Figures):
    def test_notes_of_a_result_stand_under_its_figure(self):
        x = torch.linspace(-1, 1, 12).reshape(3, 4)
        model = addend.compile(network(4, 8, 3))
        with mock.patch("warnings.warn"):
            found = model.explain(addend.Input(x, dims=1), targets=[0, 1, 2], each_example=True)
            numbers = addend.attribute(network(4, 8, 3), x, target=[0, 1, 2])
        self.assertTrue(any("no baseline was given" in note for note in found.notes))
        figures = [plots.waterfall(found[0]), plots.bar(found), plots.beeswarm(found), plots.scatter(found, 1, x),
                   plots.text(found[0]), plots.matrix(found)]
        for ax in figures:
            told = [text for text, _ in paragraphs(ax)]
            for note in found.notes:
                self.assertTrue(any(note in text for text in told), "%s: %s" % (note, told))
        ax = plots.bar(numbers, notes=["the first", "the second"])
        self.assertEqual([text for text, _ in paragraphs(ax)][-2:], ["Note: the first", "Note: the second"])
        self.assertEqual(paragraphs(plots.waterfall(numbers, row=0, reference=0, notes="one"))[-1][0], "Note: one")

    def test_warnings_come_first_and_in_their_colour(self):
        letters_ = letters()
        warned = addend.lm.TokenAttribution(**{
            **letters_.__dict__, "notes": ["a note", "the model multiplies in TF32"], "warnings": ["the model multiplies in TF32"]})
        for ax in (plots.waterfall(warned, row=0), plots.matrix(warned), plots.text(warned, row=0)):
            found = paragraphs(ax)
            self.assertEqual([text for text, _ in found][-2:], ["Warning: the model multiplies in TF32", "Note: a note"])
            self.assertEqual(found[-2][1], _plot_axes.BAD)
            self.assertNotEqual(found[-1][1], _plot_axes.BAD)

    def test_notes_of_many_runs_are_told_once(self):
        with mock.patch("warnings.warn"):
            found = [addend.compile(network(4, 8, 3)).explain(addend.Input(torch.full((1, 4), k / 3), dims=1), targets=0)[0]
                     for k in range(1, 5)]
        told = [text for text, _ in paragraphs(plots.bar(found)) if "no baseline was given: zero" in text]
        self.assertEqual(len(told), 1)
        self.assertIn("so in 4 of 4 runs", told[0])

    def test_what_cancels_and_what_is_left_over_is_warned_of(self):
        ax = plots.waterfall(np.array([1e4, -1e4, 1.0]), reference=0.0)
        self.assertTrue(any("no single one means much" in text and colour == _plot_axes.BAD for text, colour in paragraphs(ax)))
        ax = plots.bar(np.array([[1e4, -1e4, 1.0], [1.0, 1.0, 1.0]]), reference=0.0)
        self.assertTrue(any("in 1 of 2 rows: without their signs" in text for text, _ in paragraphs(ax)))
        ax = plots.waterfall(np.array([1.0, 2.0]), reference=0.0, value=4.0)
        self.assertTrue(any("leftover" in text and "0.25 times" in text for text, _ in paragraphs(ax)), paragraphs(ax))
        self.assertEqual(len(paragraphs(plots.waterfall(np.array([1.0, 2.0]), reference=0.0, value=3.0))), 1)

    def test_numbers_of_every_size_are_a_sum(self):
        for scale in (1e-9, 1e-3, 1.0, 1234.5, 1e8):
            for _ in range(4):
                numbers = self.random.normal(size=4) * scale
                reference = float(self.random.normal() * scale)
                text = paragraphs(plots.waterfall(numbers, reference=reference, value=reference + numbers.sum()))[0][0]
                *terms, total = numbers_of(text)
                self.assertAlmostEqual(sum(terms) / scale, total / scale, delta=0.02, msg=text)
                self.assertAlmostEqual(total / scale, (reference + numbers.sum()) / scale, delta=0.01, msg=text)
                pyplot.close("all")


class LayoutTest(Figures):
    """Labels, numbers and paragraphs have places of their own, at every number of features and at every width."""

    NOTES = ["no baseline was given: zero for a tensor of the inputs", "the policy names encoder.layers.11.attention.self, but "
             "no module or operator of that name ran, so that it had no effect on what is drawn here"]

    def check(self, ax):
        ax.figure.canvas.draw()
        renderer = ax.figure.canvas.get_renderer()
        frame, box = ax.figure.bbox, ax.get_window_extent(renderer)
        sides = [label.get_window_extent(renderer) for label in ax.get_yticklabels()]
        column = [one.get_window_extent(renderer) for one in texts(ax)]
        below = [one.get_window_extent(renderer) for one in ax.get_children() if isinstance(one, _plot_axes.Below)]
        low, high = sorted(ax.get_xlim())  # there are ticks beyond, which are not drawn
        ticks = [
            label.get_window_extent(renderer)
            for at, label in zip(ax.get_xticks(), ax.get_xticklabels())
            if low <= at <= high and label.get_text()
        ]
        for one in sides:
            self.assertLessEqual(one.x1, box.x0 + 0.5, "a label overlaps the axes")
        for one in column:
            self.assertGreaterEqual(one.x0, box.x1 - 0.5, "a number overlaps the axes")
        for group in (sides, column, below):
            for one, other in zip(group, group[1:]):
                self.assertTrue(one.y0 >= other.y1 - 1 or one.y1 - 1 <= other.y0, "labels overlap")
        for one in (*sides, *column, *below, *ticks):
            self.assertGreaterEqual(one.x0, frame.x0 - 1)
            self.assertLessEqual(one.x1, frame.x1 + 1)
            self.assertGreaterEqual(one.y0, frame.y0 - 1)
        lowest = min(one.y0 for one in (*ticks, box) if one.y0 < box.y1)
        for one in below:
            self.assertLessEqual(one.y1, lowest + 0.5, "a paragraph overlaps the axes")
        self.assertGreater(box.width, 0.2 * frame.width, "the labels leave no room for the axes")

    def test_two_to_twenty_features(self):
        for count in (2, 7, 20):
            names = ["%s fractal dimension of nucleus %d" % ("worst" * (k % 3), k) for k in range(count)]
            numbers = self.random.normal(size=(30, count))
            for width in (4.0, 9.0):
                for draw in (
                    lambda ax: plots.waterfall(
                        numbers[0], names=names, reference=1.0, value=9.0, max_shown=None, notes=self.NOTES, ax=ax),
                    lambda ax: plots.bar(numbers, names=names, reference=1.0, max_shown=None, notes=self.NOTES, ax=ax),
                    lambda ax: plots.beeswarm(numbers, names=names, reference=1.0, max_shown=None, notes=self.NOTES, ax=ax),
                ):
                    with self.subTest(count=count, width=width):
                        figure, ax = pyplot.subplots(figsize=(width, 0.3 * count + 3), layout="constrained")
                        self.check(draw(ax))
                        # A figure that its owner makes narrower breaks its paragraphs anew.
                        figure.set_figwidth(0.8 * width)
                        self.check(ax)
                        if width > 4:
                            self.check(draw(None))
                        pyplot.close("all")

    def test_two_in_a_figure(self):
        figure, both = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
        for ax in both:
            self.assertIs(plots.waterfall(self.random.normal(size=8), reference=0.0, notes=self.NOTES, ax=ax), ax)
        for ax in both:
            self.check(ax)
        with self.assertRaisesRegex(TypeError, "an Axes of matplotlib is expected"):
            plots.bar(np.ones(3), ax=both)

    def test_names_are_shown_as_they_are(self):
        names = ["$a_1$", "b_{", "c$", "line\nbreak", "tab\t", "\u4e2d"[:0] + "", "100 %"]
        ax = plots.bar(np.arange(7.0, 0, -1), names=names)
        ax.figure.canvas.draw()
        self.assertEqual(labels(ax), ["$a_1$", "b_{", "c$", "line\u21b5break", "tab\\t", "''", "100 %"])
        long = plots.bar(np.array([1.0, 2.0]), names=["the beginning " + "x" * 200 + " the end", "b"])
        self.assertRegex(labels(long)[1], "^the begin.*\u2026.*end$")

    def test_files_of_every_kind(self):
        found = explained()
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("png", "svg", "pdf"):
                path = os.path.join(folder, "figure." + ending)
                plots.waterfall(found).figure.savefig(path, dpi=150)
                self.assertGreater(os.path.getsize(path), 3000)

    def test_a_figure_that_was_drawn_is_not_drawn_again(self):
        ax = plots.waterfall(explained())
        ax.figure.canvas.draw()
        self.assertFalse(ax.figure.stale)
        ax.figure.canvas.draw()
        self.assertFalse(ax.figure.stale)


class ErrorsTest(Figures):
    def test_shapes(self):
        rows = np.ones((3, 4))
        for call, says in [
            (lambda: plots.bar(np.ones((2, 3, 4))), r"\[features\] or \[rows, features\], these have shape \[2, 3, 4\]"),
            (lambda: plots.beeswarm(np.ones(4)), r"\[rows, features\], these have shape \[4\]"),
            (lambda: plots.beeswarm(np.ones((1, 4))), "beeswarm draws many rows, there is one"),
            (lambda: plots.beeswarm(rows, np.ones((3, 5))), r"\[3, 4\], this has shape \[3, 5\]"),
            (lambda: plots.scatter(rows, 0, np.ones((4, 4))), r"\[3, 4\], or \[3\], this has shape \[4, 4\]"),
            (lambda: plots.matrix(np.ones(4)), r"\[rows, features\]"),
            (lambda: plots.bar(np.ones(4), names=["a"]), "1 names for 4 contributions"),
            (lambda: plots.bar(np.ones(0)), "nothing to draw"),
            (lambda: plots.bar(np.ones((0, 3))), "nothing to draw"),
            (lambda: plots.bar(rows, reference=[1.0, 2.0]), r"one for each row, \[3\], this has shape \[2\]"),
            (lambda: plots.bar(np.array([1.0, np.nan])), "NaN or infinite"),
            (lambda: plots.bar(np.array([[1.0, 1.0], [np.inf, 1.0]])), "of row 1 are NaN or infinite"),
            (lambda: plots.waterfall(np.ones(3), reference=np.nan), "the reference are NaN or infinite|NaN or infinite"),
            (lambda: plots.bar(np.ones(3), max_shown=0), "max_shown is 0"),
            (lambda: plots.bar(np.ones(3), max_shown=2.5), "max_shown is 2.5"),
        ]:
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                call()

    def test_kinds(self):
        found = explained()
        for call, kind, says in [
            (lambda: plots.bar("text"), TypeError, "no array of numbers but a str"),
            (lambda: plots.bar(np.ones(3) * 1j), TypeError, "complex"),
            (lambda: plots.bar(torch.ones(3) * 1j), TypeError, "complex"),
            (lambda: plots.bar(found, value=1.0), TypeError, "Explanation has a value, a reference and a leftover of its own"),
            (lambda: plots.bar(addend.Composition.diagonal(torch.ones(3), 0)), TypeError, r"draw what its explain\(\) returns"),
            (lambda: plots.scatter(np.ones((3, 2)), "age", np.ones((3, 2))), KeyError, "no feature 'age'"),
            (lambda: plots.scatter(np.ones((3, 2)), 2, np.ones((3, 2))), IndexError, "feature 2 of 2"),
            (lambda: plots.bar([found, explained(5)]), ValueError, "different components"),
        ]:
            with self.subTest(says), self.assertRaisesRegex(kind, says):
                call()

    def test_numbers_of_torch_with_a_gradient(self):
        numbers = torch.tensor([1.0, -2.0], requires_grad=True)
        self.assertEqual(sorted(end for _, end in bars(plots.bar(numbers)).values()), [-2.0, 1.0])
        half = torch.tensor([1.0, -2.0], dtype=torch.bfloat16)
        self.assertEqual(sorted(end for _, end in bars(plots.bar(half)).values()), [-2.0, 1.0])


# How eyes without one kind of cone see linear RGB: Machado, Oliveira, Fernandes 2009, severity 1.
EYES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, eye=None):
    """CIELAB of a colour as an eye sees it."""
    rgb = np.array(colors.to_rgb(colour))
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    rgb = np.clip(np.array(EYES[eye]) @ rgb, 0, 1) if eye else rgb
    xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]) @ rgb
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in xyz / [0.95047, 1, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


class ColoursTest(unittest.TestCase):
    def test_pairs_are_told_apart_by_every_eye(self):
        pairs = [SIGNED, (_plot_axes.LOW, _plot_axes.HIGH), (_plot_axes.SIGNED_FILL(0.0), _plot_axes.SIGNED_FILL(1.0))]
        for eye in (None, *EYES):
            for one, other in pairs:
                # Red and green of one lightness come to less than 15 for eyes without a kind of cone.
                self.assertGreater(np.linalg.norm(lab(one, eye) - lab(other, eye)), 35, (eye, one, other))

    def test_text_on_colours_can_be_read(self):
        def luminance(colour):
            rgb = np.array(colors.to_rgb(colour))
            return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

        for share in np.linspace(0, 1, 21):
            ratio = (luminance(_plot_axes.SIGNED_FILL(share)) + 0.05) / (luminance(_plot_axes.INK) + 0.05)
            self.assertGreater(ratio, 4.5)  # WCAG 2, AA

    def test_the_middle_is_neutral(self):
        for one in (_plot_axes.SIGNED, _plot_axes.SIGNED_FILL):
            red, green, blue, _ = one(0.5)
            self.assertLess(max(red, green, blue) - min(red, green, blue), 0.05)


class PageTest(Figures):
    def test_the_page_runs_and_shows_every_function(self):
        found = page.Page("docs/plots.md")
        blocks = "\n".join(re.findall(r"```python\n(.*?)```", found.text, re.DOTALL))
        for name in plots.__all__:
            self.assertIn("plots.%s(" % name, blocks)
        for snippet in found.snippets():
            self.assertEqual([one for one in page.unknown_names(snippet) if one.startswith("addend")], [], snippet)
        for name, ax in found.names.items():
            if isinstance(ax, matplotlib.axes.Axes):
                self.assertIn("=", paragraphs(ax)[0][0], name)

    def test_functions_are_documented(self):
        for name in plots.__all__:
            function = getattr(plots, name)
            told = inspect.getdoc(function)
            for parameter in inspect.signature(function).parameters:
                self.assertIn("    %s: " % parameter, told, "%s(%s)" % (name, parameter))
            self.assertEqual(inspect.signature(function).parameters["ax"].default, None)


if __name__ == "__main__":
    unittest.main()
