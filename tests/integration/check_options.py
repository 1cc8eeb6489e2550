#!/usr/bin/env python3
"""Reads the compilations that `bazel aquery` lists; fails unless the last option of each kind is ours in all of our C++."""

import re
import sys

# Options that have to come last among those that say the same thing, since the last one counts.
_OURS = [("-DNDEBUG", r"-[DU]NDEBUG"), ("-ffp-contract=off", r"-ffp-contract=\w+"), (None, r"-std=[^\s']+")]


def faults_of(action):
    """The faults of one compilation, in words."""
    action = re.sub(r"\s*\\\n\s*", " ", action)  # one option a line, in some versions of Bazel
    source = re.search(r"-c '?(\S+?\.cc)'?(\s|$)", action)
    if not source or "/addend" not in source.group(1) or "_wrap.cc" in source.group(1):
        return None
    result = []
    for ours, pattern in _OURS:
        found = re.findall(r"(?<=[\s'])%s(?=[\s'])" % pattern, action)
        last = found[-1] if found else "none"
        if last != ours if ours else last not in ("-std=c++17", "-std=c++20"):
            result.append("%s: the last of %s is %s" % (source.group(1), pattern, last))
    return result


def main():
    """Exits with 1 where there is a fault."""
    judged = [faults_of(action) for action in sys.stdin.read().split("action '")]
    faults = [fault for faults in judged if faults for fault in faults]
    count = sum(faults is not None for faults in judged)
    print("%d compilations, %d faults" % (count, len(faults)))
    print("\n".join(faults[:20]))
    sys.exit(0 if count > 50 and not faults else 1)


main()
