"""Facts that a measurement is worth nothing without: the machine, the versions, the threads, the day."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

import numpy
import torch

import addend

_VARIABLES = ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def facts():
    """Facts about the machine and the code, for every file of results."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "addend": addend.__version__,
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": load(),
        "system": _system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "threads": torch.get_num_threads(),
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def load():
    """How many processes wanted to run in the last minute: above the number of cores, times are those of a busy machine."""
    return round(os.getloadavg()[0], 1)


def make_folders(*files):
    """Those that results will go into: better before minutes of measuring than after. None is no file."""
    for file in filter(None, files):
        Path(file).parent.mkdir(parents=True, exist_ok=True)


def _processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _system():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.platform()


def _commit():
    """The commit of the sources beside this file, with a "+" if they differ from it; None outside of a checkout."""
    folder = Path(__file__).resolve().parent
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=folder, check=True, capture_output=True, text=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
