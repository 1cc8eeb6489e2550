"""Axes of figures: matplotlib, which need not be installed, colours, labels, and paragraphs under the axes."""

from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

try:
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text
    from matplotlib.textpath import TextToPath
    from matplotlib.transforms import IdentityTransform
except ImportError as error:
    raise ImportError(
        "addend.plots draws with matplotlib, which cannot be imported here (%s): pip install matplotlib" % error
    ) from error

# Colours are those of the pages: orange raises, blue lowers, told apart with every common colour blindness; numbers of the
# data have two of their own. A sign or a place always says the same as the colour.
UP, DOWN, SOFT, BAD = "#d4660a", "#2b6cb0", "#69707c", "#a3195b"
MIDDLE, INK = "#f7f5f2", "#1d2026"
LOW, HIGH = "#b98700", "#6f2da8"
# An odd number of steps has zero in the middle.
SIGNED = LinearSegmentedColormap.from_list("addend_signed", [DOWN, MIDDLE, UP], 257)
# Lighter, as text stands on it.
SIGNED_FILL = LinearSegmentedColormap.from_list("addend_signed_fill", ["#5596d8", "#ffffff", "#ec8025"], 257)
ORDERED = LinearSegmentedColormap.from_list("addend_ordered", [LOW, HIGH]).with_extremes(bad=SOFT)  # what is missing too

LABEL, SMALL = 9.0, 8.0
_INCH = 72.0
# The room between an axes with its labels and the first paragraph under it, and between paragraphs, in points.
_FIRST_GAP, _GAP = 7.0, 3.0
_MEASURE = TextToPath()


def signed_colour(number: float) -> str:
    return DOWN if number < 0 else UP


