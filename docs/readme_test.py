"""Every program that README.md shows stands, line by line, in the file that it names.

    readme_test.py README FILE...
"""

import os
import re
import sys


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(whole, part):
    return any(whole[k : k + len(part)] == part for k in range(len(whole) - len(part) + 1))


def main(readme, *paths):
    files = {os.path.basename(path): lines_of(open(path).read()) for path in paths}
    shown = set()
    pattern = r"\(\[([\w.]+)\]\(docs/examples/[\w.]+\).*?\):\n\n```\w+\n(.*?)```"
    for name, code in re.findall(pattern, open(readme).read(), re.DOTALL):
        if not contains(files[name], lines_of(code)):
            sys.exit("README.md shows something else than docs/examples/%s" % name)
        shown.add(name)
    missing = set(files) - shown
    if missing:
        sys.exit("README.md does not show " + ", ".join(sorted(missing)))


if __name__ == "__main__":
    main(*sys.argv[1:])
