"""A simulation of jobs on more machines than one: efficiency, traffic at the scheduler and at the storage, time to recover.

usage: simulate.py [--receipts FOLDER ...] [--set NAME=VALUE ...] [--runs N] [--seed N] [--json FILE]
       simulate.py --measure-scheduler | --measure-storage FOLDER

--receipts: `plan.out/shards` of jobs that ran; rows a second, the spread of shards and the sizes of files are taken from there.
--set: another number for a parameter (those of PARAMETERS). --measure-scheduler times empty tasks on a local cluster of Dask,
--measure-storage flushes and renames in a folder; both print numbers for --set.

Note [Simulated jobs]
Events are exact and everything else is a model. A driver submits shards to a scheduler, a server that takes the same time for
each event: a shard is submitted, assigned, reported. A worker holds at most two shards, computes one at a time, and does what
a worker of core/jobs does: it lists the folder of results (again when a hundred times as long has passed as that took), reads its
rows, computes, encodes, writes result and receipt, and renames them. All workers share one storage: each operation takes its latency, operations queue up, bytes flow at equal rates.
Commits are by content, so that a shard may be computed twice: by an idle worker beside a slow one. A worker that dies loses
what it held; a scheduler that dies takes all workers with it, and finds what is committed by one listing. Random numbers
depend on the seed and on whom they are for, not on the order of events, so that scenarios can be compared.
"""

import argparse
import collections
import datetime
import heapq
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy

INFINITY = math.inf
OPERATIONS_OF_A_COMMIT = 8  # result and receipt: create, write with flush, rename; the folder is flushed; the receipt is read
OPERATIONS_OF_A_START = 2  # the plan, the model

# Seconds a row of each of 98 shards of 4,096 rows over their mean, as receipts tell them: two workers on two cores that other
# work kept busy.
SPREAD = (
    0.42, 0.52, 0.64, 0.79, 0.79, 0.80, 0.80, 0.80, 0.81, 0.81, 0.82, 0.82, 0.83, 0.83, 0.83, 0.83, 0.83, 0.83, 0.84, 0.84,
    0.84, 0.84, 0.84, 0.84, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.86, 0.86, 0.87, 0.87, 0.87, 0.87, 0.87,
    0.87, 0.87, 0.87, 0.87, 0.88, 0.88, 0.88, 0.88, 0.88, 0.88, 0.88, 0.88, 0.89, 0.90, 0.90, 0.90, 0.90, 0.91, 0.91, 0.92,
    0.92, 0.94, 0.94, 0.94, 0.95, 0.95, 0.96, 0.96, 0.97, 0.97, 0.98, 0.98, 0.98, 0.99, 0.99, 1.00, 1.02, 1.03, 1.03, 1.04,
    1.09, 1.12, 1.16, 1.17, 1.24, 1.26, 1.28, 1.30, 1.36, 1.41, 1.62, 1.62, 1.64, 1.67, 1.75, 1.92, 1.97, 3.57,
)

README = "benchmarks/README.md, Data sets, 2026-11-26, quiet"
JOB = "a job of measure.py, 400,000 rows in 98 shards, 2026-11-26, busy machine"
ASSUMED = "assumption"
FILES = "assumption, of the order that Amazon EFS states for provisioned throughput"

