#!/usr/bin/env python3
"""Trains the example models and writes their files beside this script."""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = ("breast_cancer", "digits", "language", "speaker")
# Those that learn from Debian packages.
WITH_CORPUS = ("language", "speaker")

# TorchScript writes the constants of a class in the order of a Python set, so
# even a file with the same weights depends on the hash seed of the process.
FIXED_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=(*MODELS, "all"))
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="FOLDER",
        help="where the Debian packages for `language` and `speaker` are downloaded and unpacked; "
        "packages that are there already are used again (default: a temporary folder)",
    )
    return parser.parse_args()


def start(model, corpus_folder):
    """Trains one model in a process of its own with the fixed environment.

    One process each, because TorchScript also numbers the classes that a
    process has seen, and the numbers go into the file: alone or with the
    others, a model must be the same bytes.
    """
    command = [sys.executable, __file__, model]
    if corpus_folder:
        command += ["--corpus", str(corpus_folder)]
    subprocess.run(command, env={**os.environ, **FIXED_ENVIRONMENT}, check=True)


def train(model, corpus_folder):
    script = importlib.import_module(model)
    if model not in WITH_CORPUS:
        script.run()
        return
    with tempfile.TemporaryDirectory() as temporary:
        script.run(corpus_folder or Path(temporary))


def main():
    arguments = parse_arguments()
    is_fixed = all(os.environ.get(name) == value for name, value in FIXED_ENVIRONMENT.items())
    if is_fixed and arguments.model != "all":
        train(arguments.model, arguments.corpus)
        return
    for model in MODELS if arguments.model == "all" else (arguments.model,):
        start(model, arguments.corpus)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
