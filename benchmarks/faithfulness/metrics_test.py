import unittest

import numpy

import metrics


class Ranking(unittest.TestCase):
    def test_largest_first_and_equal_ones_in_order(self):
        self.assertEqual(metrics.ranking([1.0, 3.0, -2.0, 3.0]).tolist(), [1, 3, 0, 2])

    def test_counts_round_half_up(self):
        # 30 units: 0, 1.5, 3, 6, 10.5, 15, 22.5, 30.
        self.assertEqual(metrics.counts(30), [0, 2, 3, 6, 11, 15, 23, 30])

    def test_kept_units(self):
        kept = metrics.kept_units([0.5, 2.0, 1.0, -1.0])
        self.assertEqual(kept.shape, (2, 8, 4))
        half = metrics.FRACTIONS.index(0.5)
        self.assertEqual(kept[0, half].tolist(), [True, False, False, True])
        self.assertEqual(kept[1, half].tolist(), [False, True, True, False])
        self.assertTrue(kept[0, 0].all() and not kept[0, -1].any())
        self.assertTrue(kept[1, -1].all() and not kept[1, 0].any())


class Aopc(unittest.TestCase):
    def test_area_of_a_line_is_that_of_a_triangle(self):
        self.assertAlmostEqual(metrics.area(metrics.FRACTIONS), 0.5, 12)
        self.assertAlmostEqual(metrics.area([2.0] * 8), 2.0, 12)

    def test_area_of_uneven_steps(self):
        # Only the point at 35 % is not zero: half its height times the 30 % between its neighbours.
        self.assertAlmostEqual(metrics.area([0, 0, 0, 0, 1, 0, 0, 0]), 0.15, 12)

    def test_everything_in_the_best_unit(self):
        # v is 4 with that unit and 1 without it, so both curves jump at the first step: 3 * (1 - 0.05 / 2).
        scores = [[4, 1, 1, 1, 1, 1, 1, 1], [1, 4, 4, 4, 4, 4, 4, 4]]
        numpy.testing.assert_allclose(metrics.aopc(scores), [2.925, 2.925, 3.0])

    def test_faithfulness_is_in_units_of_the_mean_gap(self):
        samples = numpy.array([[1.0, 2.0, 2.0], [3.0, 0.0, 6.0]])
        numpy.testing.assert_allclose(metrics.faithfulness(samples), [0.375, 0.5, 0.25])

    def test_gaps_of_both_signs_do_not_cancel(self):
        samples = numpy.array([[1.0, 2.0, 2.0], [3.0, 0.0, -6.0]])
        numpy.testing.assert_allclose(metrics.faithfulness(samples), [0.375, 0.5, 0.25])

    def test_a_linear_model_ranked_by_itself_beats_every_other_ranking(self):
        generator = numpy.random.default_rng(1)
        weights = generator.standard_normal(12)

        def area_of(contributions):
            values = metrics.aopc(metrics.kept_units(contributions) @ weights)
            return values[0] + values[1]

        best = area_of(weights)
        for _ in range(50):
            self.assertLessEqual(area_of(generator.permutation(weights)), best)


class Bootstrap(unittest.TestCase):
    def test_interval_of_known_values(self):
        self.assertEqual(metrics.interval(numpy.arange(1001)), [25.0, 975.0])

    def test_draws_repeat_with_their_seed(self):
        rows = metrics.draws(200, 50, seed=3)
        self.assertEqual(rows.shape, (50, 200))
        self.assertTrue((rows >= 0).all() and (rows < 200).all())
        numpy.testing.assert_array_equal(rows, metrics.draws(200, 50, seed=3))

    def test_interval_of_a_mean_is_that_of_its_standard_error(self):
        values = numpy.random.default_rng(0).standard_normal(400)
        low, high = metrics.interval(values[metrics.draws(400, 2000, seed=1)].mean(1))
        self.assertAlmostEqual((high - low) / 2, 1.96 * values.std() / 20, delta=0.01)


