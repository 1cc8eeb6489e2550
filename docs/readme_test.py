"""Every program that a page shows stands, line by line, in the file that it names; each of the files is shown.

    readme_test.py PAGE FILE...
"""

import os
import re
import sys


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(whole, part):
    return any(whole[k : k + len(part)] == part for k in range(len(whole) - len(part) + 1))


def main(page, *paths):
    files = {os.path.basename(path): lines_of(open(path).read()) for path in paths}
    shown = set()
    pattern = r"\(\[([\w.]+)\]\([\w./]*examples/[\w./]+\).*?\):\n\n```\w+\n(.*?)```"
    for name, code in re.findall(pattern, open(page).read(), re.DOTALL):
        if not contains(files[name], lines_of(code)):
            sys.exit("%s shows something else than %s" % (page, name))
        shown.add(name)
    missing = set(files) - shown
    if missing:
        sys.exit("%s does not show %s" % (page, ", ".join(sorted(missing))))


if __name__ == "__main__":
    main(*sys.argv[1:])
