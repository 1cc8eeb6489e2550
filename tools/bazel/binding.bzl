"""Tests of one face, which differ in little more than their names and data."""

def binding_tests(test, common, tests):
    """Declares tests, each with what all of them have and what it adds to that.

    Args:
      test: the macro that declares one, such as python_test.
      common: keywords of all; "{name}" in a text stands for the name of the test.
      tests: for each name its own keywords. Lists are added to those of all, everything else takes their place.
    """
    for name, own in tests.items():
        keywords = {
            key: value.format(name = name) if type(value) == "string" else value
            for key, value in common.items()
        }
        for key, value in own.items():
            keywords[key] = keywords.get(key, []) + value if type(value) == "list" else value
        test(name = name, **keywords)
