import os
import signal
import time
import unittest

import processes


class InChild(unittest.TestCase):
    def test_what_it_finds(self):
        own = os.getpid()
        found = processes.in_child(lambda: {"pid": os.getpid()}, 60)
        self.assertNotEqual(found["pid"], own)

    def test_too_much_time_of_the_processor_is_the_reason_and_told_from_others(self):
        def spin():
            while True:
                pass

        found = processes.in_child(lambda: processes.first_run(spin, 0.05), 0.05)
        self.assertEqual(found, {"reason": "takes more than 0.05 s", "too_slow": True})

    def test_waiting_takes_no_time_of_the_processor(self):
        found = processes.in_child(lambda: processes.first_run(lambda: time.sleep(0.2), 0.05)[0], 0.05)
        self.assertIsNone(found)

    def test_a_process_that_ends_otherwise(self):
        found = processes.in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)
        self.assertEqual(found, {"reason": "killed by signal 9"})


class FirstRun(unittest.TestCase):
    def test_peak_is_what_the_run_held(self):
        def run():
            return len(bytes(bytearray(64 * 2**20)))

        result, seconds, peak = processes.first_run(run, 60)
        self.assertEqual(result, 64 * 2**20)
        self.assertGreater(peak, 100)
        self.assertLess(peak, 200)
        self.assertEqual(sorted(seconds), ["clock", "processor"])


class Reasons(unittest.TestCase):
    def test_kinds_of_errors(self):
        self.assertEqual(processes.reason_of(RuntimeError("can't allocate memory: 9"), 12), "needs more than 12 GiB")
        self.assertEqual(processes.reason_of(processes.Missing("no checkout was given"), 12), "no checkout was given")
        self.assertEqual(processes.reason_of(KeyError("a\n b"), 12), "KeyError: 'a\\n b'")


if __name__ == "__main__":
    unittest.main()