class Parts(unittest.TestCase):
    # Sums are 1, -2 and 3.5, of which the second and third miss 1 and 0.5.
    contributions = [numpy.array([2.0, -1.0]), numpy.array([-1.0, -1.0, 0.0]), numpy.array([3.5])]
    gaps = [1.0, -3.0, 4.0]

    def test_leftover_is_relative_to_the_mean_gap(self):
        self.assertAlmostEqual(metrics.leftover(self.contributions, self.gaps), 1.5 / 8)

    def test_conditioning_counts_the_leftover_as_a_part(self):
        self.assertAlmostEqual(metrics.conditioning(self.contributions, self.gaps), (3 + 2 + 3.5 + 1.5) / 8)

    def test_conditioning_is_one_where_nothing_cancels(self):
        self.assertAlmostEqual(metrics.conditioning([numpy.array([-1.0, -3.0])], [-4.0]), 1)

    def test_shares(self):
        self.assertEqual(metrics.share(0.1534), "15.3 %")
        self.assertEqual(metrics.share(6.1e-8), "6e-08")
        self.assertEqual(metrics.share(2.4e12), "2e+12")


class Found(unittest.TestCase):
    CAUSE, POINTER, QUESTION, FRAME, IDLE = (
        metrics.CAUSE, metrics.POINTER, metrics.QUESTION, metrics.FRAME, metrics.CANNOT_MATTER,
    )

    def check(self, contributions, roles, *expected):
        found = metrics.found(contributions, roles)
        self.assertEqual(tuple(found), metrics.FOUND)
        numpy.testing.assert_allclose(list(found.values()), expected)

    def test_cause_first_and_question_left_out(self):
        roles = [self.CAUSE, self.POINTER, self.IDLE, self.QUESTION]
        self.check([4.0, 2.0, -1.0, 9.0], roles, 1, 1, 1, 6 / 16, 1 / 16, 1 / 9)

    def test_pointer_before_cause(self):
        self.check([2.0, 4.0, -2.0], [self.CAUSE, self.POINTER, self.IDLE], 0, 1, 1, 6 / 8, 2 / 8, 1 / 2)

    def test_no_pointer(self):
        self.check([1.0, 3.0], [self.CAUSE, self.IDLE], 0, 0, 0, 1 / 4, 3 / 4, 1)

    def test_two_causes_have_to_come_before_all_others(self):
        roles = [self.CAUSE, self.IDLE, self.CAUSE, self.QUESTION]
        self.check([3.0, 1.0, 2.0, 4.0], roles, 1, 1, 1, 5 / 10, 1 / 10, 1 / 4)
        self.check([3.0, 2.0, 1.0, 4.0], roles, 0, 0, 2 / 3, 4 / 10, 2 / 10, 2 / 4)

    def test_cause_and_pointer_are_not_two_causes(self):
        roles = [self.CAUSE, self.CAUSE, self.POINTER, self.IDLE]
        self.check([3.0, 1.0, 2.0, 0.0], roles, 0, 1, 1, 1, 0, 0)

    def test_a_question_that_is_not_among_the_first(self):
        roles = [self.CAUSE, self.POINTER, self.IDLE, self.QUESTION]
        self.assertAlmostEqual(metrics.found([4.0, 2.0, 1.0, -1.0], roles)["needed_first"], 2 / 3)

    def test_what_speaks_against_the_answer_is_not_first(self):
        self.check([-4.0, 1.0], [self.CAUSE, self.IDLE], 0, 0, 0, 4 / 5, 1 / 5, 1 / 4)

    def test_a_frame_is_neither_needed_nor_idle(self):
        self.check([1.0, 2.0, 1.0], [self.CAUSE, self.FRAME, self.IDLE], 0, 0, 0, 1 / 4, 1 / 4, 1 / 2)

    def test_nothing_that_cannot_matter(self):
        self.check([1.0, 3.0], [self.CAUSE, self.FRAME], 0, 0, 0, 1 / 4, numpy.nan, numpy.nan)

    def test_nothing_found(self):
        self.check([0.0, 0.0], [self.CAUSE, self.IDLE], 0, 0, 0, 0, 0, 0)


if __name__ == "__main__":
    unittest.main()
