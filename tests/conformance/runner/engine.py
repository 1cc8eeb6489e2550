"""Executes variants: keeps many checks open at once, asks their requests together, and judges the answers."""

import time
import traceback

from . import checks, devices, subjects, testee, unique
from .cases import selected
from .protocol import ProtocolError, Request, fields
from .tensor import LONG_NAMES

_OPEN = 24  # variants whose requests are sent together
# Devices on which each kernel gives the same bits each time. On GPUs convolutions and scattered sums need not, and
# testees of four languages have no common way to ask for it.
_REPEATABLE = ("cpu", "far")


class Outcome:
    """The outcome of one check."""

    def __init__(self, name, subject="", policy="", dtype="", check=""):
        self.name = name
        self.subject = subject
        self.policy = policy
        self.dtype = dtype
        self.check = check
        self.failures = []  # (class, message)
        self.skipped = ""  # why
        self.expected = False  # the failures are in the list of expected ones
        self.seconds = 0.0
        self.ratio = 0.0  # error over tolerance, the largest

    @property
    def counts(self):
        """Whether it may be in a list of expected failures."""
        return not self.name.startswith("runner.")

    @property
    def failed(self):
        return bool(self.failures) and not self.expected


class Engine:
    """Variants against one testee, or two whose answers are compared.

    Args:
        own: the testee under test.
        other: with what it is compared: None, or a testee.
        bits: whether they are compared bit for bit; else by tolerances.
    """

    def __init__(self, own, other, tolerances, bits=True):
        self.own = own
        self.other = other
        self.tolerances = tolerances
        self.bits = bits

    @property
    def comparing(self):
        return self.other is not None and self.bits

    def run(self, variants):
        """Yields the outcomes."""
        waiting = list(variants)[::-1]
        open_ones = []
        while waiting or open_ones:
            while waiting and len(open_ones) < _OPEN:
                variant = waiting.pop()
                reason = self.missing(variant)
                if reason:
                    yield from self._skipped(variant, reason)
                    continue
                execution = _Execution(variant, self)
                if execution.finished:
                    yield from execution.outcomes.values()
                else:
                    open_ones.append(execution)
            if not open_ones:
                continue
            self._ask(open_ones)
            for execution in open_ones:
                if execution.finished:
                    yield from execution.outcomes.values()
            open_ones = [execution for execution in open_ones if not execution.finished]

    def missing(self, variant):
        """Why a variant is skipped; "" if it is not."""
        dtypes = sorted(LONG_NAMES[dtype] for dtype in variant.dtypes())
        return self._lacking(list(variant.features()), dtypes)

    def missing_for(self, check):
        """Why a check of a variant that can be executed is skipped; "" if it is not."""
        return self._lacking([checks.NEEDED_FEATURE[check]] if check in checks.NEEDED_FEATURE else [])

    def _lacking(self, features, dtypes=()):
        for one in filter(None, (self.own, self.other)):
            lacks = [feature for feature in features if feature not in one.features | one.dtypes]
            lacks += [dtype for dtype in dtypes if dtype not in one.dtypes]
            if lacks:
                return "%s does not announce %s" % (one.hello.get("language", "the testee"), ", ".join(lacks))
        return ""

    def _skipped(self, variant, reason):
        for check in checks.of(variant, self.comparing):
            outcome = _outcome(variant, check)
            outcome.skipped = reason
            yield outcome

    def _ask(self, executions):
        requests, places = [], {}
        for execution in executions:
            for request in execution.wanted:
                place = (id(execution), request.key)
                if place not in places:
                    places[place] = len(requests)
                    requests.append(request)
        begin = time.monotonic()
        answers = testee.ask([one for one in (self.own, self.other) if one], requests)
        seconds = (time.monotonic() - begin) / max(len(requests), 1)
        for execution in executions:
            own = [(request, places[id(execution), request.key]) for request in execution.wanted]
            execution.feed([(request, [row[place] for row in answers]) for request, place in own], seconds)

    def beyond_cases(self, all_ops):
        """Checks of the run as a whole."""
        outcome = Outcome("runner.nothing_stays_alive", check="stats")
        if "lifecycle" in self.own.features:
            ((answer,),) = testee.ask([self.own], [Request("stats")])
            if answer.code != "OK" or answer.entries.get("live") != "0":
                outcome.failures.append(
                    ("text", "%s handles live: %s" % (answer.entries.get("live"), answer.message or answer.code))
                )
        else:
            outcome.skipped = "the testee does not announce lifecycle"
        yield outcome
        if all_ops is not None:
            yield self._every_operator(all_ops)

    def _every_operator(self, ops):
        outcome = Outcome("runner.every_operator_has_a_case", check="operators")
        if "operators" not in self.own.features:
            outcome.skipped = "the testee does not announce operators"
            return outcome
        ((answer,),) = testee.ask([self.own], [Request("operators")])
        try:
            rules = [name for name, _ in fields(answer.entries.get("operators", ""), 2)]
        except ProtocolError as error:
            rules = []
            outcome.failures.append(("protocol", str(error)))
        if answer.code != "OK" or not rules:
            outcome.failures.append(("text", "operators: %s: %s" % (answer.code, answer.message)))
        served = {name for op in ops for name in names_served(op)}
        lacking = [rule for rule in rules if rule not in served]
        if lacking:
            outcome.failures.append(("case", "%d operators have no case: %s" % (len(lacking), ", ".join(lacking))))
        return outcome


