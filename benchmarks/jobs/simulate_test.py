import collections
import json
import math
import tempfile
import unittest
from pathlib import Path

import numpy
import simulate

# Parameters with which only computation takes time.
FREE = {
    "start_seconds": 0.0, "shard_seconds": 0.0, "event_seconds": 0.0, "message_seconds": 0.0, "storage_latency": 0.0,
    "storage_operations": math.inf, "storage_bandwidth": math.inf, "client_bandwidth": math.inf, "name_seconds": 0.0,
    "detect_seconds": 0.0, "restart_seconds": 0.0, "batch": 1, "rows_per_second": 1.0,
}
EQUAL = {**FREE, "spread": [1.0]}
# Everything goes wrong at once.
ROUGH = {
    "rows": 30000, "batch": 10, "rows_per_second": 100.0, "spread_rows": 100, "speculates": True, "slow_workers": 0.2,
    "slow_shards": 0.1, "worker_lives": 25.0, "detect_seconds": 2.0, "restart_seconds": 3.0, "storage_bandwidth": 1e7,
    "receipt_bytes": 1000,
}


class Laws(unittest.TestCase):
    def test_one_worker_takes_the_sum_of_its_shards(self):
        for spread in ([1.0], simulate.SPREAD):
            job = simulate.Job(1, 7, **{**FREE, "rows": 1000, "spread": spread, "spread_rows": 7}).run()
            self.assertEqual(job.count, 143)
            self.assertAlmostEqual(job.finish, sum(job.seconds), places=6)
            self.assertAlmostEqual(job.result()["efficiency"], 1.0, places=9)

    def test_equal_shards_take_whole_rounds(self):
        for workers in (1, 2, 3, 4, 7, 10):
            for shards in (1, 2, 5, 7, 9, 10, 20, 21):
                job = simulate.Job(workers, 5, **{**EQUAL, "rows": 5 * shards}).run()
                self.assertAlmostEqual(job.finish, 5 * math.ceil(shards / workers), places=9, msg=(workers, shards))

    def test_one_shard_by_hand(self):
        parameters = {
            "rows": 512, "batch": 512, "rows_per_second": 256.0, "spread": [1.0], "start_seconds": 0.5, "shard_seconds": 0.25,
            "row_bytes": 100, "result_row_bytes": 300, "receipt_bytes": 1000, "model_bytes": 7000, "plan_bytes": 900,
            "plan_shard_bytes": 100, "event_seconds": 0.125, "message_seconds": 0.0625, "storage_latency": 0.01,
            "storage_operations": math.inf, "storage_bandwidth": 4e4, "client_bandwidth": 2e4,
        }
        job = simulate.Job(1, 2, **parameters).run()
        operations = 2 + 1 + 1 + simulate.OPERATIONS_OF_A_COMMIT  # start, listing, rows
        moved = 8000 + 512 * 400 + 2000
        by_hand = 0.5 + 2.0 + 0.25 + 0.01 * operations + moved / 2e4 + 4 * 0.125 + 3 * 0.0625
        self.assertAlmostEqual(job.finish, by_hand, places=9)
        self.assertEqual(job.storage.server.meter.total, operations)
        self.assertAlmostEqual(job.storage.meter.total, moved, places=6)
        self.assertEqual(job.scheduler.meter.total, 4)  # registered, submitted, assigned, reported
        self.assertAlmostEqual(sum(job.storage.meter.seconds.values()), moved, places=6)

    def test_no_shard_is_lost_and_no_work_is_forgotten(self):
        commits = collections.Counter()
        for seed in range(12):
            dies = numpy.random.RandomState(seed).uniform(0, 60, seed % 4)
            job = simulate.Job(10, 1, seed, dies, **ROUGH).run()
            self.assertEqual(sorted(job.commits), list(range(job.count)))
            result = job.result()
            self.assertGreaterEqual(result["again"], 0)
            self.assertLessEqual(result["efficiency"], 1)
            # Rows that attempts committed twice were computed twice.
            twice = sum((own - 1) * job.sizes[shard] for shard, own in job.commits.items())
            self.assertGreaterEqual(job.computed, job.p.rows + twice - 1e-6)
            commits.update(job.commits.values())
            self.assertGreater(job.worker_deaths, 0)
            self.assertEqual(len(job.recoveries), len(dies))
        self.assertGreater(commits[2], 0)  # so that the above was tried

    def test_resumes_after_a_death_at_any_time(self):
        whole = simulate.Job(4, 1, **{**EQUAL, "rows": 40}).run().finish
        for moment in numpy.arange(0.05, whole, 0.1):
            job = simulate.Job(4, 1, 0, [moment], **{**EQUAL, "rows": 40, "restart_seconds": 3.0}).run()
            self.assertEqual(sorted(job.commits.values()), [1] * 40)
            # Four shards were under way, begun at the last whole second.
            self.assertAlmostEqual(job.finish, whole + 3 + moment % 1, places=6)
            self.assertAlmostEqual(job.recoveries[0]["back"], 3, places=6)
            if moment < whole - 1:
                self.assertAlmostEqual(job.recoveries[0]["regained"], 3 + moment % 1, places=6)
            self.assertAlmostEqual(job.computed - 40, 4 * (moment % 1), places=6)
            # Two starts of four workers, the scheduler's own, 44 listings and reads, 40 commits: what is there is not touched.
            operations = 2 * 4 * simulate.OPERATIONS_OF_A_START + 2 + 2 * 44 + 40 * simulate.OPERATIONS_OF_A_COMMIT
            self.assertEqual(job.storage.server.meter.total, operations)

    def test_a_dead_worker_reads_no_further(self):
        parameters = {**EQUAL, "rows": 10, "row_bytes": 100, "client_bandwidth": 100.0, "storage_bandwidth": 1e9,
                      "result_row_bytes": 0, "receipt_bytes": 0, "model_bytes": 0, "plan_bytes": 0, "plan_shard_bytes": 0}
        job = simulate.Job(1, 10, 0, [5.0], **parameters).run()
        self.assertAlmostEqual(job.finish, 5 + 10 + 10)
        self.assertAlmostEqual(job.storage.meter.total, 1500)

    def test_what_a_dead_worker_committed_is_not_computed_again(self):
        # Its reports are under way for three seconds; until then, its shards are given to others.
        for seed in range(5):
            job = simulate.Job(5, 1, seed, **{**EQUAL, "rows": 200, "message_seconds": 3.0, "worker_lives": 20.0}).run()
            self.assertGreater(job.worker_deaths, 5)
            self.assertEqual(list(job.commits.values()), [1] * 200)

    def test_the_seed_decides(self):
        one, two, other = (simulate.Job(10, 1, seed, [20.0], **ROUGH).run().result() for seed in (3, 3, 4))
        self.assertEqual(one, two)
        self.assertNotEqual(one["makespan"], other["makespan"])

    def test_more_failures_take_longer(self):
        means = []
        for lives in (math.inf, 100.0, 25.0, 6.0):
            parameters = {**ROUGH, "worker_lives": lives, "speculates": False}
            means.append(numpy.mean([simulate.Job(10, 1, seed, **parameters).run().finish for seed in range(10)]))
        self.assertEqual(means, sorted(means))
        self.assertGreater(means[-1], 1.2 * means[0])

    def test_second_attempts_help_against_slow_shards(self):
        parameters = {**EQUAL, "rows": 4000, "slow_shards": 0.05, "slow_shard_factor": 30.0}
        alone, twice = (numpy.mean([simulate.Job(10, 10, seed, speculates=speculates, **parameters).run().finish
                                    for seed in range(10)]) for speculates in (False, True))
        self.assertLess(twice, 0.9 * alone)

    def test_listings_before_every_attempt_cost_the_square_of_the_shards(self):
        parameters = {**EQUAL, "rows": 3000, "names_in_one_operation": 1, "storage_latency": 0.001}
        listed, once = (simulate.Job(1, 1, list_again=again, **parameters).run().storage.server.meter.total
                        for again in (0.0, 1e9))
        # One operation, and two for each shard that is there; the first listing, of an empty folder, is in both.
        self.assertEqual(listed - once, 2999 + 2 * sum(range(3000)))

    def test_listings_take_their_share_of_the_time_at_most(self):
        parameters = {**EQUAL, "rows": 20000, "name_seconds": 1e-4, "storage_latency": 1e-6}
        never, seldom, often = (simulate.Job(1, 1, list_again=again, **parameters).run().finish for again in (1e12, 100.0, 0.0))
        self.assertGreater(often, 2 * never)
        self.assertGreater(seldom, never)
        self.assertLess(seldom, 1.012 * never)

    def test_a_worker_does_not_know_what_was_committed_after_it_listed(self):
        # The first listing shows an empty folder, so that a job that goes on computes all of it again if it never lists again.
        for again, computed in ((0.0, 0), (1e9, 1)):
            job = simulate.Job(1, 1, list_again=again, **{**EQUAL, "rows": 3})
            worker = simulate.Worker(0, 1.0, None)
            for shard in (0, 1, 0):
                for _ in job._attempt(worker, shard):
                    job.clock.now += 0.001
            self.assertEqual(job.commits[0], 1 + computed)
            self.assertEqual(job.commits[1], 1)


