import unittest

import drawing


class Axis(unittest.TestCase):
    def test_whole_decades_around_the_values(self):
        axis = drawing.Axis([0.3, 40.0], left=100, width=300)
        self.assertEqual(axis.ticks(), [0.1, 1.0, 10.0, 100.0])
        self.assertAlmostEqual(axis.place(1.0), 200)
        self.assertAlmostEqual(axis.place(100.0), 400)

    def test_one_that_goes_up(self):
        axis = drawing.Axis([1.0, 100.0], left=230, width=-200)
        self.assertEqual(axis.ticks(), [1.0, 10.0, 100.0])
        self.assertAlmostEqual(axis.place(10.0), 130)

    def test_zero_is_at_the_start(self):
        self.assertEqual(drawing.Axis([0.0, 5.0], left=10, width=50).place(0.0), 10)

    def test_ticks_have_room(self):
        for width in (100, 150, 200):
            self.assertLessEqual(len(drawing.Axis([1e-9, 10.0], 0, width).ticks()), width // 50 + 1)


class Numbers(unittest.TestCase):
    def test_two_digits_or_all_before_the_point(self):
        told = [drawing.digits(value) for value in (0, 0.0312, 0.5, 3.0, 3.26, 41.2, 1234.5)]
        self.assertEqual(told, ["0", "0.031", "0.5", "3", "3.3", "41", "1234"])

    def test_large_numbers_are_grouped(self):
        told = [drawing.thousands(value) for value in (0.5, 43.2, 995.0, 48_812.0, 1_240_000.0)]
        self.assertEqual(told, ["0.5", "43", "1,000", "49,000", "1,200,000"])

    def test_units(self):
        self.assertEqual(drawing.milliseconds(2500.0), "2.5 s")
        self.assertEqual(drawing.milliseconds(12.0), "12 ms")
        self.assertEqual(drawing.mebibytes(0.0), "under 0.1 MiB")
        self.assertEqual(drawing.mebibytes(3072.0), "3 GiB")
        self.assertEqual(drawing.power(1.4e-07), "1e-7")
        self.assertEqual(drawing.power(1.1e10), "1e10")
        self.assertEqual(drawing.power(0.0), "0")


if __name__ == "__main__":
    unittest.main()
