#!/usr/bin/env python3
"""Runs the conformance suite of this folder on a GPU, beside the torch of this Python; see README.md."""

import argparse
import glob
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

KIT = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(KIT, "conformance-1")
PACKAGE = os.path.join(KIT, "package")
_PYTHON = "env PYTHONPATH=%s %s -B testees/python/testee.py" % (shlex.quote(PACKAGE), shlex.quote(sys.executable))
_JAVA = "{java}/jre/bin/java -XX:-UsePerfData -XX:+UseSerialGC -cp '{java}/*' conformance.Testee"
# In the order in which they start: C++ says most, and the shares of the others are asked beside its last ones.
TESTEES = {
    "cpp": os.path.join(KIT, "bin", "cpp_testee"),
    "python": _PYTHON,
    "java": _JAVA.format(java=os.path.join(KIT, "java")),
    "c": os.path.join(KIT, "bin", "c_testee"),
}

# Without importing addend: does this LibTorch see the device, and which one is it?
_ASK = """
import json, sys, torch
device = sys.argv[1]
if device != "cpu":
    torch.zeros(1, device=device)
print(json.dumps({"version": torch.__version__, "lib": torch.__path__[0] + "/lib",
                  "name": "" if device == "cpu" else torch.cuda.get_device_name(device)}))
"""


def main():
    options = _options()
    torch = _torch(options.device)
    say("torch %s%s" % (torch["version"], " on " + torch["name"] if torch["name"] else ""))
    os.makedirs(options.results, exist_ok=True)
    run = Run(options, torch)
    try:
        run.work()
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        run.end()
    return run.summary()


def _options():
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Runs the conformance suite beside the torch of this Python. What failed before runs first.",
        epilog="Options behind -- go to the suite's own run.py: `-- --cases 'laws_*'`.",
    )
    add = parser.add_argument
    there = [language for language in TESTEES if language != "java" or os.path.isdir(os.path.join(KIT, "java"))]
    add("--device", default="cuda", help="cuda (the default), cuda:1, cpu")
    add("--language", action="append", choices=there, help="may be repeated; by default " + ", ".join(there))
    add("--share", action="append", default=[], metavar="LANGUAGE=N", help="only each N-th part of a language: java=3")
    add("--results", default="results", metavar="DIR", help="where result files go; results by default")
    add("--jobs", type=int, default=os.cpu_count(), metavar="N", help="testees at once; all processors by default")
    add("--limit", type=float, default=float("inf"), metavar="S", help="seconds after which nothing runs any more")
    own, behind = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, behind = own[:at], own[at + 1 :]
    options = parser.parse_args(own)
    options.suite = behind
    options.language = options.language or there
    options.results = os.path.abspath(options.results)
    options.jobs = max(options.jobs, 1)
    shares = [share.partition("=") for share in options.share]
    if any(language not in TESTEES or not number.isdigit() or number == "0" for language, _, number in shares):
        parser.error("--share takes a language and a number, such as java=3")
    options.share = {language: int(number) for language, _, number in shares}
    return options


def say(text):
    print("gpu: " + text, flush=True)


def fail(text):
    sys.exit("gpu: " + text)


def _torch(device):
    if not importlib.util.find_spec("torch"):
        fail("%s has no package torch; start run.py with the Python that has it" % sys.executable)
    asked = subprocess.run([sys.executable, "-c", _ASK, device], capture_output=True, text=True, check=False)
    if asked.returncode:
        fail("torch cannot compute on %s:\n%s" % (device, asked.stderr.strip().splitlines()[-1]))
    torch = json.loads(asked.stdout)
    # Without what says who built it: "2.11.0" of "2.11.0+cu130".
    torch["version"] = re.match(r"[0-9.]*[0-9]", torch["version"])[0]
    versions = [re.search(r"torch([0-9.]+)\.so$", path)[1] for path in glob.glob(PACKAGE + "/addend/libaddend_torch*.so")]
    minor = ".".join(torch["version"].split(".")[:2])
    if minor not in versions:
        fail("this kit was built for torch %s, and this Python has %s" % (", ".join(versions), torch["version"]))
    # The loader knows where the library is if a distribution has it elsewhere.
    torch["lib"] = torch["lib"] if os.path.exists(os.path.join(torch["lib"], "libtorch_cpu.so")) else ""
    return torch


class Part:
    """A process of the suite's runner: one part of the checks of a language, or those that failed before."""

    def __init__(self, language, name, arguments, environment):
        self.language = language
        self.name = name
        self.arguments = arguments
        self.environment = environment
        self.process = None
        self.result = None  # what it found; None before it ended well
        self.failed = []  # names of checks


