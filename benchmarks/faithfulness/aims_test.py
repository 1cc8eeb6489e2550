import unittest

import aims


def findings(first, **others):
    return {"cause_first": first, "conditioning": 1.0, "processor_ms_per_sample": 1.0, **others}


def task(*networks, same=None, causes=1):
    """A task with one baseline; of each network the findings by method."""
    made = [{"starts": [{"start": "zero", "methods": methods}]} for methods in networks]
    return {"name": "task", "causes": causes, "same": same or {}, "networks": made}


class Repeated(unittest.TestCase):
    def test_what_agrees_everywhere_is_taken(self):
        result = task(
            {"Addend a": findings(0.5), "Addend b": findings(0.5, processor_ms_per_sample=2.0), "Addend c": findings(0.5)},
            {"Addend a": findings(0.7), "Addend b": findings(0.7), "Addend c": findings(0.8)},
        )
        result["same"] = aims.take_repeated(result["networks"])
        self.assertEqual(result["same"], {"Addend b": "Addend a"})
        self.assertEqual([list(part["starts"][0]["methods"]) for part in result["networks"]], [["Addend a", "Addend c"]] * 2)
        self.assertAlmostEqual(aims.mean(result, "Addend b", "cause_first"), 0.6)
        self.assertAlmostEqual(aims.mean(result, "Addend c", "cause_first"), 0.65)

    def test_the_first_of_several_stays(self):
        result = task({"Addend %s" % name: findings(0.5) for name in "abc"})
        self.assertEqual(aims.take_repeated(result["networks"]), dict.fromkeys(("Addend b", "Addend c"), "Addend a"))

    def test_other_methods_stay(self):
        result = task({"Addend a": findings(1.0), "occlusion": findings(1.0)})
        self.assertEqual(aims.take_repeated(result["networks"]), {})


class Aims(unittest.TestCase):
    FROM_F = "F not below integrated gradients"

    def reached(self, difference, deviation):
        networks = [{aims.OURS: findings(1.0, difference=difference, difference_deviation=deviation)} for _ in range(3)]
        return aims.reached(task(*networks), 0, aims.OURS, self.FROM_F)

    def test_the_interval_of_a_mean_of_three_networks(self):
        # 1.96 * 0.01 / sqrt(3) is 0.0113.
        self.assertEqual(self.reached(-0.011, 0.01), (True, "-0.011 \u00b1 0.011"))
        self.assertEqual(self.reached(-0.012, 0.01), (False, "-0.012 \u00b1 0.011"))
        self.assertEqual(self.reached(0.0, 0.0), (True, "+0.000 \u00b1 0.000"))

    def test_causes(self):
        entry = findings(0.99, difference_deviation=0.0)
        self.assertEqual(aims.reached(task({aims.OURS: entry}), 0, aims.OURS, "cause first in 99 %"), (True, "99.0 %"))
        self.assertIsNone(aims.reached(task({aims.OURS: entry}, causes=2), 0, aims.OURS, "cause first in 99 %"))
        self.assertIsNone(aims.reached(task({aims.OURS: entry}), 0, "occlusion", "cause first in 99 %"))


if __name__ == "__main__":
    unittest.main()