class ClosedForms(unittest.TestCase):
    def test_lost_work_of_exponential_failures(self):
        # Restarted from its beginning, a shard of s seconds takes T with E[T] = (e^rs - 1) / r, and
        # Var[T] = (e^2rs - 2 rs e^rs - 1) / r^2.
        for rate in (0.02, 0.1, 0.2):
            shards, s = 4000, 10.0
            job = simulate.Job(1, s, 1, **{**EQUAL, "rows": int(shards * s), "worker_lives": 1 / rate}).run()
            grown = math.exp(rate * s)
            mean = (grown - 1) / rate
            error = math.sqrt((grown * grown - 2 * rate * s * grown - 1) / shards) / rate
            self.assertLess(abs(job.finish / shards - mean), 4 * error)
            self.assertLess(error, 0.05 * mean)  # so that it says something
            self.assertAlmostEqual(job.computed, job.finish, places=3)

    def test_waiting_at_the_scheduler_is_that_of_its_queue(self):
        # Arrivals at random, equal times of service (M/D/1): waiting takes u s / (2 (1 - u)) on average.
        random = numpy.random.RandomState(2)
        for used in (0.3, 0.7):
            clock = simulate.Clock()
            server = simulate.Server(clock, 1.0)
            waits = []

            def arrive(left):
                waits.append(server.serve() - 1.0 - clock.now)
                if left:
                    clock.at(clock.now + random.exponential(1 / used), arrive, left - 1)

            clock.at(0.0, arrive, 100000)
            clock.run()
            self.assertLess(abs(numpy.mean(waits) / (used / (2 * (1 - used))) - 1), 0.06)

    def test_storage_shares_its_bandwidth(self):
        # Arrivals at random, equal rates for all (M/G/1 with processor sharing): a transfer takes its own time over 1 - u,
        # whatever the distribution of sizes.
        random = numpy.random.RandomState(3)
        used = 0.6
        clock = simulate.Clock()
        storage = simulate.Storage(clock, 0.0, math.inf, 1.0, math.inf)
        taken = collections.defaultdict(list)

        def arrive(left):
            size = float(random.choice([0.5, 3.0], p=[0.8, 0.2]))
            begin = clock.now
            storage.transfer(1, size, lambda: taken[size].append(clock.now - begin))
            if left:
                clock.at(clock.now + random.exponential(1 / used), arrive, left - 1)

        clock.at(0.0, arrive, 60000)
        clock.run()
        self.assertEqual(sum(map(len, taken.values())), 60001)
        for size, seconds in taken.items():
            self.assertLess(abs(numpy.mean(seconds) / (size / (1 - used)) - 1), 0.06)

    def test_one_client_has_a_limit_of_its_own(self):
        clock = simulate.Clock()
        storage = simulate.Storage(clock, 0.0, math.inf, 10.0, 4.0)
        ends = {}
        for name, size in (("a", 8.0), ("b", 8.0), ("c", 16.0), ("d", 16.0), ("gone", 100.0)):
            flow = storage.transfer(1, size, lambda name=name: ends.setdefault(name, clock.now))
        clock.at(1.0, storage.cancel, flow)
        clock.run()
        # Five at 2 for a second, four at 2.5 until two end, and two at 4.
        self.assertAlmostEqual(ends["a"], 1 + 6 / 2.5)
        self.assertAlmostEqual(ends["b"], 1 + 6 / 2.5)
        self.assertAlmostEqual(ends["d"], 1 + 6 / 2.5 + 8 / 4)
        self.assertNotIn("gone", ends)
        self.assertAlmostEqual(storage.meter.total, 50.0)

    def test_a_busy_scheduler_and_a_busy_storage_are_the_limit(self):
        parameters = {**EQUAL, "rows": 20000, "event_seconds": 0.01}
        job = simulate.Job(2000, 10, **parameters).run()
        most = simulate.limits({**{name: own[0] for name, own in simulate.PARAMETERS.items()}, **parameters}, 10)
        self.assertAlmostEqual(most["workers_of_the_scheduler"], 10 / 0.03)
        self.assertGreaterEqual(job.finish, 3 * 2000 * 0.01)
        parameters = {**EQUAL, "rows": 20000, "storage_bandwidth": 1000.0, "receipt_bytes": 0, "model_bytes": 0,
                      "plan_bytes": 0, "plan_shard_bytes": 0, "storage_latency": 0.001, "list_again": 1e9}
        job = simulate.Job(100, 10, **parameters).run()
        most = simulate.limits({**{name: own[0] for name, own in simulate.PARAMETERS.items()}, **parameters}, 10)
        bound = 20000 * 481 / 1000
        self.assertAlmostEqual(most["workers_of_the_storage"], 1000 / 481)
        self.assertGreaterEqual(job.finish, bound)
        self.assertLess(job.finish, 1.02 * bound + 20)


