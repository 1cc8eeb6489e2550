"""DLBacktrace: relevance of the nodes of an exported graph, which begins as the output's value at the target."""

import importlib.metadata

import torch
from dl_backtrace.pytorch_backtrace import DLBacktrace

VERSION = importlib.metadata.version("dl-backtrace")


def default(case):
    backtrace = DLBacktrace(case.model, (case.inputs[:1],), device="cpu", layer_implementation="pytorch")

    def explain(question):
        io = backtrace.predict(question.x)
        value = float(question.move()[0])
        relevance = backtrace.evaluation(mode="default", multiplier=value, task="multi-class-classification")
        return question.by_unit(relevance, "value")

    return explain


METHODS = {"DLBacktrace default": default}
