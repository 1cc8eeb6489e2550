"""Tensors, safetensors, the generator, frames and texts: what goes over the wire, bit by bit."""

import json
import math
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from runner import generator, protocol, safetensors  # noqa: E402
from runner.tensor import Tensor, broadcast, full, stack, strides  # noqa: E402


class TensorTest(unittest.TestCase):
    def test_bytes_are_little_endian(self):
        self.assertEqual(Tensor("f64", (1,), [1.5]).raw, bytes.fromhex("000000000000f83f"))
        self.assertEqual(Tensor("f32", (1,), [1.5]).raw, bytes.fromhex("0000c03f"))
        self.assertEqual(Tensor("i64", (2,), [1, -2]).raw, bytes.fromhex("0100000000000000feffffffffffffff"))
        self.assertEqual(Tensor("i16", (1,), [-2]).raw, bytes.fromhex("feff"))
        self.assertEqual(Tensor("bool", (2,), [True, False]).raw, bytes([1, 0]))

    def test_numbers_come_back(self):
        for dtype, numbers in [
            ("f64", [0.1, -0.0, math.inf, 5e-324]),
            ("f32", [0.5, -0.25, math.inf, 1e-45]),
            ("f16", [0.5, -65504.0, 6e-8, -math.inf]),
            ("bf16", [0.5, -3.0, 1e38, math.inf]),
            ("i8", [-128, 127]),
            ("u8", [0, 255]),
        ]:
            tensor = Tensor(dtype, (len(numbers),), numbers)
            again = Tensor(dtype, tensor.shape, raw=tensor.raw)
            self.assertEqual(list(again.numbers), list(tensor.numbers), dtype)
            self.assertEqual(again, tensor)

    def test_rounding_to_half_types(self):
        # bfloat16 has 8 bits: 1 + 2^-8 is a tie, which goes to the even neighbour; 1 + 3 * 2^-8 goes up.
        numbers = Tensor("bf16", (5,), [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, 3.4e38, math.nan]).numbers
        self.assertEqual(list(numbers[:4]), [1.0, 1 + 2.0**-6, 1 + 2.0**-7, math.inf])
        self.assertTrue(math.isnan(numbers[4]))
        self.assertEqual(list(Tensor("f16", (3,), [1 + 2.0**-11, 1e6, -1e6]).numbers), [1.0, math.inf, -math.inf])

    def test_beyond_float32_is_infinity(self):
        self.assertEqual(list(Tensor("f32", (2,), [1e300, -1e300]).numbers), [math.inf, -math.inf])

    def test_wrong_counts_are_refused(self):
        with self.assertRaises(ValueError):
            Tensor("f64", (2, 2), [1.0, 2.0, 3.0])
        with self.assertRaises(ValueError):
            Tensor("f64", (2,), raw=b"\0" * 15)

    def test_complex_numbers_are_pairs(self):
        tensor = Tensor("c128", (2,), [1, 2, 3, 4])
        wire = tensor.on_the_wire()
        self.assertEqual((wire.dtype, wire.shape, list(wire.numbers)), ("f64", (2, 2), [1, 2, 3, 4]))
        self.assertEqual(wire.as_complex(), tensor)
        with self.assertRaises(ValueError):
            Tensor("f64", (3,), [1, 2, 3]).as_complex()

    def test_rows_and_stacks(self):
        tensor = Tensor("i32", (2, 3), [1, 2, 3, 4, 5, 6])
        self.assertEqual([list(row.numbers) for row in tensor.rows()], [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(stack(tensor.rows()), tensor)

    def test_broadcast(self):
        column = Tensor("f64", (2, 1), [1, 2])
        self.assertEqual(list(broadcast(column, (2, 3)).numbers), [1, 1, 1, 2, 2, 2])
        self.assertEqual(list(broadcast(Tensor("f64", (3,), [1, 2, 3]), (2, 3)).numbers), [1, 2, 3, 1, 2, 3])
        self.assertEqual(list(broadcast(full("f32", (), 7), (2,)).numbers), [7, 7])
        with self.assertRaises(ValueError):
            broadcast(column, (3, 3))
        self.assertEqual(strides((2, 3, 4)), [12, 4, 1])


class SafetensorsTest(unittest.TestCase):
    def test_bytes(self):
        """Against the format's description, by hand."""
        blob = safetensors.encode({"a": Tensor("u8", (1,), [7]), "b": Tensor("f64", (1,), [1.5])}, {"key": "value"})
        (size,) = struct.unpack_from("<Q", blob)
        self.assertEqual(size % 8, 0)
        self.assertEqual(
            json.loads(blob[8 : 8 + size]),
            {
                "__metadata__": {"key": "value"},
                "b": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
                "a": {"dtype": "U8", "shape": [1], "data_offsets": [8, 9]},
            },
        )
        self.assertEqual(blob[8 + size :], bytes.fromhex("000000000000f83f07"))

    def test_round_trip(self):
        tensors = {
            "x": Tensor("f32", (2, 2), [1, -0.0, math.inf, 1e-45]),
            "none": Tensor("bf16", (0, 3), []),
            'h\u00e9\n"': Tensor("bool", (), [1]),
        }
        metadata = {"lines": "a\tb\nc", "": "\u20ac"}
        again, texts = safetensors.decode(safetensors.encode(tensors, metadata))
        self.assertEqual(texts, metadata)
        self.assertEqual(again.keys(), tensors.keys())
        for name, tensor in tensors.items():
            self.assertEqual(again[name], tensor)

    def test_malformed(self):
        good = safetensors.encode({"a": Tensor("f64", (1,), [1.5])}, {})

        def of(header, body=b""):
            text = header if isinstance(header, bytes) else json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + body

        for blob in [
            b"",
            good[:7],
            good[:20],
            good[:-1],
            good + b"\0",
            of(b"{"),
            of(b"[]"),
            of(b"\xff"),
            of({"__metadata__": {"a": 1}}),
            of({"a": 3}),
            of({"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 1]}}, b"\0"),
            of({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 1]}}, b"\0"),
            of({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}}, b"\0"),
            of({"a": {"dtype": "U8", "shape": [1]}}, b"\0"),
        ]:
            with self.subTest(blob=blob), self.assertRaises(safetensors.Malformed):
                safetensors.decode(blob)


class GeneratorTest(unittest.TestCase):
    def test_splitmix64(self):
        """The numbers that the author's program gives for the seeds 1234567 and 0."""
        draw = generator.SplitMix64(1234567)
        self.assertEqual(
            [draw.next() for _ in range(5)],
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821],
        )
        draw = generator.SplitMix64(0)
        self.assertEqual([draw.next() for _ in range(2)], [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4])

    def test_uniform(self):
        numbers = generator.uniform("f64", (2,), -1, 1, 0).numbers
        self.assertEqual(list(numbers), [-1 + 2 * (0xE220A8 / 2.0**24), -1 + 2 * (0x6E789E / 2.0**24)])
        many = generator.uniform("f32", (1000,), 2, 5, 9).numbers
        self.assertTrue(all(2 <= number < 5 for number in many))
        self.assertLess(abs(sum(many) / 1000 - 3.5), 0.1)
        whole = generator.uniform("i64", (1000,), -2, 3, 9).numbers
        self.assertEqual(set(whole), {-2, -1, 0, 1, 2})
        self.assertEqual(len(generator.uniform("c64", (3,), 0, 1, 1).numbers), 6)


class TextTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(protocol.number(0.5), "3fe0000000000000")
        self.assertEqual(protocol.number_of("fff0000000000000"), -math.inf)
        for text in ("", "0.5", "3fe000000000000", "zzzzzzzzzzzzzzzz"):
            with self.assertRaises(protocol.ProtocolError):
                protocol.number_of(text)

    def test_lists(self):
        text = protocol.lines([("i64", "dim", "3"), ("none", "", "")])
        self.assertEqual(text, "i64\tdim\t3\nnone\t\t")
        self.assertEqual(protocol.fields(text, 3), [("i64", "dim", "3"), ("none", "", "")])
        self.assertEqual(protocol.fields("", 3), [])
        with self.assertRaises(protocol.ProtocolError):
            protocol.fields("a\tb", 3)

    def test_frames(self):
        request = protocol.Request("call", {"op": "aten::relu", "parts": ""}, {"z": Tensor("c64", (1,), [1, 2])})
        frame = request.encode(7)
        self.assertEqual(int.from_bytes(frame[:4], "little"), len(frame) - 4)
        tensors, entries = safetensors.decode(frame[4:])
        self.assertEqual(entries, {"verb": "call", "op": "aten::relu", "complex": "z", "id": "7"})
        self.assertEqual((tensors["z"].dtype, tensors["z"].shape), ("f32", (1, 2)))

    def test_requests_are_known_by_their_content(self):
        def request(number):
            return protocol.Request("call", {"op": "f"}, {"x": Tensor("f64", (1,), [number])})

        self.assertEqual(request(1).key, request(1).key)
        self.assertNotEqual(request(1).key, request(2).key)
        self.assertNotEqual(request(0.0).key, request(-0.0).key)
        self.assertNotEqual(request(1).key, request(1).again("again").key)

    def test_answers(self):
        one = Tensor("f64", (1,), [1])
        results = "composition\tout\tk\ntensor\t\tz\nnumber\t\t3fe0000000000000\nnone\t\t"
        blob = safetensors.encode(
            {"k.components": one, "t": one, "z": Tensor("f64", (1, 2), [3, 4])},
            {"code": "OK", "complex": "z", "payload": "op\taten::f", "results": results},
        )
        answer = protocol.Answer(blob)
        self.assertEqual([result.kind for result in answer.results], ["composition", "tensor", "number", "none"])
        self.assertEqual(answer.results[0].components, one)
        self.assertEqual(answer.results[1].tensor, Tensor("c128", (1,), [3, 4]))
        self.assertEqual(answer.results[2].number, 0.5)
        self.assertEqual(answer.payload(), {"op": "aten::f"})
        with self.assertRaises(protocol.ProtocolError):
            answer.results[0].leftover
        for entries in ({"results": "tensor\t\tnothing"}, {"results": "thing\t\tt"}, {"results": "tensor"}):
            with self.assertRaises(protocol.ProtocolError):
                protocol.Answer(safetensors.encode({"t": one}, entries)).results
        for entries in ({"complex": "nothing"}, {"complex": "t"}):
            with self.assertRaises(protocol.ProtocolError):
                protocol.Answer(safetensors.encode({"t": one}, entries))
        with self.assertRaises(protocol.ProtocolError):
            protocol.Answer(b"no safetensors")


if __name__ == "__main__":
    unittest.main()
