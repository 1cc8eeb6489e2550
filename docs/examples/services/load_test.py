"""Loads a service of this folder on the loopback and judges every answer.

    python3 load_test.py --rows heldout.safetensors [--requests 100000] -- COMMAND...
    python3 load_test.py --rows heldout.safetensors --url http://127.0.0.1:8080
    python3 load_test.py --rows heldout.safetensors --body 3

COMMAND starts the service, which says on its first line where it listens; it is stopped at the end by SIGTERM. With
--url a service that runs already is asked, and goes on. --body only prints what a request for a row sends. Needs nothing but
Python.

About one request in eight is bad, late, or left by its caller; which ones is drawn from --seed. The program ends with 1 if
an answer has another status than it has to have, if contributions + reference + leftover are not the score, if a row does
not always have the same bits, or if a connection is closed that nobody asked to close.
"""

import argparse
import collections
import http.client
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

# kind -> (share, statuses that it may have); "left" kinds are closed by the caller and have no answer.
KINDS = collections.OrderedDict([
    ("good", (0.870, {200})),
    ("not JSON", (0.010, {400})),
    ("cut off", (0.010, {400})),
    ("a feature is missing", (0.010, {400})),
    ("an unknown feature", (0.010, {400})),
    ("NaN", (0.010, {400})),
    ("a text", (0.010, {400})),
    ("too large", (0.010, {413})),
    ("no time", (0.020, {504})),
    ("little time", (0.020, {200, 504})),
    ("left in its body", (0.010, None)),
    ("left before the answer", (0.010, None)),
])
# The sum is computed in double precision of numbers in single precision.
TOLERANCE = 1e-5


class Rows:
    """Rows of a table with the names of its columns, from a safetensors file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            data = file.read()
        self.names = json.loads(head["__metadata__"]["names"])
        count, width = head["input"]["shape"]
        begin, end = head["input"]["data_offsets"]
        numbers = struct.unpack("<%df" % (count * width), data[begin:end])
        self.rows = [numbers[k * width:(k + 1) * width] for k in range(count)]
        begin, end = head["label"]["data_offsets"]
        self.labels = struct.unpack("<%dq" % count, data[begin:end])

    def features(self, row):
        return dict(zip(self.names, self.rows[row]))


def body_of(kind, features, rng):
    """The bytes that a request of this kind sends."""
    names = list(features)
    if kind == "a feature is missing":
        del features[rng.choice(names)]
    elif kind == "an unknown feature":
        features["no such column"] = 1.0
    elif kind == "NaN":
        features[rng.choice(names)] = rng.choice([math.nan, math.inf, -math.inf])
    elif kind == "a text":
        features[rng.choice(names)] = rng.choice(["1.0", None, True, [1.0]])
    text = json.dumps({"features": features})
    if kind == "not JSON":
        text = rng.choice(["", "no", "[]", "{}", '{"features": 1}', text + "}", text.replace(":", ";", 1), "\x00", "{" * 500])
    elif kind == "cut off":
        text = text[:rng.randrange(1, len(text) - 1)]
    elif kind == "too large":
        text += " " * rng.choice([20000, 100000])
    return text.encode("utf-8")


def judge(answer, rows):
    """Says what is wrong with a good answer; "" if nothing is."""
    contributions = answer["contributions"]
    if sorted(one["name"] for one in contributions) != sorted(rows.names):
        return "the contributions are not those of the columns"
    parts = [one["value"] for one in contributions] + [answer["reference"], answer["leftover"]]
    if not all(isinstance(part, (int, float)) and math.isfinite(part) for part in parts + [answer["score"]]):
        return "a number is not finite"
    magnitudes = [abs(one["value"]) for one in contributions]
    if magnitudes != sorted(magnitudes, reverse=True):
        return "the contributions are not in order"
    error = abs(math.fsum(parts) - answer["score"])
    if error > TOLERANCE * math.fsum(abs(part) for part in parts):
        return "the sum of the parts is off by %g" % error
    return ""


def read_metrics(address):
    """The metrics of a service: {name with labels: number}."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    if answer.status != 200:
        raise RuntimeError("/metrics has status %d" % answer.status)
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(number) for name, number in lines}


