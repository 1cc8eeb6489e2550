"""Makes a test of the programs that docs/djl.md shows: each becomes a method. DjlPage.java has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import sys

import pages

_HEAD = """package dev.addend.djl;

import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.translate.Translator;
import dev.addend.Attribution;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Plan;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import org.junit.jupiter.api.Test;

/** The programs of docs/djl.md. */
class DjlDocsTest extends DjlPage {
%s}
"""


if __name__ == "__main__":
    page, out = sys.argv[1:]
    pages.write(out, _HEAD, pages.JAVA_METHOD, pages.programs(page, "java", least=2), " " * 4)
