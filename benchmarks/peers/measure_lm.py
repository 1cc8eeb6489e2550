#!/usr/bin/env python3
"""Measures attributions of a language model by Addend and its peers, for prompts and generated texts of several lengths;
see README.md.

Each method runs in a process of its own for each length of a text. Its time is compared with that of a plain run in the same process.
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
from processes import say  # noqa: E402

PEERS = {"captum": "Captum", "inseq": "Inseq", "lxt": "LXT"}
# A run is repeated while all of them take less than this, so often at most.
AGAIN_SECONDS = 2
MOST_RUNS = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, name in PEERS.items():
        parser.add_argument("--" + option, type=Path, metavar="FOLDER", help="a checkout of " + name)
    parser.add_argument("--prompts", nargs="+", type=int, default=[128, 512, 1024], metavar="TOKENS")
    parser.add_argument("--generated", nargs="+", type=int, default=[1, 16, 64], metavar="TOKENS")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="those whose names begin so (default: all)")
    processes.add_limits(parser, seconds=60, memory=12)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.redraw:
        import page_lm

        arguments.page.write_text(page_lm.render(json.loads(arguments.redraw.read_text())), encoding="utf-8")
        return 0
    if arguments.worker:
        return processes.work(arguments, find)
    import checkouts
    import lm_methods
    import machine
    import page_lm
    import transformers

    machine.make_folders(arguments.json, arguments.page)
    start = time.monotonic()
    results = {
        "machine": {**machine.facts(), "transformers": transformers.__version__},
        "peers": {name: checkouts.version(getattr(arguments, option)) for option, name in PEERS.items()},
        "limits": {"seconds": arguments.limit, "memory_gib": arguments.memory},
        "model": lm_methods.SHAPE,
        "prompts": sorted(arguments.prompts),
        "generated": sorted(arguments.generated),
        "questions": {},
    }
    for question in (lm_methods.EACH, lm_methods.TOGETHER):
        say("%s:" % question)
        results["questions"][question] = found = {}
        for name, method in lm_methods.METHODS.items():
            if question in method.questions and is_wanted(name, arguments.methods):
                found[name] = measure(arguments, question, name)
                write(arguments, results)
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    write(arguments, results)
    if arguments.page:
        arguments.page.write_text(page_lm.render(results), encoding="utf-8")
    return 0


def is_wanted(name, beginnings):
    return beginnings is None or any(name.startswith(own) for own in beginnings)


def write(arguments, results):
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure(arguments, question, name):
    """The results of a method for each length, by "prompt+generated"."""
    lengths = [
        (prompt, generated) for prompt in sorted(arguments.prompts) for generated in sorted(arguments.generated)
        if question == "each" or generated > 1  # of one token both ask the same
    ]
    job = {"method": name, "question": question, "lengths": lengths}
    folders = {option: getattr(arguments, option) for option in PEERS}
    seconds = processes.patience(arguments.limit) * (len(lengths) + 1)
    found = processes.ask(__file__, job, arguments, folders, seconds)
    if "reason" in found:
        found = {key_of(length): found for length in lengths}
    for key, entry in found.items():
        say("  %-34s %10s  %s" % (name, key, told(entry)))
    return found


def key_of(length):
    return "%d+%d" % length


def find(job, arguments):
    """The results of a method for each length; no length is tried that is longer than one which took too long."""
    import lm_methods  # noqa: F401  # once, for all processes that are copied of this one

    found = {}
    slow = []
    for length in map(tuple, job["lengths"]):
        shorter = arithmetic.within(slow, length)
        if shorter:
            reason = "not run: %d + %d tokens took more than %g s" % (*shorter, arguments.limit)
            found[key_of(length)] = {"reason": reason, "too_slow": True}
            continue
        entry = processes.in_child(lambda: find_one(job, length, arguments), arguments.limit)
        found[key_of(length)] = entry
        if entry.get("too_slow"):
            slow.append(length)
    return found


def find_one(job, length, arguments):
    """One run of a method or more: its times, those of plain runs, its memory over that of the model, its error."""
    import lm_methods

    text = lm_methods.Text(*length)
    plain = repeated(lm_methods.plain(text, job["question"], None)[0])
    counted = count_sequences(text.model.model)
    try:
        peers = lm_methods.Peers({option: getattr(arguments, option) for option in PEERS})
        run, answer = lm_methods.METHODS[job["method"]].make(text, job["question"], peers)
        counted.clear()
        result, seconds, peak = processes.first_run(run, arguments.limit)
        sequences = sum(counted)
        times = repeated(run, seconds)
        found = {
            **summaries(times),
            "plain": summaries(plain),
            "forwards": {key: statistics.median(times[key]) / statistics.median(plain[key]) for key in times},
            "model_runs": sequences,
            "peak_mib": peak,
        }
        if answer is not None:
            found.update(errors(text, job["question"], answer(result)))
        return found
    except Exception as error:
        return {"reason": processes.reason_of(error, arguments.memory)}


def repeated(run, first=None):
    """Times of runs, which are repeated while they are fast."""
    times = {"clock": [], "processor": []}
    own = first or spent_seconds(run)
    while True:
        for key, values in times.items():
            values.append(own[key])
        if len(times["clock"]) == MOST_RUNS or sum(times["clock"]) + times["clock"][-1] > AGAIN_SECONDS:
            return times
        own = spent_seconds(run)


def spent_seconds(run):
    found = processes.spent(run)
    return {key: found[key] for key in ("clock", "processor")}


def summaries(times):
    return {key: arithmetic.summary(values) for key, values in times.items()}


def count_sequences(decoder):
    """A list of how many sequences each run of a decoder is given from now on."""
    counted = []

    def count(module, positional, named):
        given = [one for one in (*positional, named.get("input_ids"), named.get("inputs_embeds")) if one is not None]
        counted.append(len(given[0]))

    decoder.register_forward_pre_hook(count, with_kwargs=True)
    return counted


def errors(text, question, answer):
    aims = text.aims[answer.aim][0].double()
    aims = aims.tolist() if question == "each" else [float(aims.sum())]
    return {"sum_error": arithmetic.sum_error(answer.sums, aims), "aim": answer.aim, **answer.beside}


def told(entry):
    if "reason" in entry:
        return entry["reason"]
    text = "%8.2f s  %8.1f forwards  %6d runs  %7.1f MiB" % (
        entry["clock"]["median"], entry["forwards"]["clock"], entry["model_runs"], entry["peak_mib"]
    )
    return text + ("  error %.1e" % entry["sum_error"] if "sum_error" in entry else "")


if __name__ == "__main__":
    sys.exit(main())