class Results(unittest.TestCase):
    def setUp(self):
        self.result = json.loads(Path("benchmarks/jobs/simulation.json").read_text())

    def test_parameters_are_those_of_the_program(self):
        for name, (value, what, where) in simulate.PARAMETERS.items():
            value = str(value) if value == math.inf else list(value) if isinstance(value, tuple) else value
            self.assertEqual(self.result["parameters"].pop(name), {"value": value, "what": what, "from": where})
        self.assertEqual(self.result["parameters"], {})

    def test_a_result_comes_out_again(self):
        parameters = {name: entry[0] for name, entry in simulate.PARAMETERS.items()}
        found = 0
        for own in self.result["scenarios"]:
            if own["workers"] == 100 and own["shards"] < 10000:
                again = simulate.scenario({**parameters, "rows_per_second": own["rows_per_second"]}, 100, own["shard_seconds"],
                                          own["trouble"], own["runs"], self.result["seed"])
                for key, value in again.items():
                    if isinstance(value, float):
                        self.assertAlmostEqual(own[key], value, delta=1e-3 * abs(value), msg=key)
                    else:
                        self.assertEqual(own[key], value, key)
                found += 1
        self.assertEqual(found, 8)

    def test_the_page_quotes_these(self):
        lines = {simulate.line(own) for own in self.result["scenarios"] + self.result["variants"]}
        page = Path("benchmarks/README.md").read_text()
        begin, end = page.index("### Jobs on many machines: a simulation"), page.index("\n## ", page.index("### Jobs on many"))
        quoted = [text for text in page[begin:end].splitlines() if text.count("/") >= 3 and text.startswith("  ")]
        self.assertEqual(len(quoted), 18)
        for text in quoted:
            self.assertIn(text, lines)


