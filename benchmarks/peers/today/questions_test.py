import unittest

import torch

from questions import Case, Explanation, OneOutput


def sum_and_twice(x):
    total = x.flatten(1).sum(1, keepdim=True)
    return torch.cat([total, 2 * total], 1)


def case(labels, shape):
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(1, *shape)
    return Case("sums", sum_and_twice, x, torch.zeros(1, *shape), torch.tensor(labels)[None], [1])


class Questions(unittest.TestCase):
    def test_elements_are_summed_by_part_and_those_of_none_apart(self):
        question = case([0, 0, 1, -1], [4, 2]).question(0)
        found = question.by_unit(2 * question.x)
        self.assertEqual(found.units.tolist(), [2 * (1 + 2 + 3 + 4), 2 * (5 + 6)])
        self.assertEqual(found.outside, 2 * (7 + 8))
        value, start = question.move()
        self.assertEqual(found.units.sum() + found.outside, value - start)

    def test_contributions_of_whole_parts_count_once(self):
        question = case([0, 0, 1, -1], [4, 2]).question(0)
        given = torch.tensor([[6.0, 6.0, 11.0, 0.0]]).unsqueeze(-1)
        self.assertEqual(question.one_each(given).units.tolist(), [6.0, 11.0])

    def test_parts_go_a_share_of_their_way_and_others_all_of_it(self):
        question = case([0, 0, 1, -1], [4, 2]).question(0)
        moved = question.moved(torch.tensor([[1.0, 0.5], [0.0, 0.0]]))
        self.assertEqual(moved[0].tolist(), [[1, 2], [3, 4], [2.5, 3], [7, 8]])
        self.assertEqual(moved[1].tolist(), [[0, 0], [0, 0], [0, 0], [7, 8]])
        self.assertEqual(question.outputs(moved).tolist(), [2 * (10 + 5.5 + 15), 2 * 15])

    def test_the_same_question_elsewhere(self):
        question = case([0, 1], [2]).question(0)
        again = question.at(torch.tensor([0.5, 1.0]))
        self.assertEqual(again.x.tolist(), [[0.5, 2.0]])
        self.assertEqual(again.move(), (5.0, 0.0))

    def test_one_output_is_a_column(self):
        self.assertEqual(OneOutput(sum_and_twice, 1)(torch.ones(3, 2)).tolist(), [[4.0]] * 3)

    def test_explanations_are_in_double_precision(self):
        self.assertEqual(Explanation(torch.ones(2)).units.dtype, torch.double)


if __name__ == "__main__":
    unittest.main()