# name: value, what it is, where it is from.
PARAMETERS = {
    "rows": (10**9, "rows of the data set", "the question"),
    "batch": (256, "rows that are attributed together", "the default of addend job plan"),
    "rows_per_second": (30500.0, "of one worker", README),
    "spread": (SPREAD, "of a shard's seconds a row, over their mean", JOB),
    "spread_rows": (4096, "rows of the shards that the spread was measured on; longer shards are means of several draws", JOB),
    "start_seconds": (0.6, "until a worker's process has read its model", JOB),
    "shard_seconds": (0.15, "of a shard beside its rows: its receipt, digests",
                      README + ": (38.5 - 32.8) s for 38 shards more; " + JOB + ": (31.7 - 16.3) s for 98"),
    "row_bytes": (128, "read for a row", "32 float32"),
    "result_row_bytes": (353, "written for a row", README),
    "receipt_bytes": (334000, "of a receipt", JOB),
    "model_bytes": (308000, "of the model's file", JOB),
    "plan_bytes": (3500, "of a plan beside its shards", JOB),
    "plan_shard_bytes": (71, "of a plan for each shard", JOB),
    "plan_row_seconds": (0.54e-6, "to make a plan: reading rows, digests; the processor's time",
                         "plans of 0.4 and 4 million rows"),
    "merge_row_seconds": (4.34e-6, "to merge; reads results twice, writes them once", README + ", two lines"),
    "merge_shard_seconds": (0.079, "to merge, for each shard: its receipt", README + ", two lines"),
    "event_seconds": (0.00055, "of the scheduler for one of three events of a shard",
                      "Dask 2022.12.1, 5,000 empty tasks, client and two workers on the same two busy cores: 1.65 ms each"),
    "message_seconds": (0.0005, "from the scheduler to a worker, and back", ASSUMED),
    "storage_latency": (0.0027, "of an operation", FILES),
    "storage_operations": (25000.0, "a second, of all workers", FILES),
    "storage_bandwidth": (3e9, "bytes a second, of all workers", FILES),
    "client_bandwidth": (0.5e9, "bytes a second, of one worker", FILES),
    "names_in_one_operation": (1000, "of a listing", ASSUMED),
    "name_seconds": (0.6e-6, "of a worker, for each name in a listing", "--measure-storage, a local disk"),
    "in_flight": (2, "shards that a worker holds", "the question"),
    "list_again": (100.0, "times as long as a listing took, until a worker lists the folder of results again; 0: every attempt does",
                   "core/jobs/job_runner.cc"),
    "process_for_each_shard": (False, "whether each shard starts a process, as under xargs -n 1 or Slurm", "the scenario"),
    "speculates": (False, "whether idle workers attempt shards again that take long", "the scenario"),
    "speculates_after": (1.5, "of the usual time of a shard", ASSUMED),
    "slow_workers": (0.0, "share of workers that are slow as a whole", "the scenario"),
    "slow_worker_factor": (2.0, "how slow", ASSUMED),
    "slow_shards": (0.0, "share of attempts that are slow", "the scenario"),
    "slow_shard_factor": (3.0, "how slow", ASSUMED),
    "worker_lives": (INFINITY, "mean seconds until a worker dies", "the scenario"),
    "detect_seconds": (10.0, "until the scheduler knows that a worker died", ASSUMED),
    "restart_seconds": (30.0, "until a machine is there for a dead worker or scheduler", ASSUMED),
}
TROUBLE = {"speculates": True, "slow_workers": 0.05, "slow_shards": 0.01, "worker_lives": 7200.0}


class Clock:
    """Things to do, in the order of their times; of the same time, in the order in which they were asked for."""

    def __init__(self):
        self.now = 0.0
        self._heap = []
        self._count = itertools.count()

    def at(self, moment, action, *arguments):
        heapq.heappush(self._heap, (moment, next(self._count), action, arguments))

    def run(self, done=lambda: False):
        while self._heap and not done():
            self.now, _, action, arguments = heapq.heappop(self._heap)
            action(*arguments)


class Meter:
    """An amount by seconds of the clock."""

    def __init__(self):
        self.total = 0.0
        self.seconds = collections.defaultdict(float)

    def add(self, begin, end, amount):
        self.total += amount
        first, last = int(begin), int(end)
        if first == last:
            self.seconds[first] += amount
            return
        for second in range(first, last + 1):
            self.seconds[second] += amount * (min(end, second + 1) - max(begin, second)) / (end - begin)

    def peak(self):
        return max(self.seconds.values(), default=0.0)


