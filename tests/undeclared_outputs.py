"""Files that tests leave in $TEST_UNDECLARED_OUTPUTS_DIR for who ran them."""

import io
import os
import zipfile


def text_of(folder, name="result.json"):
    """The text of a file that a test left; None where it left none.

    Args:
        folder: the test.outputs of the test. Newer versions of Bazel leave the file there, others in an archive.
        name: of the file.
    """
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except OSError:
        pass
    try:
        with zipfile.ZipFile(os.path.join(folder, "outputs.zip")) as archive:
            return io.TextIOWrapper(archive.open(name), "utf-8").read()
    except (OSError, KeyError):
        return None
