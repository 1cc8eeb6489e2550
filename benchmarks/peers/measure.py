#!/usr/bin/env python3
"""Measures Addend and its peers on the same networks, inputs and threads; see README.md.

Each method first runs once in a process of its own, which tells whether it can, its memory and its errors. Those that
are fast enough then take turns in one process per network, and the medians of their times are compared.
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import arithmetic  # noqa: E402

MOST_ROUNDS = 25
# What a worker may take beside the method's own time: imports on a busy machine take minutes.
PREPARATION = 600
# What takes longer than this share of a network's time for rounds has run once, and that has to do.
SLOW = 0.1
GIB = 2**30


def parse_arguments():
    import methods
    import networks

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pydec", type=Path, metavar="FOLDER", help="a checkout of PyDec 0.3")
    parser.add_argument("--captum", type=Path, metavar="FOLDER", help="a checkout of Captum")
    parser.add_argument("--networks", nargs="+", choices=networks.NAMES, default=networks.NAMES, metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods.METHODS, default=list(methods.METHODS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=20, help="for the rounds of each network (default: 20)")
    parser.add_argument("--limit", type=float, default=120, help="seconds of the processor for one run (default: 120)")
    parser.add_argument("--memory", type=float, default=12, help="GiB that a method may use (default: 12)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where a page with plots goes")
    parser.add_argument("--redraw", type=Path, metavar="FILE", help="only draws the page of these results")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.redraw:
        import page

        arguments.page.write_text(page.render(json.loads(arguments.redraw.read_text())), encoding="utf-8")
        return 0
    if arguments.worker:
        return work(arguments)
    import machine
    import methods
    import networks
    import page

    machine.make_folders(arguments.json, arguments.page)
    start = time.monotonic()
    results = {
        "machine": machine.facts(),
        "peers": {name: version_of(name, folder) for name, folder in
                  (("PyDec", arguments.pydec), ("Captum", arguments.captum))},
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
        found = ask_worker(arguments, {"network": network, "alone": name}, PREPARATION + 10 * arguments.limit)
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
    taken = ask_worker(
        arguments, {"network": network, "turns": fast, "rounds": count}, PREPARATION + 10 * arguments.seconds
    )
    for name in fast:
        if name in taken:
            entries[name].update(taken[name])
    if "reason" in taken:
        say("  the rounds failed: " + taken["reason"])
    return {"title": networks.title(network), "methods": entries}


def ask_worker(arguments, job, limit):
    """What a process of its own finds out; a reason where it cannot."""
    command = [sys.executable, __file__, "--worker", json.dumps(job), "--limit", str(arguments.limit),
               "--memory", str(arguments.memory)]
    for option, folder in (("--pydec", arguments.pydec), ("--captum", arguments.captum)):
        command += [option, str(folder)] if folder else []
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"reason": "not done after %g s" % limit}
    if done.returncode == -signal.SIGPROF:
        return {"reason": "takes more than %g s" % arguments.limit}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["killed by signal %d" % -done.returncode]
        return {"reason": arithmetic.one_line(last[0])}
    return json.loads(done.stdout.splitlines()[-1])


def work(arguments):
    """In a process of its own: prints what it finds out as one line of JSON."""
    warnings.simplefilter("ignore")
    limit = int(arguments.memory * GIB)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    job = json.loads(arguments.worker)
    import networks

    setting = networks.make(job["network"])
    if "alone" in job:
        found = alone(setting, job["alone"], arguments)
    else:
        found = in_turns(setting, job["turns"], job["rounds"], arguments)
    print(json.dumps(found))
    return 0


def alone(setting, name, arguments):
    """One run of a method: whether it can, its time, its memory over that of the network, its errors. None where it has
    no meaning."""
    import methods

    try:
        method = make_method(setting, name, arguments)
        if method is None:
            return None
        run, answer = method
        plain, _ = methods.plain(setting, None)
        for _ in range(3):
            plain()
        held = reset_peak()
        # Ends the process where the method takes too long; others that use the machine do not count.
        signal.setitimer(signal.ITIMER_PROF, arguments.limit)
        seconds = spent(run)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found = {"peak_mib": (peak_memory() - held) / 2**20, **{key: arithmetic.summary([value])
                                                                for key, value in seconds.items() if key != "result"}}
        if answer is not None:
            found.update(errors(setting, answer(seconds["result"])))
        return found
    except (Exception, AssertionError) as error:
        if is_out_of_memory(error):
            return {"reason": "needs more than %g GiB" % arguments.memory}
        kind = "" if isinstance(error, methods.Missing) else type(error).__name__ + ": "
        return {"reason": arithmetic.one_line(kind + " ".join(str(error).split()))}


def errors(setting, answer):
    aim = setting.gap if answer.aim == "difference" else setting.value
    found = {
        "completeness_error": arithmetic.completeness_error(answer.contributions, aim),
        "aim": answer.aim,
    }
    if answer.recovery is not None:
        found["recovery_error"] = arithmetic.recovery_error(answer.recovery, setting.output[0].double().tolist())
    return found


def in_turns(setting, names, count, arguments):
    """Times of methods that take turns, each round in another order."""
    runs = {name: make_method(setting, name, arguments)[0] for name in names}
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


def spent(run):
    """What a run gives, and its seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    result = run()
    return {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock, "result": result}


def reset_peak():
    """Lets the peak begin at what the process holds now, which it returns, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_memory():
    return _status("VmHWM")


def _status(key):
    # Not getrusage(): its peak begins with that of the process that started this one.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status does not say " + key)


def is_out_of_memory(error):
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error)


def version_of(name, folder):
    """What a checkout says about itself; None without one."""
    if folder is None:
        return None
    for file in (folder / name.lower() / "__init__.py", folder / "setup.py"):
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        found = re.search(r"""^(?:__version__|VERSION)\s*=\s*["']([^"']+)["']""", text, re.MULTILINE)
        if found:
            return found.group(1)
    return folder.name


def told(entry):
    if "reason" in entry:
        return entry["reason"]
    text = "%9.1f ms  %7.1f MiB" % (1e3 * entry["clock"]["median"], entry["peak_mib"])
    return text + ("  error %.1e" % entry["completeness_error"] if "completeness_error" in entry else "")


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