class Server:
    """Serves one after the other, each for the same time: the scheduler, and operations at the storage."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds = clock, seconds
        self.free = 0.0
        self.meter = Meter()

    def serve(self, count=1):
        """Gives when these are done."""
        begin = max(self.clock.now, self.free)
        self.free = begin + count * self.seconds
        self.meter.add(begin, self.free, count)
        return self.free


class Storage:
    """Operations queue up; bytes flow at equal rates, as fast as all together and each alone may."""

    def __init__(self, clock, latency, operations, bandwidth, client_bandwidth):
        self.clock, self.latency = clock, latency
        self.bandwidth, self.client_bandwidth = bandwidth, client_bandwidth
        self.server = Server(clock, 1 / operations)
        self.meter = Meter()
        self._flows = []  # by how many bytes each flow had when this one ends
        self._given = 0.0  # bytes to each flow so far
        self._then = 0.0
        self._active = 0
        self._version = 0
        self._count = itertools.count()

    def transfer(self, operations, size, action):
        """Calls `action` when it is done. Gives what cancel() takes."""
        flow = {"action": action, "size": size, "state": "waiting"}
        ready = max(self.server.serve(operations), self.clock.now + operations * self.latency)
        self.clock.at(ready, self._begin, flow)
        return flow

    def cancel(self, flow):
        flowed = flow["state"] == "flowing"
        flow["state"] = "cancelled"
        if flowed:
            self._advance()
            self._active -= 1
            self._wake_later()

    def _rate(self):
        return min(self.client_bandwidth, self.bandwidth / self._active)

    def _begin(self, flow):
        if flow["state"] == "cancelled":
            return
        if flow["size"] == 0 or math.isinf(min(self.bandwidth, self.client_bandwidth)):
            self.meter.add(self.clock.now, self.clock.now, flow["size"])
            flow["state"] = "done"
            flow["action"]()
            return
        self._advance()
        flow["state"] = "flowing"
        self._active += 1
        heapq.heappush(self._flows, (self._given + flow["size"], next(self._count), flow))
        self._wake_later()

    def _advance(self):
        if self._active:
            each = self._rate() * (self.clock.now - self._then)
            self._given += each
            self.meter.add(self._then, self.clock.now, each * self._active)
        self._then = self.clock.now

    def _wake_later(self):
        self._version += 1
        while self._flows and self._flows[0][2]["state"] == "cancelled":
            heapq.heappop(self._flows)
        if self._flows:
            left = max(0.0, self._flows[0][0] - self._given)
            self.clock.at(self.clock.now + left / self._rate(), self._wake, self._version)

    def _wake(self, version):
        if version != self._version:
            return
        self._advance()
        end, _, flow = heapq.heappop(self._flows)
        self._given = max(self._given, end)
        self._active -= 1
        flow["state"] = "done"
        self._wake_later()
        flow["action"]()


class Worker:
    def __init__(self, number, slow, lives):
        self.number, self.slow, self.lives = number, slow, lives
        self.life = 0  # which one: what belongs to an earlier one is not done
        self.known = None  # the life that the scheduler was told of
        self.shards = []  # that it was assigned and did not report, as the scheduler sees it
        self.waiting = collections.deque()  # of these, what it did not begin
        self.idle = False
        self.steps = None
        self.flow = None
        self.holds = None  # (shard, begin of computation, its seconds) until the shard is committed
        self.computes = False
        self.listed = 0  # how many commits its last listing showed
        self.list_again = 0.0  # when


class Job:
    """One job from its first worker's start to the last report. The parameters are those of PARAMETERS."""

    def __init__(self, workers, seconds_of_shards, seed=0, scheduler_dies=(), **others):
        unknown = sorted(set(others) - set(PARAMETERS))
        if unknown:
            raise ValueError("no such parameter: " + ", ".join(unknown))
        self.p = argparse.Namespace(**{**{name: entry[0] for name, entry in PARAMETERS.items()}, **others})
        p, self.seed = self.p, seed
        batches = max(1, round(seconds_of_shards * p.rows_per_second / p.batch))
        self.shard_rows = batches * p.batch
        self.count = -(-p.rows // self.shard_rows)
        sizes = numpy.full(self.count, self.shard_rows, dtype=float)
        sizes[-1] = p.rows - self.shard_rows * (self.count - 1)
        self.sizes = sizes.tolist()
        self.seconds = (sizes / p.rows_per_second * self._relative_times()).tolist()  # of each shard
        self.ideal = sum(self.seconds)
        self.usual = sum(self.seconds) / self.count + p.shard_seconds
        self.attempts = [0] * self.count
        self.drawn = []  # by attempt and shard: whether it is slow
        self.commits = {}  # shard: how many attempts committed it
        self.order = {}  # shard: how many were committed before it
        self.clock = Clock()
        self.storage = Storage(self.clock, p.storage_latency, p.storage_operations, p.storage_bandwidth, p.client_bandwidth)
        self.workers = self._make_workers(workers)
        self.plan_bytes = p.plan_bytes + p.plan_shard_bytes * self.count
        self.scheduler = Server(self.clock, p.event_seconds)
        self.generation = 0  # of the scheduler
        self.finish = None
        self.computed = 0.0  # rows, with those that were in vain
        self.worker_deaths = 0
        self.recoveries = []
        self._speed = 0.0  # seconds of computation in a second, of all workers
        self._since = 0.0
        self._in_hand = 0.0  # seconds of computation that were done; after a scheduler's death, that were not lost
        self._start_scheduler(range(self.count))
        for worker in self.workers:
            self._start(worker)
        for moment in scheduler_dies:
            self.clock.at(moment, self._scheduler_dies)

    def run(self):
        self.clock.run(lambda: self.finish is not None)
        for worker in self.workers:
            self._stop_computing(worker)
        return self

    # Random numbers.

    def _random(self, *whom):
        # RandomState gives equal numbers with every version of NumPy, which newer generators do not promise.
        return numpy.random.RandomState([self.seed, *whom])

    def _relative_times(self):
        """The relative time of each shard: a mean of as many measured shards as fit into it."""
        spread = numpy.asarray(self.p.spread, dtype=float)
        spread = spread / spread.mean()
        fit = max(1, round(self.shard_rows / self.p.spread_rows))
        random = self._random(1)
        if fit <= 30:
            return random.choice(spread, (self.count, fit)).mean(axis=1)
        return numpy.maximum(spread.min(), random.normal(1, spread.std() / math.sqrt(fit), self.count))

    def _make_workers(self, count):
        # The first of these are slow, whatever the share: more of them are the same and others.
        order = self._random(2).permutation(count)
        slow = {int(number) for number in order[:round(self.p.slow_workers * count)]}
        return [Worker(number, self.p.slow_worker_factor if number in slow else 1.0, self._random(3, number))
                for number in range(count)]

    def _slowness(self, worker, shard):
        attempt = self.attempts[shard]
        self.attempts[shard] += 1
        if not self.p.slow_shards:
            return worker.slow
        while len(self.drawn) <= attempt:
            self.drawn.append(self._random(4, len(self.drawn)).random_sample(self.count).tolist())
        return worker.slow * (self.p.slow_shard_factor if self.drawn[attempt][shard] < self.p.slow_shards else 1.0)

    # The scheduler. What it does later is not done after its death.

    def _start_scheduler(self, shards):
        self.queue = collections.deque(shards)
        self.done = set(self.commits)
        self.waiting = {}  # shards that were assigned and not begun: their workers
        self.begun = {}  # shards that run, oldest first: when they began, and how many attempts run
        self.idle = collections.deque()
        self.ended, self.took = 0, 0.0  # attempts, and their seconds
        if self.p.speculates:
            self._speculate_later()

    def _later(self, events, delay, action, *arguments):
        """After so many events, and a message."""
        generation = self.generation

        def act():
            if generation == self.generation:
                action(*arguments)

        self.clock.at(self.scheduler.serve(events) + delay, act)

    def _message(self, action, *arguments):
        """To the scheduler, which takes one event for it."""
        generation = self.generation

        def arrive():
            if generation == self.generation:
                self._later(1, 0.0, action, *arguments)

        self.clock.at(self.clock.now + self.p.message_seconds, arrive)

    def _register(self, worker, life):
        if worker.life != life:
            return
        self._release(worker)
        worker.known = life
        self._give(worker)

    def _release(self, worker):
        """Puts the shards that a dead worker held back to the front."""
        for shard in reversed(worker.shards):
            self.waiting.pop(shard, None)
            self._end_attempt(shard)
            if shard not in self.done and shard not in self.begun:
                self.queue.appendleft(shard)
        worker.shards = []
        self._feed()

    def _feed(self):
        while (self.queue or self.waiting) and self.idle:
            worker = self.idle.popleft()
            if worker.idle:
                worker.idle = False
                self._give(worker)

    def _give(self, worker):
        while self.queue and len(worker.shards) < self.p.in_flight:
            self._assign(worker, self.queue.popleft())
        if worker.shards:
            return
        if self.waiting:
            shard, owner = next(iter(self.waiting.items()))
            owner.waiting.remove(shard)
            owner.shards.remove(shard)
            del self.waiting[shard]
            self._assign(worker, shard)
            return
        worker.idle = True
        self.idle.append(worker)

    def _assign(self, worker, shard):
        worker.shards.append(shard)
        life = worker.known

        def arrive():
            # It may have died, which is not known here yet.
            if worker.life != life or shard not in worker.shards:
                return
            worker.waiting.append(shard)
            self.waiting[shard] = worker
            if worker.steps is None:
                self._begin(worker)
            self._feed()

        self._later(2, self.p.message_seconds, arrive)

    def _report(self, worker, life, shard):
        self.done.add(shard)
        if len(self.done) == self.count:
            self.finish = self.clock.now
            return
        if worker.life == life and shard in worker.shards:
            worker.shards.remove(shard)
            if shard in self.begun:
                self.ended += 1
                self.took += self.clock.now - self.begun[shard][0]
            self._end_attempt(shard)
            self._give(worker)

    def _end_attempt(self, shard):
        if shard in self.begun:
            begin, running = self.begun.pop(shard)
            if running > 1:
                self.begun[shard] = (begin, running - 1)

    def _speculate_later(self):
        generation = self.generation

        def look():
            if generation == self.generation:
                self._speculate()
                self._speculate_later()

        self.clock.at(self.clock.now + self.usual / 10, look)

    def _speculate(self):
        if not self.ended:
            return
        old = self.clock.now - self.p.speculates_after * self.took / self.ended
        for shard, (begin, running) in list(self.begun.items()) if self.idle else []:
            while self.idle and not self.idle[0].idle:
                self.idle.popleft()
            if begin > old or not self.idle:
                break
            if running == 1 and shard not in self.done:
                worker = self.idle.popleft()
                worker.idle = False
                self.begun[shard] = (begin, 2)
                self._assign(worker, shard)

    # Workers: generators that yield what has to be waited for. A dead worker's are not resumed.

    def _start(self, worker):
        if math.isfinite(self.p.worker_lives):
            death = self.clock.now + worker.lives.exponential(self.p.worker_lives)
            self.clock.at(death, self._worker_dies, worker, worker.life)
        self._go(worker, self._starting(worker))

    def _go(self, worker, steps):
        worker.steps = steps
        self._step(worker, worker.life)

    def _step(self, worker, life):
        if worker.life != life:
            return
        wait = next(worker.steps, None)
        if wait is None:
            worker.steps = None
            if worker.waiting:
                self._begin(worker)
        elif isinstance(wait, tuple):
            worker.flow = self.storage.transfer(*wait, lambda: self._step(worker, life))
        else:
            self.clock.at(self.clock.now + wait, self._step, worker, life)

    def _starting(self, worker):
        yield self.p.start_seconds
        yield OPERATIONS_OF_A_START, self.plan_bytes + self.p.model_bytes
        self._message(self._register, worker, worker.life)

    def _begin(self, worker):
        shard = worker.waiting.popleft()
        self.waiting.pop(shard, None)
        begin, running = self.begun.get(shard, (self.clock.now, 1))
        self.begun[shard] = (begin, running)
        self._go(worker, self._attempt(worker, shard))

    def _attempt(self, worker, shard):
        p = self.p
        if p.process_for_each_shard:
            yield p.start_seconds
            yield OPERATIONS_OF_A_START, self.plan_bytes + p.model_bytes
        if p.process_for_each_shard or self.clock.now >= worker.list_again:
            begin = self.clock.now
            committed = len(self.commits)
            yield 1 + 2 * committed // p.names_in_one_operation, 200 * committed
            yield 2 * committed * p.name_seconds
            worker.listed = committed
            worker.list_again = self.clock.now + p.list_again * (self.clock.now - begin)
        if self.order.get(shard, INFINITY) < worker.listed:
            yield 1, p.receipt_bytes
        else:
            yield 1, self.sizes[shard] * p.row_bytes
            seconds = self.seconds[shard] * self._slowness(worker, shard)
            self._start_computing(worker, shard, seconds)
            yield seconds
            self._stop_computing(worker)
            yield p.shard_seconds
            yield OPERATIONS_OF_A_COMMIT, self.sizes[shard] * p.result_row_bytes + 2 * p.receipt_bytes
            self.order.setdefault(shard, len(self.commits))
            self.commits[shard] = self.commits.get(shard, 0) + 1
            worker.holds = None
        self._message(self._report, worker, worker.life, shard)

    def _start_computing(self, worker, shard, seconds):
        self._pass()
        worker.holds = (shard, self.clock.now, seconds)
        worker.computes = True
        self._speed += self.seconds[shard] / max(seconds, 1e-300)

    def _stop_computing(self, worker):
        """At its end or before it."""
        if not worker.computes:
            return
        self._pass()
        worker.computes = False
        shard, _, seconds = worker.holds
        self._speed = max(0.0, self._speed - self.seconds[shard] / max(seconds, 1e-300))
        self.computed += self._share(worker) * self.sizes[shard]

    def _share(self, worker):
        """The computed share of the shard that a worker holds."""
        _, begin, seconds = worker.holds
        return min(1.0, (self.clock.now - begin) / seconds) if seconds else 1.0

    def _pass(self):
        """Counts what was computed since this was called before, and whether the job recovered in that time."""
        passed = self._speed * (self.clock.now - self._since)
        for own in self.recoveries:
            if own["back"] is None and self._speed >= own["speed"]:
                own["back"] = self._since - own["at"]
            if own["regained"] is None and passed > 0 and self._in_hand + passed >= own["in_hand"]:
                own["regained"] = self._since + (own["in_hand"] - self._in_hand) / self._speed - own["at"]
        self._in_hand += passed
        self._since = self.clock.now

    # Deaths.

    def _kill(self, worker):
        if worker.flow is not None:
            self.storage.cancel(worker.flow)
        self._stop_computing(worker)
        worker.life += 1
        worker.idle = False
        for shard in worker.waiting:
            self.waiting.pop(shard, None)
        worker.waiting.clear()
        worker.steps = worker.flow = worker.holds = None
        worker.listed, worker.list_again = 0, 0.0

    def _worker_dies(self, worker, life):
        if worker.life != life:
            return
        self.worker_deaths += 1
        self._kill(worker)
        generation = self.generation

        def again():
            if worker.life == life + 1 and generation == self.generation:
                self._start(worker)

        def known():
            if worker.life == life + 1 and generation == self.generation and worker.known == life:
                self._later(1, 0.0, self._release, worker)

        self.clock.at(self.clock.now + self.p.detect_seconds, known)
        self.clock.at(self.clock.now + self.p.restart_seconds, again)

    def _scheduler_dies(self):
        self._pass()
        mean_speed = self._in_hand / self.clock.now if self.clock.now else 0.0
        committed = sum(self.seconds[shard] for shard in self.commits)
        held = sum(self._share(worker) * self.seconds[worker.holds[0]] for worker in self.workers if worker.holds)
        for worker in self.workers:
            self._kill(worker)
            worker.shards = []
        self.generation += 1
        self._in_hand = committed
        self.recoveries.append({"at": self.clock.now, "in_hand": committed + held, "speed": max(0.9 * mean_speed, 1e-9),
                                "back": None, "regained": None})
        generation = self.generation

        def again():
            if generation != self.generation:
                return
            self.scheduler.free = self.clock.now
            self.queue, self.idle, self.waiting, self.begun = collections.deque(), collections.deque(), {}, {}
            names = 2 * len(self.commits)
            self.storage.transfer(2 + names // self.p.names_in_one_operation, self.plan_bytes + 100 * names, listed)
            for worker in self.workers:
                self._start(worker)

        def listed():
            if generation != self.generation:
                return
            idle = self.idle
            self._start_scheduler(shard for shard in range(self.count) if shard not in self.commits)
            self.idle = idle
            if len(self.done) == self.count:
                self.finish = self.clock.now
            self._feed()

        self.clock.at(self.clock.now + self.p.restart_seconds, again)

    def result(self):
        """The figures of the job that are told."""
        p, makespan = self.p, self.finish
        plan = p.plan_row_seconds * p.rows
        merge = p.merge_row_seconds * p.rows + p.merge_shard_seconds * self.count
        operations = self.storage.server.meter
        first = self.recoveries[0] if self.recoveries else {"at": None, "back": None, "regained": None}
        return {
            "shards": self.count,
            "makespan": makespan,
            "efficiency": self.ideal / (len(self.workers) * makespan),
            "events_mean": self.scheduler.meter.total / makespan,
            "events_peak": self.scheduler.meter.peak(),
            "bytes_mean": self.storage.meter.total / makespan,
            "bytes_peak": self.storage.meter.peak(),
            "operations_mean": operations.total / makespan,
            "operations_peak": operations.peak(),
            "again": round(self.computed / p.rows - 1, 9) + 0.0,
            "worker_deaths": self.worker_deaths,
            "back": first["back"],  # seconds from the scheduler's death until nine tenths of the mean speed before it
            "regained": first["regained"],  # until as much was computed as at its death
            "plan_bytes": self.plan_bytes,
            "plan_seconds": plan,
            "merge_seconds": merge,
            "worker_bytes": 5 * p.result_row_bytes * self.shard_rows,
        }


# Figures that are told.

def limits(parameters, shard_seconds):
    """Workers that one scheduler and one storage feed, by division; what the end of a job takes. No simulation."""
    p = argparse.Namespace(**parameters)
    rows = max(1, round(shard_seconds * p.rows_per_second / p.batch)) * p.batch
    moved = rows * (p.row_bytes + p.result_row_bytes) + 2 * p.receipt_bytes
    shards = -(-p.rows // rows)
    return {
        "shard_seconds": shard_seconds,
        "shards": shards,
        "workers_of_the_scheduler": shard_seconds / (3 * p.event_seconds) if p.event_seconds else INFINITY,
        "workers_of_the_storage": shard_seconds * p.storage_bandwidth / moved,
        "merge_seconds": p.merge_row_seconds * p.rows + p.merge_shard_seconds * shards,
    }


def scenario(parameters, workers, shard_seconds, trouble, runs, seed, **others):
    """The means of several jobs; of very many shards, one job is enough."""
    changed = {**parameters, **(TROUBLE if trouble else {}), **others}
    if changed["rows"] / (shard_seconds * changed["rows_per_second"]) > 1e5:
        runs = 1
    found = []
    for run in range(seed, seed + runs):
        # The scheduler dies somewhere in the middle half.
        middle = changed["rows"] / changed["rows_per_second"] / workers
        dies = [middle * numpy.random.RandomState([run, 5]).uniform(0.25, 0.75)] if trouble else []
        found.append(Job(workers, shard_seconds, run, dies, **changed).run().result())
    mean = {}
    for key in found[0]:
        values = [own[key] for own in found if own[key] is not None]
        mean[key] = float("%.4g" % statistics.mean(values)) if values else None
    return {"workers": workers, "shard_seconds": shard_seconds, "rows_per_second": changed["rows_per_second"],
            "trouble": trouble, "runs": runs, **others, **mean}


HEAD = (" work- shard           time effi- again events/s      MB/s operations/  recov-\n"
        "   ers   s   shards        ciency    %        s         s           s  ery, s")


def _duration(seconds):
    if seconds < 600:
        return "%.0f s" % seconds
    return "%.0f min" % (seconds / 60) if seconds < 36000 else "%.1f h" % (seconds / 3600)


def line(own):
    """One scenario in 80 columns; pairs are mean and peak; recovery: until it computes, and until what was lost is back."""
    recovery = "-" if own["back"] is None or own["regained"] is None else "%.0f/%.0f" % (own["back"], own["regained"])
    return "%6d %5.0f %6d %8s %5.2f %5.1f %8s %9s %11s %7s" % (
        own["workers"], own["shard_seconds"], own["shards"], _duration(own["makespan"]), own["efficiency"],
        100 * own["again"], "%.1f/%.0f" % (own["events_mean"], own["events_peak"]),
        "%.0f/%.0f" % (own["bytes_mean"] / 1e6, own["bytes_peak"] / 1e6),
        "%.0f/%.0f" % (own["operations_mean"], own["operations_peak"]), recovery)


def simulate(parameters, runs, seed, slower, tell):
    """All scenarios."""
    result = {"scenarios": [], "variants": [], "shards_of_a_worker": [], "limits": []}
    slow_rate = parameters["rows_per_second"] / slower

    def add(where, title, *rows):
        tell("\nSimulation: %s" % title)
        tell(HEAD)
        for workers, shard_seconds, trouble, others in rows:
            own = scenario(parameters, workers, shard_seconds, trouble, runs, seed, **others)
            result[where].append({"title": title, **own})
            tell(line(own))

    for rate, of in ((parameters["rows_per_second"], "the model that was measured"),
                     (slow_rate, "one %g times slower" % slower)):
        for trouble in (False, True):
            title = "%s, %g rows/s, %s" % (of, rate, "stragglers and failures" if trouble else "nothing fails")
            add("scenarios", title, *((workers, seconds, trouble, {"rows_per_second": rate})
                                      for workers in (1, 100, 1000) for seconds in (10, 60, 600)
                                      if workers > 1 or rate != slow_rate))
        for seconds in (10, 60, 600):
            result["limits"].append({"rows_per_second": rate, **limits({**parameters, "rows_per_second": rate}, seconds)})
    slow = {"rows_per_second": slow_rate}
    for title, workers, seconds, trouble, others in (
            ("every attempt lists the folder", 1000, 10, False, {"list_again": 0.0}),
            ("each shard starts a process", 1000, 10, False, {"process_for_each_shard": True}),
            ("each shard starts a process", 1000, 60, False, {"process_for_each_shard": True}),
            ("events take ten times as long", 1000, 10, False, {"event_seconds": 10 * parameters["event_seconds"]}),
            ("stragglers and failures, no second attempts", 1000, 60, True, {"speculates": False}),
            ("stragglers and failures, one shard at a worker", 1000, 60, True, {"in_flight": 1})):
        add("variants", "slower model: " + title, (workers, seconds, trouble, {**slow, **others}))
    tell("\nSimulation: efficiency by shards of a worker, the slower model; no failures, and with them\n"
         "workers shards of each  shard, s  quiet  failures")
    for workers in (100, 1000):
        for each in (1, 2, 3, 5, 10, 20, 50, 100):
            seconds = parameters["rows"] / slow_rate / workers / each
            quiet, trouble = (scenario(parameters, workers, seconds, which, runs, seed, **slow) for which in (False, True))
            result["shards_of_a_worker"].append({"workers": workers, "shards_of_each": each, "shard_seconds": round(seconds, 1),
                                                 "quiet": quiet["efficiency"], "trouble": trouble["efficiency"]})
            tell("%7d %14d %9.0f %6.2f %9.2f" % (workers, each, seconds, quiet["efficiency"], trouble["efficiency"]))
    return result


# Parameters that are measured.

def read_receipts(folders):
    """Parameters as receipts tell them, and from where."""
    receipts, sizes = [], []
    for folder in folders:
        for path in sorted(Path(folder).glob("*.json")):
            receipts.append(json.loads(path.read_text()))
            sizes.append(path.stat().st_size)
    if not receipts:
        raise ValueError("no receipts are in " + ", ".join(folders))
    usual = statistics.median(own["rows"] for own in receipts)
    whole = [own for own in receipts if own["rows"] >= usual / 2]
    seconds = [own["run"]["seconds"] / own["rows"] for own in whole]
    mean = statistics.mean(seconds)
    found = {"rows_per_second": sum(own["rows"] for own in whole) / sum(own["run"]["seconds"] for own in whole),
             "spread": [float("%.3g" % (own / mean)) for own in sorted(seconds)],
             "spread_rows": usual,
             "result_row_bytes": sum(own["result"]["bytes"] for own in whole) / sum(own["rows"] for own in whole),
             "receipt_bytes": statistics.mean(sizes)}
    return {name: (value, "%d receipts" % len(whole)) for name, value in found.items()}


def _nothing(number):
    return number


def measure_scheduler(tasks=5000, workers=2):
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather(client.map(_nothing, range(100)))
        begin = time.monotonic()
        client.gather(client.map(_nothing, range(1000, 1000 + tasks)))
        each = (time.monotonic() - begin) / tasks
    return {"tasks": tasks, "seconds_of_a_task": each, "event_seconds": each / 3, "load": os.getloadavg()[0]}


def measure_storage(folder, commits=200, names=4000):
    """Commits as core/jobs/commit.cc makes them, with small files; a large file; a listing."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        def write(path, size):
            with open(path, "wb") as file:
                file.write(bytes(size))
                os.fsync(file.fileno())

        def listed():
            return sorted(os.listdir(own))

        own_folder = os.open(own, os.O_RDONLY)
        taken = []
        for k in range(commits):
            begin = time.monotonic()
            write(own + "/a", 4096)
            write(own + "/b", 4096)
            os.rename(own + "/a", "%s/a%d" % (own, k))
            os.rename(own + "/b", "%s/b%d" % (own, k))
            os.fsync(own_folder)
            taken.append(time.monotonic() - begin)
        begin = time.monotonic()
        write(own + "/large", 2**28)
        large = time.monotonic() - begin
        for k in range(names):
            open("%s/%05d.%064d.json" % (own, k, k), "wb").close()
        begin = time.monotonic()
        count = len(listed())
        listing = time.monotonic() - begin
        os.close(own_folder)
    return {"commit_seconds": statistics.median(taken), "slowest_commit_seconds": max(taken),
            "storage_latency": statistics.median(taken) / OPERATIONS_OF_A_COMMIT, "client_bandwidth": 2**28 / large,
            "name_seconds": listing / count, "load": os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--receipts", nargs="+", default=[])
    parser.add_argument("--set", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slower", type=float, default=100)
    parser.add_argument("--json")
    parser.add_argument("--measure-scheduler", action="store_true")
    parser.add_argument("--measure-storage")
    arguments = parser.parse_args()
    if arguments.measure_scheduler or arguments.measure_storage:
        found = measure_scheduler() if arguments.measure_scheduler else measure_storage(arguments.measure_storage)
        print(json.dumps(found, indent=1))
        return
    told = {name: {"value": value, "what": what, "from": where} for name, (value, what, where) in PARAMETERS.items()}
    if arguments.receipts:
        for name, (value, where) in read_receipts(arguments.receipts).items():
            told[name].update(value=value, **{"from": where})
    for entry in arguments.set:
        name, _, text = entry.partition("=")
        if name not in told:
            sys.exit("no such parameter: " + name)
        told[name].update(value=json.loads(text.replace("inf", "Infinity")), **{"from": "--set"})
    begin = time.monotonic()
    result = simulate({name: own["value"] for name, own in told.items()}, arguments.runs, arguments.seed, arguments.slower,
                      lambda text: print(text, flush=True))
    told["worker_lives"]["value"] = str(told["worker_lives"]["value"])  # JSON has no infinity
    text = json.dumps({
        "what": "a discrete-event simulation, no measurement of a cluster",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "seed": arguments.seed, "seconds": round(time.monotonic() - begin), "parameters": told,
        "trouble": {**TROUBLE, "scheduler": "dies once, in the middle half"}, **result}, indent=1)
    if arguments.json:
        Path(arguments.json).write_text(text + "\n")


if __name__ == "__main__":
    main()
