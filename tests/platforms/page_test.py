"""The tables of platforms say what the result files say."""

import os
import sys
import unittest

sys.path.insert(0, os.path.abspath("tests/platforms"))

import page


def counts(passed, failed=0, skipped=0):
    return {"passed": passed, "failed": failed, "skipped": skipped}


def result(release, libtorch, **folders):
    return {
        "release": release,
        "mode": "workspace",
        "date": "2026-11-29",
        "versions": {"libtorch": libtorch, "gcc": "12.2.0", "java": None},
        "folders": {name.replace("__", "/").replace("_c_", ":"): each for name, each in folders.items()},
    }


class PageTest(unittest.TestCase):
    def test_a_row_for_each_language(self):
        both = [
            result("pip-2.10.0", "2.10.0", core=counts(3, 1), c_api=counts(2, 0, 5), tests__conformance_c_cpp=counts(40, 2)),
            result("debian12", "1.13.1", core=counts(7)),
        ]
        rows = [line for line in page.platforms(both).splitlines() if line.startswith("| ") and "language" not in line]
        self.assertEqual(
            rows,
            [
                "| 1.13.1 | debian12 | C++ | core | 7 | 0 | 0 | 2026-11-29 |",
                "| 2.10.0 | pip | C++ | core, conformance | 43 | 3 | 0 | 2026-11-29 |",
                "| 2.10.0 | pip | C | interface | 2 | 0 | 5 | 2026-11-29 |",
            ],
        )
        self.assertIn("- LibTorch 2.10.0 of pip: GCC 12.2.0", page.platforms(both).splitlines())

    def test_every_folder_that_is_counted_has_a_name(self):
        sys.path.insert(0, os.path.abspath("tools"))
        import matrix_result

        self.assertEqual(set(page._PARTS), set(matrix_result.FOLDERS) | {"other"})

    def test_the_last_trial_counts(self):
        trial = {"system": "bookworm", "python": "3.11.2", "torch": "2.6.0", "date": "2026-11-29"}
        table = page.wheel([dict(trial, result="FAILED"), dict(trial, result="ran"), dict(trial, torch="2.15.0", result="ran")])
        self.assertEqual(
            table.splitlines(),
            [
                "| system | Python | torch 2.6.0 | torch 2.15.0 |",
                "|---|---|---|---|",
                "| bookworm | 3.11.2 | ran, 2026-11-29 | ran, 2026-11-29 |",
            ],
        )

    def test_only_what_is_between_the_marks_is_written(self):
        old = "a\n<!-- wheel: begin -->\nold\n<!-- wheel: end -->\nb\n"
        self.assertEqual(page.rewrite(old, {"wheel": "new"}), "a\n<!-- wheel: begin -->\n\nnew\n\n<!-- wheel: end -->\nb\n")
        self.assertEqual(page.rewrite(page.rewrite(old, {"wheel": "new"}), {"wheel": "new"}), page.rewrite(old, {"wheel": "new"}))
        with self.assertRaises(SystemExit):
            page.rewrite(old, {"platforms": "new"})


if __name__ == "__main__":
    unittest.main()
