"""Checks a log of decisions without Addend: its chain, its digests, and the sums of its numbers.

usage: check_log.py LOG [MODEL]
"""

import base64
import hashlib
import json
import math
import sys


def number(value):
    """Writes a number like ECMAScript, from the digits of Python's repr(), which are the shortest too."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len((whole + part).lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if count > 1 else "") + "e%+d" % (point - 1)
    return ("-" if value < 0 else "") + text


def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{%s}" % ",".join("%s:%s" % (canonical(key), canonical(value[key])) for key in keys)
    if isinstance(value, list):
        return "[%s]" % ",".join(map(canonical, value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def sha256(*pieces):
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode() if isinstance(piece, str) else piece)
    return digest.hexdigest()


def check_numbers(record):
    """Each sum, as far as float64 holds it; reference and contributions were computed in the model's dtype."""
    for target in record["targets"]:
        parts = [target["reference"], target["leftover"], *target["contributions"]]
        recovery = math.fsum(parts)
        error = recovery - target["value"]
        scale = sum(map(abs, parts)) + abs(target["value"])
        assert abs(error - target["recovery_error"]) <= 1e-12 * scale, record["number"]
        assert abs(error) <= 1e-4 * scale, record["number"]
        assert len(target["contributions"]) == len(record["components"])


def check_inputs(inputs):
    """The salted digest, where the record holds what it is of. Gives whether it does."""
    if not all("data" in tensor for tensor in inputs["tensors"]):
        return False
    pieces = [bytes.fromhex(inputs["salt"])]
    for tensor in inputs["tensors"]:
        pieces += [canonical({key: tensor[key] for key in ("dtype", "name", "shape")}) + "\n",
                   base64.b64decode(tensor["data"])]
    assert sha256(*pieces) == inputs["sha256"]
    return True


def check(path, model=None):
    """Raises AssertionError where something is wrong; gives how many records there are, and how many keep inputs."""
    previous, kept, number_of = None, 0, 0
    requests = set()
    with open(path, "rb") as file:
        for number_of, line in enumerate(file, 1):
            assert line.endswith(b"\n"), number_of
            record = json.loads(line)
            assert canonical(record).encode() + b"\n" == line, number_of
            own = record.pop("hash")
            assert sha256(canonical(record)) == own, number_of
            assert record["number"] == number_of and record["previous"] == previous, number_of
            previous = own
            request = record["request"]
            if "content" in request:
                assert sha256(canonical(request["content"])) == request["sha256"], number_of
                requests.add(request["sha256"])
            assert request["sha256"] in requests, number_of
            if model is not None:
                with open(model, "rb") as content:
                    assert record["model"]["sha256"] == sha256(content.read()), number_of
            check_numbers(record)
            kept += check_inputs(record["inputs"])
    return number_of, kept


if __name__ == "__main__":
    print("%d records, %d of them with their inputs: all is well" % check(*sys.argv[1:]))
