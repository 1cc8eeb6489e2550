"""Reports of a run: a table of failures for people, JUnit's XML, JSON lines, and a result file."""

import collections
import json
import os
import platform
import subprocess
import time
import xml.etree.ElementTree as ElementTree


class Counts(collections.namedtuple("Counts", "passed failed skipped")):
    def __str__(self):
        return "%d passed, %d failed, %d skipped" % self


def count(outcomes):
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(bool(outcome.skipped) for outcome in outcomes)
    return Counts(len(outcomes) - failed - skipped, failed, skipped)


def head(hello, suite, threads, cpu=None):
    """Facts that a reader needs to compare two runs: pairs of key and value."""
    pairs = [
        ("suite", suite),
        ("language", hello.get("language", "")),
        ("library", hello.get("library_version", "")),
        ("ABI", hello.get("abi_version", "")),
        ("LibTorch", hello.get("libtorch_version", "")),
        ("device", hello.get("device", "")),
        ("threads", str(threads)),
        ("machine", machine()),
        ("processor", cpu or processor()),
    ]
    pairs += zip(("GPU", "driver"), gpu(hello.get("device", "")))
    for line in hello.get("about", "").split("\n"):
        key, _, value = line.partition("\t")
        if value:
            pairs.append((key, value))
    return pairs


def gpu(device, program="nvidia-smi"):
    """The name and the driver of "cuda:1", as far as the system tells."""
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return []
    command = [program, "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=" + (index or "0")]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ["unknown", "unknown"]
    return [word.strip() for word in told.strip().split(",", 1)]


# The machine and the processor that an emulator runs the testee on, such as "aarch64 neoverse-n1, emulated": the runner
# itself may run outside of it.
_EMULATED = "CONFORMANCE_EMULATED"


def machine():
    return os.environ.get(_EMULATED, "").partition(" ")[0] or platform.machine()


def processor():
    """Its name and the vector instructions that it has, as far as the system tells."""
    name, flags = os.environ.get(_EMULATED, "").partition(" ")[2], ""
    if name:
        return name
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name" and not name:
                    name = value.strip()
                elif key.strip() == "flags" and not flags:
                    known = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
                    flags = " ".join(flag for flag in known if flag in value.split())
    except OSError:
        pass
    return ", ".join(filter(None, (name or platform.processor(), flags)))


def human(outcomes, remarks, out, limit=50):
    """Failures one below the other, then what was skipped and why, then remarks."""
    failed = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failed[:limit]:
        out.write("FAILED %s\n" % outcome.name)
        for kind, message in outcome.failures[:4]:
            out.write("    %s: %s\n" % (kind, message.replace("\n", "\n    ")))
        if len(outcome.failures) > 4:
            out.write("    and %d more\n" % (len(outcome.failures) - 4))
    if len(failed) > limit:
        out.write("and %d more failures\n" % (len(failed) - limit))
    reasons = collections.Counter(outcome.skipped for outcome in outcomes if outcome.skipped)
    for reason, number in reasons.most_common():
        out.write("skipped %d: %s\n" % (number, reason))
    expected = sum(bool(outcome.failures) and outcome.expected for outcome in outcomes)
    if expected:
        out.write("%d failures were expected\n" % expected)
    for remark in remarks:
        out.write(remark + "\n")


def junit(outcomes, name, path):
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(outcomes)))
    suite.set("failures", str(sum(outcome.failed for outcome in outcomes)))
    suite.set("skipped", str(sum(bool(outcome.skipped) for outcome in outcomes)))
    for outcome in outcomes:
        level_and_family, _, rest = _split(outcome.name)
        case = ElementTree.SubElement(
            suite, "testcase", classname="%s.%s" % (name, level_and_family), name=rest, time="%.3f" % outcome.seconds
        )
        if outcome.skipped:
            ElementTree.SubElement(case, "skipped", message=outcome.skipped)
        elif outcome.failed:
            kind, message = outcome.failures[0]
            failure = ElementTree.SubElement(case, "failure", type=kind, message=_printable(message)[:300])
            failure.text = _printable("\n".join("%s: %s" % pair for pair in outcome.failures))
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def json_lines(outcomes, pairs, path):
    """The head, then a line for each check."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"head": dict(pairs)}, ensure_ascii=False) + "\n")
        for outcome in outcomes:
            line = {"name": outcome.name, "subject": outcome.subject, "status": status(outcome)}
            line["seconds"] = float("%.3g" % outcome.seconds)
            if outcome.ratio:
                line["error_over_tolerance"] = float("%.3g" % outcome.ratio)
            if outcome.failures:
                line["failures"] = [{"class": kind, "message": message} for kind, message in outcome.failures]
            if outcome.skipped:
                line["reason"] = outcome.skipped
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def result(outcomes, pairs, options):
    """The record of a run, for results/ and docs/conformance.md. Nobody writes it by hand."""
    by_subject = {}
    for outcome in outcomes:
        if outcome.subject:
            by_subject.setdefault(outcome.subject, []).append(outcome)
    return {
        "head": dict(pairs),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "options": options,
        "total": _numbers(outcomes),
        "subjects": {subject: _numbers(by_subject[subject]) for subject in sorted(by_subject)},
    }


def write_result(content, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")


def status(outcome):
    if outcome.skipped:
        return "skipped"
    if outcome.failures:
        return "expected failure" if outcome.expected else "failed"
    return "passed"


def _numbers(outcomes):
    return list(count(outcomes))


def _split(name):
    parts = name.split(".")
    return ".".join(parts[:2]), ".", ".".join(parts[2:]) or name


def _printable(text):
    """XML has no control characters."""
    return "".join(letter if letter >= " " or letter in "\n\t" else "?" for letter in text)
