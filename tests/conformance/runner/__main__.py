"""The command line of the runner; run.py starts it."""

import argparse
import multiprocessing
import os
import sys
import textwrap

from . import cases, engine, failures, report, testee, tolerances

SUITE = "1"
_EPILOG = """\
The testee is a program that speaks the protocol of PROTOCOL.md. With --testee
alone, its answers are judged: by the laws that a case names, and by numbers of
an independent implementation, with the tolerances of tolerances.json. With
--against, every request goes to both programs, and their answers have to be
the same, bit for bit.

examples:
  python3 run.py --testee "python3 testees/python/testee.py"
  python3 run.py --testee ./mine --against ./cpp_testee --cases 'models_*'
  python3 run.py --testee ./mine --failure-list mine.txt --level required

The last line of the output is "N passed, N failed, N skipped". The exit code
is 0 if nothing failed, 1 if something did, 2 if the suite could not run.
"""


def parser():
    result = argparse.ArgumentParser(
        prog="run.py",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the conformance suite of Addend.",
        epilog=textwrap.dedent(_EPILOG),
    )
    add = result.add_argument
    add("--testee", required=True, metavar="CMD", help="the program under test")
    add("--against", metavar="CMD", help="compare with this testee bit for bit")
    add("--compare-devices", action="store_true", help="compare --device with the CPU, by tolerances")
    add("--device", default="cpu", metavar="D", help="cpu (the default), cuda, cuda:1")
    add("--threads", type=int, default=1, metavar="N", help="of LibTorch; 1 by default: bits depend on it")
    add("--cases", action="append", metavar="GLOB", help="only case files of such names; may be repeated")
    add("--only", action="append", metavar="GLOB", help="only checks of such names; may be repeated")
    add("--level", default="all", choices=["required", "recommended", "all"], help="up to which level; all by default")
    add("--cases-dir", metavar="DIR", action="append", help="more folders with case files; may be repeated")
    add("--failure-list", metavar="FILE", help="failures that are expected")
    add("--fix", action="store_true", help="write the list that makes this run succeed")
    add("--tolerances", metavar="FILE", help="another tolerances.json")
    add("--junit", metavar="FILE", help="write JUnit's XML; $XML_OUTPUT_FILE by default")
    add("--json", metavar="FILE", help="write one line of JSON for each check")
    add("--result", metavar="FILE", help="write the counts by operator, for results/")
    add("--timeout", type=float, default=120, metavar="S", help="seconds for one request; 120 by default")
    add("--jobs", type=int, default=1, metavar="N", help="testees that run at once; 1 by default")
    add("--list", action="store_true", help="print the names of the checks and end")
    add("--partial", action="store_true", help="do not ask that every operator has a case")
    return result


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except (cases.CaseError, testee.TesteeError, OSError, ValueError) as error:
        print("run.py: %s" % error, file=sys.stderr)
        return 2


def _run(options):
    if options.fix and not options.failure_list:
        raise ValueError("--fix needs --failure-list: the file that it writes")
    families = _families(options)
    variants = engine.choose(families, options.level)
    if options.list:
        for variant in variants:
            for check in engine.checks.of(variant, bool(options.against)):
                print("%s.%s" % (variant.name, check))
        return 0
    partial = bool(options.cases or options.only or options.partial or options.level != "all")
    shard, shards = int(os.environ.get("TEST_SHARD_INDEX", 0)), int(os.environ.get("TEST_TOTAL_SHARDS", 1))
    if "TEST_SHARD_STATUS_FILE" in os.environ:
        open(os.environ["TEST_SHARD_STATUS_FILE"], "w", encoding="utf-8").close()
    jobs = [(options, families, shard + shards * job, shards * options.jobs, partial) for job in range(options.jobs)]
    if options.jobs == 1:
        worked = [_work(jobs[0])]
    else:
        with multiprocessing.Pool(options.jobs) as pool:
            worked = pool.map(_work, jobs)
    table = _tolerances(options)
    outcomes = []
    for found, usage, hello, remarks in worked:
        outcomes += found
        table.merge(usage)
    hello = worked[0][2]
    outcomes.sort(key=lambda outcome: outcome.name)
    remarks = [remark for work in worked for remark in work[3]]
    if not partial and shards == 1 and not options.against:
        remarks += list(table.remarks())
    if options.failure_list and not options.fix:
        _expect(outcomes, failures.load(options.failure_list), partial or shards > 1)
    pairs = report.head(hello, SUITE, options.threads)
    _write(outcomes, pairs, options)
    for key, value in pairs:
        print("%-10s %s" % (key, value))
    print("%d cases, %d variants" % (sum(len(family.cases) for family in families), len(variants)))
    report.human(outcomes, remarks, sys.stdout)
    counts = report.count(outcomes)
    if counts.passed == 0 and counts.failed == 0:
        print("nothing was checked")
        counts = counts._replace(failed=1)
    if options.fix:
        failures.write(options.failure_list, outcomes)
    print(counts)
    return 1 if counts.failed else 0