class Inputs(unittest.TestCase):
    def test_receipts(self):
        with tempfile.TemporaryDirectory() as folder:
            sizes = []
            for shard, (rows, seconds) in enumerate([(100, 1.0), (100, 3.0), (100, 2.0), (10, 9.0)]):
                path = Path(folder) / ("%05d.json" % shard)
                path.write_text(json.dumps({"rows": rows, "run": {"seconds": seconds}, "result": {"bytes": rows * 7}}))
                sizes.append(path.stat().st_size)
            found = simulate.read_receipts([folder])
        self.assertEqual(found["rows_per_second"], (50.0, "3 receipts"))  # the last shard is short
        self.assertEqual(found["spread"][0], [0.5, 1.0, 1.5])
        self.assertEqual(found["spread_rows"][0], 100)
        self.assertEqual(found["result_row_bytes"][0], 7)
        self.assertEqual(found["receipt_bytes"][0], numpy.mean(sizes))

    def test_unknown_parameters_are_refused(self):
        with self.assertRaisesRegex(ValueError, "no such parameter: speed"):
            simulate.Job(1, 1, speed=3)

    def test_a_line_has_eighty_columns(self):
        own = simulate.scenario({name: entry[0] for name, entry in simulate.PARAMETERS.items()}, 1000, 10, True, 1, 0)
        self.assertLessEqual(len(simulate.line(own)), 80)
        self.assertLessEqual(max(map(len, simulate.HEAD.splitlines())), 80)


if __name__ == "__main__":
    unittest.main()
