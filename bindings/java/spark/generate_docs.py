"""Makes a test of the programs that docs/jobs.md shows: each becomes a method. SparkPage.java has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import sys

import pages

_HEAD = """package dev.addend.spark;

import dev.addend.Job;
import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;

/** The programs of docs/jobs.md. */
class SparkDocsTest extends SparkPage {
%s}
"""


if __name__ == "__main__":
    page, out = sys.argv[1:]
    # The folder of the page is that of the test.
    programs = [program.replace('"/data/', 'data + "/') for program in pages.programs(page, "java", least=2)]
    pages.write(out, _HEAD, pages.JAVA_METHOD, programs, " " * 4)
