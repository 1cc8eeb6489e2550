import unittest

import torch

import metrics
import truths

SIZE = 300


def retrieval(task, tokens):
    first = task.name in ("retrieval, LSTM", "retrieval, GRU")
    question, rest = (tokens[0], tokens[1:]) if first else (tokens[-1], tokens[:-1])
    return rest[rest.index(question) + 1]


def copying(task, tokens):
    before, behind = tokens[: tokens.index(1)], tokens[tokens.index(1) + 1 :]
    return before[len(behind)]


def agreement(task, tokens):
    first_noun = next(token for token in tokens if 1 <= token <= 12)
    return 6 * (tokens[-1] - 13) + (first_noun - 1) % 6


def modular_sums(task, tokens):
    first, second = [token - 1 for token in tokens[:-1] if 1 <= token <= 7]
    return (first + second if tokens[-1] == 8 else first - second) % 7


def brackets(task, tokens):
    still_open = []
    for token in tokens:
        if 1 <= token <= 4:
            still_open.append(token)
        elif token and still_open:
            # An opening one may have been removed.
            assert token - 4 == still_open.pop()
    return still_open[-1] - 1


ANSWERS = {
    "retrieval": retrieval,
    "copying": copying,
    "agreement": agreement,
    "modular sums": modular_sums,
    "nested brackets": brackets,
}


class Roles(unittest.TestCase):
    """Each task of tokens is answered once more, from the tokens, by a program that knows no roles."""

    @staticmethod
    def each():
        for task in truths.all_tasks():
            kind = task.name.partition(",")[0]
            if kind in ANSWERS:
                yield task, task.draw(SIZE, torch.Generator().manual_seed(4)), ANSWERS[kind]

    def test_answers(self):
        for task, drawn, answer in self.each():
            self.assertEqual([answer(task, row) for row in drawn.inputs.tolist()], drawn.classes.tolist(), task.name)

    def test_what_cannot_matter_can_be_removed_in_part_or_whole(self):
        for task, drawn, answer in self.each():
            generator = torch.Generator().manual_seed(5)
            idle = drawn.roles == metrics.CANNOT_MATTER
            for removed in [idle] + [drawn.removable(generator) for _ in range(3)]:
                self.assertTrue((idle | ~removed).all())
                rows = task.without(drawn.inputs, removed)
                if not task.name.startswith("nested"):
                    self.assertEqual([answer(task, row) for row in rows.tolist()], drawn.classes.tolist())
                    continue
                # Behind the cause nothing is removed, so that it stays the last one open.
                causes = (drawn.roles == metrics.CAUSE).long().argmax(1).tolist()
                for row, cause, wanted in zip(rows.tolist(), causes, drawn.classes.tolist()):
                    self.assertEqual(answer(task, row[cause:]), wanted)

    def test_each_cause_decides(self):
        """Another token in its place gives another answer."""
        for task, drawn, answer in self.each():
            for row, roles, wanted in zip(drawn.inputs.tolist(), drawn.roles.tolist(), drawn.classes.tolist()):
                causes = [unit for unit, role in enumerate(roles) if role == metrics.CAUSE]
                self.assertEqual(len(causes), 2 if task.name.startswith("modular") else 1)
                for cause in causes:
                    changed = self.another(task, row[cause])
                    if task.name.startswith("nested"):
                        self.assertNotEqual(answer(task, [changed] + row[cause + 1 :]), wanted)
                    else:
                        self.assertNotEqual(answer(task, row[:cause] + [changed] + row[cause + 1 :]), wanted)

    @staticmethod
    def another(task, token):
        """A token of the same kind: the next but for numbers of the end, which have the one before."""
        kind = task.name.partition(",")[0]
        low, high = {
            "retrieval": (4, 23), "copying": (2, 7), "agreement": (1, 12), "modular sums": (1, 7), "nested brackets": (1, 4),
        }[kind]
        assert low <= token <= high
        return low + (token + 1 - low) % (high + 1 - low)

    def test_one_question_where_there_is_one(self):
        for task, drawn, _ in self.each():
            questions = (drawn.roles == metrics.QUESTION).sum(1)
            expected = 0 if task.name.startswith(("copying", "nested")) else 1
            self.assertTrue((questions == expected).all())

    def test_brackets_are_a_prefix_of_a_balanced_text(self):
        task = truths.Brackets("nested brackets", None)
        drawn = task.draw(SIZE, torch.Generator().manual_seed(6))
        for row in drawn.inputs.tolist():
            still_open = []
            for token in row:
                if token <= 4:
                    still_open.append(token)
                else:
                    self.assertEqual(token - 4, still_open.pop())
                self.assertLessEqual(len(still_open), task.deepest)
            self.assertGreater(row[-1], 4)
            self.assertTrue(still_open)


if __name__ == "__main__":
    unittest.main()
