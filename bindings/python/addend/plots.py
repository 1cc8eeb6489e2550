"""Figures of explanations, by matplotlib (``pip install matplotlib``)::

    ax = addend.plots.waterfall(results.explain("top1"))
    ax.figure.savefig("why.png")

Each function returns the Axes that it drew in: those of `ax`, or of a new figure. Under every figure stands the sum in
numbers, reference + contributions + leftover = value, and with it the notes of the result. Parts that have no place of
their own share one: none is left out. In a figure of your own, ``plt.subplots(layout="constrained")`` makes room for what
stands under the axes.
"""

from ._plot_bars import bar, waterfall
from ._plot_image import image
from ._plot_rows import beeswarm, scatter
from ._plot_tokens import matrix, text

__all__ = ["bar", "beeswarm", "image", "matrix", "scatter", "text", "waterfall"]