class Run:
    """All parts, as many at once as there are to be testees."""

    def __init__(self, options, torch):
        self.options = options
        self.torch = torch
        self.work_folder = os.path.join(options.results, "parts")
        os.makedirs(self.work_folder, exist_ok=True)
        self.parts = [part for language in options.language for part in self._again(language)]
        self.parts += [part for language in options.language for part in self._all(language)]

    def _base(self, language):
        return "libtorch-%s-%s-%s" % (self.torch["version"], self.options.device.split(":")[0], language)

    def _path(self, name, kind):
        return os.path.join(self.options.results, "%s.%s" % (name, kind))

    def _again(self, language):
        """The cases that failed before, if they are few enough to be named."""
        try:
            with open(self._path(self._base(language), "failed"), encoding="utf-8") as file:
                names = file.read().split()
        except OSError:
            return
        if 0 < len(names) <= 1000:
            yield Part(language, language + "-again", [word for name in names for word in ("--only", name)], {})

    def _all(self, language):
        number = 3 * self.options.jobs
        for index in range(0, number, self.options.share.get(language, 1)):
            environment = {"TEST_SHARD_INDEX": str(index), "TEST_TOTAL_SHARDS": str(number)}
            yield Part(language, "%s-%d" % (language, index), [], environment)

    def work(self):
        """Until all have ended, or the time has."""
        begin = time.monotonic()
        waiting, running = list(self.parts), []
        while waiting or running:
            while waiting and len(running) < self.options.jobs:
                running.append(waiting.pop(0))
                self._start(running[-1])
            time.sleep(0.2)
            for part in [part for part in running if part.process.poll() is not None]:
                running.remove(part)
                self._collect(part)
            if time.monotonic() - begin > self.options.limit:
                say("the time is over; %d of %d parts have not ended" % (len(waiting) + len(running), len(self.parts)))
                return

    def _start(self, part):
        command = [sys.executable, "-B", "run.py", "--testee", TESTEES[part.language], "--device", self.options.device]
        for option in ("result", "json"):
            command += ["--" + option, os.path.join(self.work_folder, "%s.%s" % (part.name, option))]
        if self.options.device != "cpu":
            command.append("--compare-devices")
        folders = [os.path.join(PACKAGE, "addend"), self.torch["lib"], os.environ.get("LD_LIBRARY_PATH", "")]
        environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)), **part.environment)
        # Bazel's, where a test runs this.
        environment.pop("XML_OUTPUT_FILE", None)
        with open(os.path.join(self.work_folder, part.name + ".log"), "wb") as log:
            part.process = subprocess.Popen(
                command + part.arguments + self.options.suite,
                cwd=SUITE,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _collect(self, part):
        base = os.path.join(self.work_folder, part.name)
        try:
            with open(base + ".result", encoding="utf-8") as file:
                part.result = json.load(file)
            with open(base + ".json", encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        except (OSError, ValueError):
            with open(base + ".log", encoding="utf-8", errors="replace") as file:
                last = (file.read().strip().splitlines() or ["nothing"])[-1]
            say("%s could not run (exit code %s): %s" % (part.name, part.process.returncode, last))
            return
        part.failed = [line["name"] for line in lines if line.get("status") == "failed"]
        say("%s: %d passed, %d failed, %d skipped" % (part.name, *part.result["total"]))
        if "again" not in part.name:
            self._write(part.language)

    def _write(self, language):
        """The result of a language as far as it is known: its parts as one."""
        mine = [part for part in self.parts if part.language == language and "again" not in part.name]
        ended = [part for part in mine if part.result]
        complete = len(ended) == len(mine) and language not in self.options.share and not self.options.suite
        merged = {key: ended[0].result[key] for key in ("head", "date", "options")}
        merged["total"] = [sum(numbers) for numbers in zip(*(part.result["total"] for part in ended))]
        merged["subjects"] = {}
        for part in ended:
            for subject, numbers in part.result["subjects"].items():
                before = merged["subjects"].get(subject, [0] * len(numbers))
                merged["subjects"][subject] = [a + b for a, b in zip(before, numbers)]
        merged["subjects"] = dict(sorted(merged["subjects"].items()))
        base = self._base(language)
        with open(self._path(base, "json" if complete else "partial"), "w", encoding="utf-8") as file:
            json.dump(merged, file, indent=1, ensure_ascii=False)
            file.write("\n")
        if complete and os.path.exists(self._path(base, "partial")):
            os.remove(self._path(base, "partial"))
        with open(self._path(base, "failed"), "w", encoding="utf-8") as file:
            file.writelines(name + "\n" for part in ended for name in part.failed)

    def end(self):
        for part in self.parts:
            if part.process and part.process.poll() is None:
                os.killpg(part.process.pid, signal.SIGKILL)
                part.process.wait()

    def summary(self):
        """Says what was found; the exit code."""
        status = 0
        for language in self.options.language:
            parts = [part for part in self.parts if part.language == language and "again" not in part.name]
            ended = [part for part in parts if part.result]
            numbers = [sum(column) for column in zip(*(part.result["total"] for part in ended))] or [0, 0, 0]
            missing = "" if len(ended) == len(parts) else " (%d of %d parts)" % (len(ended), len(parts))
            say("%s: %d passed, %d failed, %d skipped%s" % (language, *numbers, missing))
            if numbers[1] or not numbers[0] or missing:
                status = 1
        return status


if __name__ == "__main__":
    sys.exit(main())
