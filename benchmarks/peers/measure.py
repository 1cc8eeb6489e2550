#!/usr/bin/env python3
"""Measures Addend and its peers on the same networks, inputs and threads; see README.md.

Each method first runs once in a process of its own, which tells whether it can, its memory and its errors. Those that
are fast enough then take turns in one process per network, and the medians of their times are compared.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import arithmetic  # noqa: E402
import processes  # noqa: E402
from processes import patience, say, spent  # noqa: E402

MOST_ROUNDS = 25
# Share of a network's time for rounds; a method that takes longer is run only once.
SLOW = 0.1


def parse_arguments():
    import methods
    import networks

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pydec", type=Path, metavar="FOLDER", help="a checkout of PyDec 0.3")
    parser.add_argument("--captum", type=Path, metavar="FOLDER", help="a checkout of Captum")
    parser.add_argument("--networks", nargs="+", choices=networks.ALL, default=networks.NAMES, metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods.METHODS, default=list(methods.METHODS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=20, help="for the rounds of each network (default: 20)")
    processes.add_limits(parser, seconds=120, memory=12)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.redraw:
        import page

        arguments.page.write_text(page.render(json.loads(arguments.redraw.read_text())), encoding="utf-8")
        return 0
    if arguments.worker:
        return processes.work(arguments, find)
    import checkouts
    import machine
    import methods
    import networks
    import page

    machine.make_folders(arguments.json, arguments.page)
    start = time.monotonic()
    results = {
        "machine": machine.facts(),
        "peers": {"PyDec": checkouts.version(arguments.pydec), "Captum": checkouts.version(arguments.captum)},
        "limits": {"seconds": arguments.limit, "memory_gib": arguments.memory},
        "networks": {},
    }
    names = list(dict.fromkeys([methods.PLAIN, *arguments.methods]))
    for network in arguments.networks:
        say(networks.title(network))
        results["networks"][network] = measure(arguments, network, names)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if arguments.page:
        arguments.page.write_text(page.render(results), encoding="utf-8")
    return 0


def measure(arguments, network, names):
    """The results of one network: what each method did alone, and its times in turns with the others."""
    import networks

    entries = {}
    for name in names:
        found = ask_worker(arguments, {"network": network, "alone": name}, patience(arguments.limit))
        if found is None:
            continue
        entries[name] = found
        say("  %-38s %s" % (name, told(entries[name])))
    fast = [
        name for name, entry in entries.items()
        if "reason" not in entry and entry["clock"]["median"] < SLOW * arguments.seconds
    ]
    count = arithmetic.rounds([entries[name]["clock"]["median"] for name in fast], arguments.seconds, MOST_ROUNDS)
    say("  %d rounds of %d methods" % (count, len(fast)))
    taken = ask_worker(arguments, {"network": network, "turns": fast, "rounds": count}, patience(arguments.seconds))
    for name in fast:
        if name in taken:
            entries[name].update(taken[name])
    if "reason" in taken:
        say("  the rounds failed: " + taken["reason"])
    return {"title": networks.title(network), "rows": len(networks.make(network).input), "methods": entries}


def ask_worker(arguments, job, seconds):
    folders = {"pydec": arguments.pydec, "captum": arguments.captum}
    return processes.ask(__file__, job, arguments, folders, seconds)


def find(job, arguments):
    import networks

    setting = networks.make(job["network"])
    if "alone" in job:
        return alone(setting, job["alone"], arguments)
    return in_turns(setting, job["turns"], job["rounds"], arguments)


def alone(setting, name, arguments):
    """One run of a method: whether it can, its time, its memory over that of the network, how many inputs it gave the
    network, its errors. None where it has no meaning."""
    import methods

    try:
        counted = count_inputs(setting.network)
        method = make_method(setting, name, arguments)
        if method is None:
            return None
        plain = methods.plain(setting, None).run
        for _ in range(3):
            plain()
        counted.clear()
        result, seconds, peak = processes.first_run(method.run, arguments.limit)
        found = {"peak_mib": peak, **{key: arithmetic.summary([value]) for key, value in seconds.items()}}
        if method.counted is not method.run:
            counted.clear()
            method.counted()
        found["model_runs"] = sum(counted)
        if method.answer is not None:
            found.update(errors(setting, method.answer(result)))
        return found
    except Exception as error:
        return {"reason": processes.reason_of(error, arguments.memory)}


def count_inputs(network):
    """A list of how many inputs each run of a network, or of a copy made from now on, has an output for."""
    counted = []
    network.register_forward_hook(lambda module, given, output: counted.append(len(output)))
    return counted


def errors(setting, answer):
    aims = setting.gaps if answer.aim == "difference" else setting.values
    rows = list(map(arithmetic.completeness_error, answer.contributions, aims))
    found = {
        "completeness_error": max(rows),
        "completeness_error_median": statistics.median(rows),
        "aim": answer.aim,
    }
    if answer.recovery is not None:
        found["recovery_error"] = arithmetic.recovery_error(answer.recovery, setting.output.double().flatten().tolist())
    return found


def in_turns(setting, names, count, arguments):
    """Times of methods that take turns, each round in another order."""
    runs = {name: make_method(setting, name, arguments).run for name in names}
    for run in runs.values():
        run()
    times = {name: {"clock": [], "processor": []} for name in names}
    for turn in range(count):
        for name in arithmetic.rotated(names, turn):
            seconds = spent(runs[name])
            for key, values in times[name].items():
                values.append(seconds[key])
    return {
        name: {key: arithmetic.summary(values) for key, values in measured.items()} for name, measured in times.items()
    }


def make_method(setting, name, arguments):
    import checkouts
    import methods

    peers = methods.Checkouts()
    if name.startswith("PyDec") and arguments.pydec:
        peers = methods.Checkouts(pydec=checkouts.pydec(arguments.pydec))
    elif name.startswith("Captum") and arguments.captum:
        peers = methods.Checkouts(captum=checkouts.captum(arguments.captum))
    return methods.METHODS[name](setting, peers)


def told(entry):
    if "reason" in entry:
        return entry["reason"]
    text = "%9.1f ms  %7.1f MiB" % (1e3 * entry["clock"]["median"], entry["peak_mib"])
    return text + ("  error %.1e" % entry["completeness_error"] if "completeness_error" in entry else "")


if __name__ == "__main__":
    sys.exit(main())