def names_served(op):
    """Under which names the rule of an operator may stand: with and without overload, and of the form out of place."""
    base, _, overload = op.partition(".")
    names = {op, base}
    if base.endswith("_") and not base.endswith("__"):
        names |= {base[:-1], base[:-1] + "." + overload}
    return names


def _outcome(variant, check):
    return Outcome(variant.name + "." + check, variant.subject, variant.policy_name, variant.dtype, check)


class _Execution:
    """One variant under way: its checks, each waiting for answers."""

    def __init__(self, variant, engine):
        self.variant = variant
        self.engine = engine
        self.outcomes = {}
        self.wanted = []
        self._answers = {}  # by the request's key
        self._running = {}  # check -> (generator, judge, requests)
        self._weighings = {}  # by the request's key: (generator, requests)
        self._verdicts = {}  # by the request's key
        try:
            self.subject = subjects.of(variant)
        except Exception:  # pylint: disable=broad-except
            outcome = _outcome(variant, "case")
            outcome.failures.append(("case", traceback.format_exc(limit=-2)))
            self.outcomes["case"] = outcome
            return
        for name, check in checks.of(variant, engine.comparing).items():
            self.outcomes[name] = _outcome(variant, name)
            reason = engine.missing_for(name)
            if reason:
                self.outcomes[name].skipped = reason
                continue
            device = engine.own.device.partition(":")[0]
            judge = checks.Judge(variant, name, engine.tolerances, self._muted(name), device == "cpu", device in _REPEATABLE)
            self._step(name, check(self.subject, judge), judge, None)
        self._collect()

    @property
    def finished(self):
        return not self._running

    def _muted(self, check):
        """Whether another testee's answers judge numbers. Of results that are not unique two devices' say little: there
        the laws do."""
        ambiguous = check in checks.LAWS and unique.undetermined(self.variant.case.get("op", ""))
        return self.engine.other is not None and (self.engine.bits or not ambiguous)

    def feed(self, exchanged, seconds):
        for request, answers in exchanged:
            self._answers[request.key] = answers
        for name, (generator, judge, requests) in list(self._running.items()):
            verdicts = [self._verdict(request) for request in requests]
            if None in verdicts:
                continue
            self.outcomes[name].seconds += seconds * len(requests)
            self.outcomes[name].skipped = next((verdict.skipped for verdict in verdicts if verdict.skipped), "")
            if self.outcomes[name].skipped:
                self._running.pop(name)
                continue
            for request, verdict in zip(requests, verdicts):
                for kind, message in verdict.failures:
                    judge.say(kind, "%s: %s" % (request.verb, message))
            self._step(name, generator, judge, [verdict.answer for verdict in verdicts])
        self._collect()

    def _verdict(self, request):
        """The verdict on the answers to a request; None while more has to be asked for it."""
        key = request.key
        if key not in self._verdicts:
            answers = self._answers[key]
            try:
                verdict = self._weighed(request, answers)
            except ProtocolError as error:
                verdict = devices.Verdict(answers[0], [("protocol", str(error))])
            except Exception:  # pylint: disable=broad-except
                verdict = devices.Verdict(answers[0], [("case", traceback.format_exc(limit=-3))])
            if verdict is None:
                return None
            self._verdicts[key] = verdict
        return self._verdicts[key]

    def _weighed(self, request, answers):
        key = request.key
        if self.engine.comparing:
            return devices.Verdict(answers[0], self._different_bits(request, *answers))
        if self.engine.other is None and self.engine.own.device == "cpu":
            return devices.Verdict(answers[0])
        try:
            if key not in self._weighings:
                weighing = devices.weigh(self.variant, self.subject, request, answers, self.engine.tolerances)
                self._weighings[key] = weighing, next(weighing)
            weighing, requests = self._weighings[key]
            while all(wanted.key in self._answers for wanted in requests):
                requests = weighing.send([self._answers[wanted.key] for wanted in requests])
                self._weighings[key] = weighing, requests
            return None
        except StopIteration as end:
            return end.value

    def _different_bits(self, request, got, expected):
        # The results of an operator have no names in most languages.
        named = request.entries.get("inner_verb", request.verb) in ("run", "decompose")
        found = checks.differences(got, expected, named=named, numbers=self.variant.repeatable)
        return [("bits", message) for message in found]

    def _step(self, name, generator, judge, answers):
        try:
            requests = next(generator) if answers is None else generator.send(answers)
            self._running[name] = (generator, judge, requests)
            return
        except StopIteration:
            pass
        except ProtocolError as error:
            judge.say("protocol", str(error))
        except Exception:  # pylint: disable=broad-except
            judge.say("case", traceback.format_exc(limit=-3))
        self._running.pop(name, None)
        outcome = self.outcomes[name]
        outcome.failures = _distinct(judge.failures)
        # pylint: disable=protected-access
        outcome.ratio = max([allowance.worst for allowance in judge._allowances.values()], default=0.0)

    def _collect(self):
        self.wanted = []
        seen = set()
        awaited = [requests for _, _, requests in self._running.values()]
        for requests in awaited + [requests for _, requests in self._weighings.values()]:
            for request in requests:
                if request.key not in seen and request.key not in self._answers:
                    seen.add(request.key)
                    self.wanted.append(request)
        if self._running and not self.wanted:
            self.feed([], 0.0)  # All of it has been asked before.


def _distinct(failures):
    result = []
    for failure in failures:
        if failure not in result:
            result.append(failure)
    return result


def choose(families, level):
    """The variants of a level, in their order."""
    return [variant for family in families for variant in family.variants() if selected(variant, level)]
