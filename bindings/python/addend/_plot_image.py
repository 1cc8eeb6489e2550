"""Heat maps of contributions over the photograph that they explain."""

from typing import Any, Optional, Tuple

import numpy

from ._attribution import Attribution
from ._explanation import Explanation
from ._plot_axes import (
    DOWN,
    SIGNED,
    SMALL,
    UP,
    Axes,
    LinearSegmentedColormap,
    Normalize,
    ScalarMappable,
    axes_of,
    grow,
    title,
    write_below,
)
from ._plot_bars import WIDTH
from ._plot_parts import Notes, Parts, as_numbers, of_numbers, parts_of, with_notes
from ._plot_words import Line, decimals, fixed, lines_of, plural, value_of

# How much white is mixed into a photograph under a map, so that the colours of the map are not taken for its own.
_PALE = 0.4
# A colour for each sign, without any between.
_SIGNS = LinearSegmentedColormap.from_list("addend_signs", [(0, DOWN), (0.5, DOWN), (0.5, UP), (1, UP)])


def image(
    explained: Any,
    photograph: Any = None,
    *,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    limit: Optional[float] = None,
    opacity: float = 0.85,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws what pixels contributed, as a map over the photograph: blue lowers the value, orange raises it.

    The more a pixel contributed, the more it hides the photograph. Colours are symmetric about zero.

    Args:
        explained: contributions by pixel: an array ``[height, width]``, ``[channels, height, width]`` or
            ``[1, channels, height, width]``, as `attribute` returns it, whose channels are added up. Or an `Explanation`,
            or an `Attribution` of one number, whose components are the pixels of an image: ``Input(image, dims=(2, 3))``.
            A map may be coarser than the photograph, by a whole number.
        photograph: an image of Pillow or an array, in colour or in gray, with channels first or last, bytes or numbers in
            0..1. Gray may have any range. Without one, the map is drawn alone.
        value: of an array, as for `waterfall`, and so are the three that follow.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        limit: the magnitude from which on all colours are alike; the largest one unless given. How many pixels are beyond
            stands under the figure.
        opacity: how much the strongest colour hides the photograph, up to 1.
        ax: where to draw; a new figure unless given.
    """
    if not 0 < opacity <= 1:
        raise ValueError("opacity is %r; a number above 0 and up to 1 is expected" % (opacity,))
    parts, size = _pixels(explained, value, reference, leftover, notes)
    numbers = parts.contributions.reshape(size)
    largest = float(numpy.abs(numbers).max())
    if limit is not None and not 0 < limit < numpy.inf:
        raise ValueError("limit is %r; a magnitude above 0 is expected" % (limit,))
    strongest = limit if limit is not None else largest or 1.0
    under = None if photograph is None else _photograph(photograph, size)
    height, width = size if under is None else under.shape[:2]
    new = ax is None
    shape = min(4.4, max(1.2, 4.8 * height / width))
    ax = axes_of(ax, max(3.6, shape * width / height + 1.45), shape + 1.0)
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    norm = Normalize(-strongest, strongest)
    if under is None:
        ax.imshow(numbers, cmap=SIGNED, norm=norm, extent=extent, interpolation="nearest")
    else:
        ax.imshow(_PALE + (1 - _PALE) * under, extent=extent, interpolation="nearest")
        # Pale colours of the map would mix with those of the photograph: the sign has a colour, and how much of the
        # photograph it hides is the magnitude.
        hidden = opacity * numpy.clip(numpy.abs(numbers) / strongest, 0, 1) ** 0.8
        ax.imshow(numbers, cmap=_SIGNS, norm=norm, alpha=hidden, extent=extent, interpolation="nearest")
    ax.set_axis_off()
    # Inside of the axes, whose height is that of the image.
    bar = ax.figure.colorbar(
        ScalarMappable(norm, SIGNED), cax=ax.inset_axes((1.02, 0, 0.03, 1)), ticks=[-strongest, 0, strongest],
        extend="both" if strongest < largest else "neither",
    )
    places = decimals([strongest])
    bar.ax.set_yticklabels([fixed(one, places, True) for one in (-strongest, 0.0, strongest)], size=SMALL)
    bar.set_label("contribution", size=SMALL)
    bar.outline.set_visible(False)
    title(ax, value_of(parts))
    lines = lines_of(parts)
    beyond = int((numpy.abs(numbers) > strongest).sum())
    if beyond:
        lines.insert(1, Line("Colours end at %s; %s beyond that, up to %s." % (
            fixed(strongest, places), _are(beyond), fixed(largest, decimals([largest])))))
    write_below(ax, lines)
    if new:
        grow(ax, shape)
    return ax


def _are(count: int) -> str:
    return "%s %s" % (plural(count, "pixel"), "is" if count == 1 else "are")


def _pixels(explained: Any, value: Any, reference: Any, leftover: Any, notes: Notes) -> Tuple[Parts, Tuple[int, int]]:
    """Contributions by pixel, row by row, with height and width."""
    if isinstance(explained, (Explanation, Attribution)):
        parts = parts_of(explained, None, value, reference, leftover, notes).row(None)
        if parts.size is None or parts.size[0] * parts.size[1] != parts.contributions.shape[1]:
            raise ValueError(
                "the components are no pixels of an image; split it by Input(image, dims=(2, 3)), or draw the array "
                "that attribute() returns"
            )
        return parts, parts.size
    numbers, epsilon = as_numbers(explained, "contributions")
    shape = list(numbers.shape)
    while numbers.ndim > 3 and numbers.shape[0] == 1:
        numbers = numbers[0]
    if numbers.ndim == 3:
        numbers = numbers.sum(_channels(numbers.shape))
    if numbers.ndim != 2 or not numbers.size:
        raise ValueError(
            "contributions of an image are [height, width], [channels, height, width] or [1, channels, height, width], "
            "these have shape %s" % shape
        )
    parts = of_numbers(numbers.reshape(1, -1), epsilon, value, reference, leftover)
    parts.noun = "pixel"
    return with_notes(parts, notes), (numbers.shape[0], numbers.shape[1])


def _channels(shape: Tuple[int, ...]) -> int:
    """Which of three dimensions counts channels: the first, unless only the last one can."""
    return 2 if shape[2] in (1, 3) and shape[0] not in (1, 3) else 0


def _photograph(photograph: Any, size: Tuple[int, int]) -> Any:
    """The photograph as ``[height, width, 3]`` in 0..1."""
    if hasattr(photograph, "mode") and hasattr(photograph, "convert"):  # an image of Pillow
        as_it_is = photograph.mode in ("L", "RGB", "I", "F") or photograph.mode.startswith("I;")
        photograph = numpy.asarray(photograph if as_it_is else photograph.convert("RGB"))
    is_bytes = str(getattr(photograph, "dtype", "")).endswith("uint8")
    pixels, _ = as_numbers(photograph, "the photograph")
    shape = list(pixels.shape)
    while pixels.ndim > 3 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 3 and _channels(pixels.shape) == 0:
        pixels = numpy.moveaxis(pixels, 0, 2)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise ValueError(
            "a photograph is [height, width], or has one or three channels before or behind these, this has shape %s"
            % shape
        )
    if not numpy.isfinite(pixels).all():
        raise ValueError("the photograph has numbers that are NaN or infinite")
    if pixels.shape[0] % size[0] or pixels.shape[1] % size[1]:
        raise ValueError(
            "the map of %d x %d does not fit the photograph of %d x %d: each has to be a whole number of times the map"
            % (*size, *pixels.shape[:2])
        )
    low, high = float(pixels.min()), float(pixels.max())
    if is_bytes:
        return numpy.broadcast_to(pixels / 255, (*pixels.shape[:2], 3))
    if pixels.shape[2] == 1:
        return numpy.broadcast_to((pixels - low) / ((high - low) or 1.0), (*pixels.shape[:2], 3))
    if low < 0 or high > 1:
        raise ValueError(
            "the photograph has numbers from %.3g to %.3g, where colours are in 0..1: undo what was done to it for the "
            "model (photo * std + mean), or divide bytes by 255" % (low, high)
        )
    return pixels
