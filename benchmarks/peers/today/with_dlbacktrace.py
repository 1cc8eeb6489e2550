"""DLBacktrace: relevance of the nodes of an exported graph, which begins as the value of the output."""

import functools
import importlib.metadata
import sys
import unittest.mock

from questions import OneOutput

# Its wheel is for PyTorch 2.6 and imports kernels for CUDA 12 even where all runs on a CPU; and pictures, none of which is drawn.
for _module in ("wt_embedding_v2_ops", "wt_fc_v3_ops", "wt_selfattention_v3_ops", "IPython", "IPython.display"):
    sys.modules.setdefault(_module, unittest.mock.MagicMock())

from dl_backtrace.pytorch_backtrace import DLBacktrace  # noqa: E402

VERSION = importlib.metadata.version("dl-backtrace")


def default(case):
    @functools.lru_cache
    def exported(target):
        return DLBacktrace(OneOutput(case.model, target), (case.inputs[:1],), device="cpu")

    def explain(question):
        backtrace = exported(question.target)
        backtrace.predict(question.x)
        relevance = backtrace.evaluation(multiplier=question.move()[0])
        return question.by_unit(relevance["x"], "value")

    return explain


METHODS = {"DLBacktrace default": default}
