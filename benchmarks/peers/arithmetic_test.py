import unittest

import arithmetic


class Times(unittest.TestCase):
    def test_median_and_quartiles(self):
        self.assertEqual(
            arithmetic.summary([5.0, 1.0, 2.0, 4.0, 3.0]), {"median": 3.0, "quartiles": [2.0, 4.0], "runs": 5}
        )

    def test_one_run_is_its_own_median(self):
        self.assertEqual(arithmetic.summary([0.5]), {"median": 0.5, "quartiles": [0.5, 0.5], "runs": 1})

    def test_every_method_begins_in_turn_and_none_is_left_out(self):
        orders = [arithmetic.rotated(["a", "b", "c"], turn) for turn in range(4)]
        self.assertEqual(orders, [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]])
        self.assertEqual(arithmetic.rotated([], 2), [])

    def test_rounds_fit_the_budget_and_are_odd(self):
        self.assertEqual(arithmetic.rounds([1.0, 1.0], 20, 25), 9)
        self.assertEqual(arithmetic.rounds([0.1, 0.1], 20, 25), 25)
        self.assertEqual(arithmetic.rounds([30.0], 20, 25), 3)
        self.assertEqual(arithmetic.rounds([], 20, 25), 25)


class Errors(unittest.TestCase):
    def test_completeness_is_relative_to_the_aim(self):
        self.assertAlmostEqual(arithmetic.completeness_error([1.0, 2.0, -0.5], -2.0), 2.25)
        self.assertEqual(arithmetic.completeness_error([1.0, 2.0], 3.0), 0.0)

    def test_sums_are_relative_to_all_aims_together_signs_left_out(self):
        self.assertAlmostEqual(arithmetic.sum_error([1.0, -3.0, 0.5], [2.0, -2.0, 0.0]), 2.5 / 4)
        self.assertEqual(arithmetic.sum_error([2.0, -2.0], [2.0, -2.0]), 0.0)
        with self.assertRaises(ValueError):
            arithmetic.sum_error([1.0], [1.0, 2.0])

    def test_recovery_is_relative_to_the_largest_output(self):
        self.assertAlmostEqual(arithmetic.recovery_error([1.0, -4.5], [1.25, -4.0]), 0.125)


class Lengths(unittest.TestCase):
    def test_one_that_is_no_longer_in_either_way(self):
        slow = [(512, 16), (128, 64)]
        self.assertEqual(arithmetic.within(slow, (1024, 16)), (512, 16))
        self.assertEqual(arithmetic.within(slow, (128, 64)), (128, 64))
        self.assertIsNone(arithmetic.within(slow, (1024, 1)))
        self.assertIsNone(arithmetic.within(slow, (128, 16)))


class Reasons(unittest.TestCase):
    def test_the_first_line_that_says_something(self):
        self.assertEqual(arithmetic.one_line("\n  no rule for it \nTraceback\n"), "no rule for it")
        self.assertEqual(arithmetic.one_line(""), "no reason given")

    def test_long_ones_are_cut(self):
        line = arithmetic.one_line("x" * 500)
        self.assertEqual(len(line), 160)
        self.assertTrue(line.endswith("..."))


if __name__ == "__main__":
    unittest.main()
