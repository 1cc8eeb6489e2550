"""Measurements in processes of their own: what one takes, within limits, or why it cannot."""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import arithmetic

# Seconds that a process may take beside what is measured: imports on a busy machine take minutes.
PREPARATION = 600
GIB = 2**30


class Missing(Exception):
    """A checkout was not given, or this build lacks the method."""


def add_limits(parser, seconds, memory):
    """The options of a program that measures in processes of its own."""
    parser.add_argument("--limit", type=float, default=seconds, metavar="SECONDS",
                        help="of the processor, for one run (default: %(default)g)")
    parser.add_argument("--memory", type=float, default=memory, metavar="GIB",
                        help="that a method may use (default: %(default)g)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where a page with plots goes")
    parser.add_argument("--redraw", type=Path, metavar="FILE", help="only draws the page of these results")
    parser.add_argument("--worker", help=argparse.SUPPRESS)


def patience(limit):
    """Seconds by the clock for all that a process does."""
    return PREPARATION + 10 * limit


def ask(program, job, arguments, folders, seconds):
    """The findings of a program about a job in a process of its own; a reason if it fails, "too_slow" if that is the
    limit of time.

    Args:
        folders: the checkouts that it is given, by the names of its options; None where there is none.
        seconds: by the clock, for all of it.
    """
    command = [sys.executable, program, "--worker", json.dumps(job), "--limit", str(arguments.limit),
               "--memory", str(arguments.memory)]
    for name, folder in folders.items():
        command += ["--" + name, str(folder)] if folder else []
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"reason": "not done after %g s" % seconds}
    return _outcome(done.returncode, done.stdout, done.stderr, arguments.limit)


def work(arguments, find):
    """In a process of its own: prints what is found out about the job as one line of JSON."""
    warnings.simplefilter("ignore")
    limit = int(arguments.memory * GIB)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    print(json.dumps(find(json.loads(arguments.worker), arguments)))
    return 0


def in_child(find, limit):
    """The findings of a function in a copy of this process, which has imported what it needs; as `ask` otherwise.

    Args:
        limit: the seconds that `first_run` is given in it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_REAL, patience(limit))
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(find()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    return _outcome(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text, "", limit)


def _outcome(code, text, errors, limit):
    """The last line that a process wrote, as JSON, or the reason why there is none."""
    if code == -signal.SIGPROF:
        return {"reason": "takes more than %g s" % limit, "too_slow": True}
    if code == -signal.SIGALRM:
        return {"reason": "not done after %g s" % patience(limit)}
    if code:
        last = errors.strip().splitlines()[-1:] or ["killed by signal %d" % -code]
        return {"reason": arithmetic.one_line(last[0])}
    return json.loads(text.splitlines()[-1])


def first_run(run, limit):
    """The result of a run, its seconds, and its memory over that of the process before, in MiB. The process ends if it
    takes too long."""
    held = reset_peak()
    # Others that use the machine do not count.
    signal.setitimer(signal.ITIMER_PROF, limit)
    seconds = spent(run)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return seconds.pop("result"), seconds, (peak_memory() - held) / 2**20


def spent(run):
    """The result of a run, and its seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    result = run()
    return {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock, "result": result}


def reset_peak():
    """Lets the peak begin at what the process holds now, which it returns, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_memory():
    return _status("VmHWM")


def reason_of(error, memory):
    """Why a method cannot, in one line."""
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error):
        return "needs more than %g GiB" % memory
    kind = "" if isinstance(error, Missing) else type(error).__name__ + ": "
    return arithmetic.one_line(kind + " ".join(str(error).split()))


def say(text):
    print(text, file=sys.stderr, flush=True)


def _status(key):
    # Not getrusage(): its peak begins with that of the process that started this one.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status does not say " + key)