def axes_of(ax: Optional[Axes], width: float, height: float) -> Axes:
    """The axes to draw in; without any, those of a new figure of that size in inches."""
    if ax is None:
        return pyplot.figure(figsize=(width, height), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise TypeError("ax is a %s; an Axes of matplotlib is expected, as plt.subplots() has it" % type(ax).__name__)
    return ax


def width_of(text: str, size: float) -> float:
    """How wide a line of text is, in points."""
    return _MEASURE.get_text_width_height_descent(text, FontProperties(size=size), False)[0] if text else 0.0


def shortened(text: str, points: float, size: float) -> str:
    """A text without its middle, where it is wider than that. Names differ at either end."""
    if width_of(text, size) <= points:
        return text
    kept = len(text) - 1
    while kept > 2 and width_of(_without_middle(text, kept), size) > points:
        kept -= 1
    return _without_middle(text, kept)


def _without_middle(text: str, kept: int) -> str:
    head = (kept + 1) // 2
    return text[:head] + "\u2026" + text[len(text) - (kept - head) :]


def shown(text: str) -> str:
    """A text on one line: line breaks as a sign, what does not print as an escape, spaces alone as a sign."""
    text = text.replace("\n", "\u21b5")
    if not text.strip(" "):
        return text.replace(" ", "\u2423") or "\u2205"
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def plain(text: Text) -> Text:
    """A text that is shown as it is: a dollar in a name begins no formula."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def room_of(ax: Axes) -> Any:
    """Width and height of an axes as they are now, in points."""
    box = ax.get_window_extent()
    return box.width * _INCH / ax.figure.dpi, box.height * _INCH / ax.figure.dpi


def label_lines(ax: Axes, labels: Sequence[str], numbers: Sequence[str] = (), colours: Sequence[str] = ()) -> float:
    """Labels lines of bars or of dots, from above, at the left, and their numbers at the right. Labels become smaller
    where lines are close, and lose their middle where they would be wider than half of the axes. Returns the size of their
    letters."""
    width, height = room_of(ax)
    size = max(3.0, min(LABEL, 0.85 * height / max(1, len(labels))))
    most = max(40.0, 0.5 * width)
    ax.set_yticks(range(len(labels)), [shortened(shown(label), most, size) for label in labels], size=size)
    for label in ax.get_yticklabels():
        plain(label)
    ax.tick_params(axis="y", length=0)
    for k, number in enumerate(numbers):
        plain(
            ax.annotate(
                number, (1, k), (5, 0), ax.get_yaxis_transform(), "offset points", va="center", ha="left", size=size,
                annotation_clip=False, color=colours[k] if colours else None,
            )
        )
    ax.set_ylim(len(labels) - 0.5, -0.5)
    return size


def quiet(ax: Axes, grid: bool = True) -> None:
    """Takes away what shows no number."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="x", labelsize=SMALL)
    if grid:
        ax.grid(True, axis="x", color=SOFT, alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)


def title(ax: Axes, text: str) -> None:
    """A title at the left, in several lines where the figure is narrow."""
    if text:
        plain(ax.set_title(shown(text), loc="left", size=10.0, wrap=True))


class Below(Text):
    """A paragraph under an axes and its labels, as wide as these. It is broken into lines when it is drawn, for the width
    that there is then, and layouts of matplotlib make room for it.

    Args:
        ax: the axes.
        paragraph: the text.
        after: the paragraph before it.
        height: how much of the axes is in use from above, in points; all of it unless given.
        style: properties of the text.
    """

    def __init__(
        self, ax: Axes, paragraph: str, after: Optional["Below"] = None, height: Optional[float] = None, **style: Any
    ):
        super().__init__(0, 0, "", va="top", ha="left", size=SMALL, clip_on=False, **style)
        self._paragraph = paragraph
        self._after = after
        self._height = height
        self._span = 0.0, 0.0
        plain(self)
        ax.add_artist(self)
        self.set_transform(IdentityTransform())

    @property
    def paragraph(self) -> str:
        """The whole text, however it is broken."""
        return self._paragraph

    def draw(self, renderer: Any) -> None:
        self._place(renderer)
        super().draw(renderer)

    def get_window_extent(self, renderer: Any = None, dpi: Optional[float] = None) -> Any:
        if renderer is not None:
            self._place(renderer)
        return super().get_window_extent(renderer, dpi)

    def _place(self, renderer: Any) -> None:
        point = renderer.points_to_pixels(1.0)
        if self._after is None:
            left, right, top = self._under_axes(renderer, point)
        else:
            # That one has been placed: artists are drawn and measured in their order.
            left, right = self._after._span
            top = super(Below, self._after).get_window_extent(renderer).y0 - _GAP * point
        self._span = left, right
        style = self.get_fontproperties()

        def measured(line: str) -> float:
            return renderer.get_text_width_height_descent(line, style, False)[0]

        self._change("text", "\n".join(broken(self._paragraph, max(right - left, 60 * point), measured)))
        self._change("x", left)
        self._change("y", top)

    def _under_axes(self, renderer: Any, point: float) -> Tuple[float, float, float]:
        """Left and right end, and the upper end, of the room under the axes."""
        box = self.axes.get_window_extent(renderer)
        axes = (self.axes.xaxis, self.axes.yaxis) if self.axes.axison else ()
        # The width of the label of the axis is left out, as layouts do: it may stand out.
        found = [axis.get_tightbbox(renderer, for_layout_only=True) for axis in axes]
        around = [box, *(one for one in found if one is not None)]
        lowest = min(one.y0 for one in around) if self._height is None else box.y1 - self._height * point
        return min(one.x0 for one in around), max(one.x1 for one in around), lowest - _FIRST_GAP * point

    def _change(self, name: str, value: Any) -> None:
        """Changes a property where it is another. Whatever is set counts as a change, for which figures on a screen would
        be drawn again and again."""
        before = {"text": self.get_text, "x": lambda: self.get_position()[0], "y": lambda: self.get_position()[1]}[name]()
        if before != value:
            self.set(**{name: value})


def broken(paragraph: str, width: float, measured: Callable[[str], float]) -> List[str]:
    """A paragraph in lines that are no wider than that."""
    lines = [""]
    for word in paragraph.split():
        longer = (lines[-1] + " " + word).strip()
        if measured(longer) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while len(word) > 1 and measured(word) > width:  # a path, say
            fits = next(k for k in range(len(word) - 1, 0, -1) if k == 1 or measured(word[:k]) <= width)
            lines[-1] = word[:fits]
            lines.append("")
            word = word[fits:]
        lines[-1] = word
    return lines


def write_below(ax: Axes, lines: Iterable[Any], height: Optional[float] = None) -> None:
    """Writes paragraphs under an axes: the sum first, then what explains the figure, warnings and notes."""
    last = None
    for k, line in enumerate(lines):
        style = {"color": BAD} if line.is_warning else {"color": SOFT} if k else {}
        last = Below(ax, line.text, last, height, **style)


def grow(ax: Axes, height: float) -> None:
    """Makes the figure that this library made so high that the axes themselves have that height, in inches."""
    figure = ax.figure
    # Layouts give up where there is too little room, so that there is more than enough of it first.
    below = sum(1 + len(one.paragraph) / 40 for one in ax.get_children() if isinstance(one, Below))
    figure.set_figheight(height + 2.5 + 0.16 * below)
    for _ in range(2):  # a higher figure may need other ticks
        figure.draw_without_rendering()
        # The room of the axes counts, in which an image may be smaller.
        own = ax.get_position(original=True).height * figure.get_figheight()
        figure.set_figheight(figure.get_figheight() + height - own)
