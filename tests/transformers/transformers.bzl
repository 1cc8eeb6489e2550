"""Tests of live models of Hugging Face transformers, where the chosen Python has it."""

load("@local_python//:info.bzl", "PYTHON", "PYTHON_PACKAGES")
load("//tools/bazel:python.bzl", "HAVE_PYTHON", "python_test")

def transformers_tests(architectures, package):
    """One test for each group of architectures, so that they run side by side; and one of language models.

    Args:
      architectures: by the name of a test, the architectures that it judges.
      package: the python_package of Addend.
    """
    if not HAVE_PYTHON:
        return
    if "transformers" not in PYTHON_PACKAGES:
        # buildifier: disable=print
        print("skipping the tests of transformers: %s lacks it (package python3-transformers)" % PYTHON)
        return
    for name, group in architectures.items():
        python_test(
            name = name,
            # Not a large one: Bazel's filter by tags takes its time limit, "long", for the tag of that name.
            size = "medium",
            timeout = "eternal",
            data = [
                "architectures.py",
                "result.py",
            ],
            env = {"ARCHITECTURES": ",".join(group)},
            main = "transformers_test.py",
            package = package,
        )
    python_test(
        name = "lm_test",
        size = "medium",
        data = ["architectures.py"],
        package = package,
    )
