"""Start-up time and memory of `import addend` beside `import torch`: whole processes, in turns.

    startup.py [--runs N]

Each row of the table is a program of one line. Seconds: the median of N runs (minimum to maximum), from the start of the
process to its end. MiB: the largest resident memory of the process, its median. Timings are of this machine at this
moment; what they are for is the difference of two rows.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

_EXPLAIN = (
    "import addend, torch; torch.manual_seed(0); model = torch.nn.Linear(4, 1); "
    "addend.attribute(model, torch.ones(1, 4), target=0)"
)
PROGRAMS = [
    ("nothing", "pass"),
    ("import torch", "import torch"),
    ("import addend", "import addend"),
    ("import torch, addend", "import torch, addend"),
    ("the same, and the first operation", "import torch, addend; addend.as_tensor(torch.ones(1))"),
    ("the same, and an attribution", _EXPLAIN),
]


def run(program):
    """(seconds, MiB) of a process that runs a program."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = 0
    if status != 0:
        sys.exit("it failed: " + program)
    return seconds, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    for _, program in PROGRAMS:
        run(program)  # files come into memory
    found = {name: [] for name, _ in PROGRAMS}
    for _ in range(runs):
        for name, program in PROGRAMS:
            found[name].append(run(program))
    print("| program | seconds | MiB |\n|---|---|---|")
    for name, figures in found.items():
        seconds = [figure[0] for figure in figures]
        print(
            "| %s | %.2f (%.2f to %.2f) | %.0f |"
            % (name, statistics.median(seconds), min(seconds), max(seconds), statistics.median(f[1] for f in figures))
        )


if __name__ == "__main__":
    main()