class Load:
    """A number of requests, by some connections beside each other."""

    def __init__(self, address, rows, requests, connections, seed):
        self.address = address
        self.rows = rows
        self.requests = requests
        self.seed = seed
        self.lock = threading.Lock()
        self.done = 0
        self.connects = 0
        self.closed_by_us = 0
        self.closed_after_413 = 0
        self.counts = collections.Counter()  # (kind, status)
        self.failures = []
        self.seconds = []
        self.bits = {}  # row -> its first answer
        self.resident = {}  # done -> bytes
        self.samples = {max(1, requests * percent // 100) for percent in (10, 50, 100)}
        self.threads = [
            threading.Thread(target=self._work, args=(index, requests // connections + (index < requests % connections)))
            for index in range(connections)
        ]

    def run(self):
        begin = time.monotonic()
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        self.duration = time.monotonic() - begin

    def _connect(self):
        with self.lock:
            self.connects += 1
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        connection.connect()
        return connection

    def _work(self, index, requests):
        rng = random.Random("%d %d" % (self.seed, index))
        kinds, weights = list(KINDS), [share for share, _ in KINDS.values()]
        connection = self._connect()
        for _ in range(requests):
            kind = rng.choices(kinds, weights)[0]
            try:
                connection = self._one(connection, kind, rng)
            except Exception as e:  # Whatever it is, it is told, and the test goes on.
                self._fail(kind, "%s: %s" % (type(e).__name__, e))
                connection.close()
                connection = self._connect()
            self._count_done()
        connection.close()

    def _fail(self, kind, what):
        with self.lock:
            self.failures.append("%s: %s" % (kind, what))

    def _count_done(self):
        with self.lock:
            self.done += 1
            done = self.done
        if done in self.samples:
            resident = read_metrics(self.address)["process_resident_memory_bytes"]
            with self.lock:
                self.resident[done] = int(resident)

    def _one(self, connection, kind, rng):
        """Sends one request and judges its answer. Gives the connection for the next one."""
        row = rng.randrange(len(self.rows.rows))
        body = body_of(kind, self.rows.features(row), rng)
        if KINDS[kind][1] is None:
            self._leave(connection, kind, body, rng)
            return self._connect()
        headers = {"Content-Type": "application/json"}
        if kind == "no time":
            headers["X-Timeout-Ms"] = "0"
        elif kind == "little time":
            headers["X-Timeout-Ms"] = "1"
        begin = time.perf_counter()
        try:
            connection.request("POST", "/score", body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # The service need not read all of a body that is too large before it answers.
            if kind != "too large":
                raise
        response = connection.getresponse()
        text = response.read()
        took = time.perf_counter() - begin
        with self.lock:
            self.counts[kind, response.status] += 1
        if response.status not in KINDS[kind][1]:
            self._fail(kind, "has status %d: %s" % (response.status, text[:200]))
        elif response.status == 200:
            self._judge_good(kind, row, text, took)
        elif not json.loads(text).get("error"):
            self._fail(kind, "does not say what is wrong: %s" % text[:200])
        if response.will_close or connection.sock is None:
            connection.close()
            if kind == "too large":
                with self.lock:
                    self.closed_after_413 += 1
            else:
                self._fail(kind, "the service closed the connection")
            return self._connect()
        return connection

    def _judge_good(self, kind, row, text, took):
        wrong = judge(json.loads(text), self.rows)
        with self.lock:
            if kind == "good":
                self.seconds.append(took)
            first = self.bits.setdefault(row, text)
        if first != text:
            wrong = wrong or "another answer than the one before for the same row"
        if wrong:
            self._fail(kind, wrong)

    def _leave(self, connection, kind, body, rng):
        head = "POST /score HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: %d\r\n\r\n" % (self.address + (len(body),))
        sent = body[:rng.randrange(len(body))] if kind == "left in its body" else body
        connection.sock.sendall(head.encode("ascii") + sent)
        if rng.random() < 0.5:
            # A reset, not an end: as of a caller whose machine is gone.
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        with self.lock:
            self.closed_by_us += 1
            self.counts[kind, "left"] += 1

    def report(self):
        """All figures, for people and for JSON."""
        ordered = sorted(self.seconds)
        quantile = lambda q: 1e3 * ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None
        labels = self.rows.labels
        right = sum((json.loads(text)["score"] > 0) == (labels[row] == 0) for row, text in self.bits.items())
        return {
            "requests": self.done,
            "seconds": round(self.duration, 1),
            "requests_per_second": round(self.done / self.duration, 1),
            "answers": {"%s -> %s" % key: count for key, count in sorted(self.counts.items(), key=str)},
            "connections": self.connects,
            "closed_by_callers": self.closed_by_us,
            "closed_after_413": self.closed_after_413,
            "rows": len(self.bits),
            "rows_with_the_sign_of_their_label": right,
            "latency_ms": {"median": quantile(0.5), "p99": quantile(0.99), "max": quantile(1)},
            "resident_bytes": {str(done): size for done, size in sorted(self.resident.items())},
            "failures": len(self.failures),
        }


class Started:
    """A service that a command starts, and SIGTERM ends."""

    def __init__(self, command, seconds=120):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True)
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line.startswith("listening on http://"):
            self.process.kill()
            raise RuntimeError("the service did not start; it said %r" % line)
        self.address = address_of(line.split()[-1])

    def stop(self, seconds=60):
        """Ends it; gives its exit code and the rest of what it said."""
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, said


def address_of(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def main(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    command = arguments[split + 1:]
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--body", type=int)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--url")
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments[:split])
    rows = Rows(options.rows)
    if options.body is not None:
        print(json.dumps({"features": rows.features(options.body)}))
        return 0
    if bool(command) == bool(options.url):
        parser.error("give either --url or -- COMMAND")
    service = Started(command) if command else None
    address = service.address if service else address_of(options.url)
    load = Load(address, rows, options.requests, options.connections, options.seed)
    load.run()
    report = load.report()
    if service:
        code, said = service.stop()
        report["exit_code"] = code
        if "stopped" not in said:
            load.failures.append("the service did not stop by itself: %r" % said)
    print(json.dumps(report, indent=2))
    for failure in load.failures[:20]:
        print("FAILED: " + failure, file=sys.stderr)
    return 1 if load.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