def _families(options):
    patterns = options.cases or ["*"]
    # laws/ holds the cases that a build writes from the tables by which rules are tested.
    folders = [os.path.join(cases.ROOT, "cases"), os.path.join(cases.ROOT, "laws")] + (options.cases_dir or [])
    families = cases.load(patterns, folders)
    if not families:
        raise ValueError("no case file is called like %s" % " or ".join(patterns))
    return families


def _tolerances(options):
    path = options.tolerances or os.path.join(cases.ROOT, "tolerances.json")
    return tolerances.load(path)


def _work(job):
    """One process's share: its outcomes, what tolerances met, hello, and remarks."""
    options, families, index, of, partial = job
    variants = engine.choose(families, options.level)[index::of]
    if options.only:
        comparing = bool(options.against)
        variants = [variant for variant in variants if _wanted(variant, options.only, comparing)]
    table = _tolerances(options)

    running = []
    try:
        running.append(testee.Testee(options.testee, options.device, options.threads, options.timeout))
        if options.against:
            running.append(testee.Testee(options.against, options.device, options.threads, options.timeout))
        elif options.compare_devices:
            running.append(testee.Testee(options.testee, "cpu", options.threads, options.timeout))
        run = engine.Engine(running[0], running[1] if len(running) > 1 else None, table, not options.compare_devices)
        outcomes = list(run.run(variants))
        if options.only:
            outcomes = [outcome for outcome in outcomes if _fits(outcome.name, options.only)]
        elif index == 0:
            ops = {case.get("op") for family in families for case in family.cases} - {None}
            outcomes += run.beyond_cases(None if partial else ops)
        remarks = []
        for one in running:
            wrong = one.close()
            if wrong:
                outcome = engine.Outcome("runner.the_testee_ends_well.%d" % index, check="bye")
                outcome.failures.append(("error", wrong))
                outcomes.append(outcome)
            if one.restarts:
                remarks.append("%s was started %d times" % (one.command, 1 + one.restarts))
        return outcomes, table.usage(), running[0].hello, remarks
    finally:
        for one in running:
            one.abandon()


def _fits(name, patterns):
    import fnmatch

    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _wanted(variant, patterns, comparing):
    return any(_fits("%s.%s" % (variant.name, check), patterns) for check in engine.checks.of(variant, comparing))


def _expect(outcomes, known, partial):
    """Marks failures that are expected; anything else about them is a failure."""
    for outcome in outcomes:
        kinds = known.expects(outcome.name)
        if not kinds or outcome.skipped:
            continue
        if not outcome.failures:
            outcome.failures.append(("unexpected success", "%s expects a failure" % known.path))
        elif outcome.failures[0][0] in kinds:
            outcome.expected = True
        else:
            outcome.failures.append(("text", "%s expects another class: %s" % (known.path, ", ".join(sorted(kinds)))))
    if partial:
        return
    for number, pattern in known.unmatched():
        outcome = engine.Outcome("runner.unmatched_line.%d" % number, check="failure_list")
        outcome.failures.append(("text", "%s:%d: no check is called %s" % (known.path, number, pattern)))
        outcomes.append(outcome)


def _write(outcomes, pairs, options):
    name = dict(pairs)["language"] + ("_against" if options.against else "")
    path = options.junit or os.environ.get("XML_OUTPUT_FILE")
    if path:
        report.junit(outcomes, name, path)
    if options.json:
        report.json_lines(outcomes, pairs, options.json)
    # Bazel keeps what a test leaves in this folder.
    kept = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    result = options.result or (os.path.join(kept, "result.json") if kept and not options.only else None)
    if result:
        asked = {"against": bool(options.against), "compare_devices": options.compare_devices, "level": options.level}
        report.write_result(report.result(outcomes, pairs, asked), result)


if __name__ == "__main__":
    sys.exit(main())
