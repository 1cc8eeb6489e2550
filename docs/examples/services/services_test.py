"""Each service answers with the numbers of the model, refuses what it has to, and survives bad callers."""

import csv
import importlib.util
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load_test  # noqa: E402, it lies beside this file

HERE = "docs/examples/services/"
TABLE = "docs/examples/models/breast_cancer/"
LANGUAGES = os.environ["LANGUAGES"].split()
PROGRAM = os.path.abspath(os.environ["ADDEND_PROGRAM"])
REQUESTS = int(os.environ["REQUESTS"])


# An implementation that a service needs, and nobody has given.
MISSING = os.environ.get("NEEDS", "")
MISSING = "" if os.path.exists(MISSING) else MISSING


def command(language, *options, folder=TABLE, model=None):
    # DJL serves TorchScript.
    model = model or ("model.pt" if language == "djl" else "model.pt2")
    files = [os.path.join(folder, name) for name in (model, "baseline.npy", "sample.safetensors")]
    program = os.path.abspath(HERE + "score_service_%s.sh" % language)
    return [program] + [os.path.abspath(file) for file in files] + list(options)


def start(language, *options, **files):
    return load_test.Started(command(language, "--port", "0", *options, **files))


def kinds(language):
    """The files that train.py can write with this PyTorch, and that the service takes: their endings."""
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    if language == "djl":
        return ["pt"]
    found = ["pt"] + (["pt2"] if version >= (2, 6) else [])
    needed = [] if version < (2, 0) else ["onnx"] if version < (2, 9) else ["onnx", "onnxscript"]
    return found + (["onnx"] if all(map(importlib.util.find_spec, needed)) else [])


# Reasons in words, as concepts.json asks for them, of a column in a row and in the baseline.
TOLD = {
    "income": ("R01", lambda value, usual: "Income of %.0f EUR, where %.0f EUR is usual" % (value, usual)),
    "debt_share": ("R02", lambda value, usual: "Debt of %.2f of the income, where %.2f is usual" % (value, usual)),
    "years_in_job": ("R03", lambda value, usual: "%.1f years in the job" % value),
    "late_payments": ("R04", lambda value, usual: "Late payments: %.0f" % value),
}


def reasons_by_hand(answer, row, usual):
    """[(code, text, contribution), ...]: the two largest columns that raise the score, each 5 % of its move or more."""
    least = 0.05 * abs(answer["score"] - answer["reference"])
    raising = sorted((-one["value"], one["name"]) for one in answer["contributions"] if one["value"] >= max(least, 1e-300))
    return [(TOLD[name][0], TOLD[name][1](row[name], usual[name]), -value) for value, name in raising[:2]]


class Connection:
    """One keep-alive connection, byte by byte."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=30)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode("utf-8"))

    def answer(self):
        """(status, headers, text) of the next answer; None where the service has closed the connection."""
        line = self.file.readline()
        if not line:
            return None
        headers = {}
        while True:
            header = self.file.readline().decode("latin-1").strip()
            if not header:
                break
            name, value = header.split(":", 1)
            headers[name.lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            size = None
            while size != 0:
                size = int(self.file.readline(), 16)
                body += self.file.read(size)
                self.file.readline()
        else:
            body = self.file.read(int(headers["content-length"]))
        return int(line.split()[1]), headers, body.decode("utf-8")

    def ask(self, body, method="POST", path="/score", headers=""):
        body = body if isinstance(body, bytes) else body.encode("utf-8")
        self.send(("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n" % (
            method, path, len(body), headers)).encode("ascii") + body)
        return self.answer()


@unittest.skipIf(MISSING, "there is no %s: see ADDEND_IMPLEMENTATIONS" % MISSING)
class ServiceTest:
    """Tests that hold for the service in each language."""

    @classmethod
    def setUpClass(cls):
        # The folder to which DJL copies its libraries, the first time.
        os.environ["DJL_CACHE_DIR"] = os.environ["TEST_TMPDIR"] + "/djl"
        cls.rows = load_test.Rows(TABLE + "heldout.safetensors")
        cls.service = start(cls.language)

    @classmethod
    def tearDownClass(cls):
        cls.service.stop()
        cls.service.process.stdout.close()

    def body(self, row=0, **changed):
        return json.dumps({"features": dict(self.rows.features(row), **changed)})

    def test_scores_are_those_of_the_model(self):
        model = torch.jit.load(TABLE + "model.pt")
        with torch.no_grad():
            logits = model(torch.tensor(self.rows.rows)).double()
            baseline = model(torch.from_numpy(numpy.load(TABLE + "baseline.npy"))).double()
        with Connection(self.service.address) as connection:
            for row in range(len(self.rows.rows)):
                status, headers, text = connection.ask(self.body(row))
                self.assertEqual((status, headers["content-type"]), (200, "application/json"))
                answer = json.loads(text)
                expected = float(logits[row, 0] - logits[row, 1])
                self.assertAlmostEqual(answer["score"], expected, delta=1e-5 * max(1, abs(expected)))
                self.assertAlmostEqual(answer["reference"], float(baseline[0, 0] - baseline[0, 1]), delta=1e-5)
                self.assertEqual(load_test.judge(answer, self.rows), "")

    def test_features_may_come_in_any_order(self):
        features = self.rows.features(3)
        backward = dict(reversed(list(features.items())))
        with Connection(self.service.address) as connection:
            expected = connection.ask(json.dumps({"features": features}))[2]
            self.assertEqual(connection.ask(json.dumps({"features": backward}))[2], expected)
            spaced = json.dumps({"features": features}, indent=3).replace("mean radius", "mean\\u0020radius")
            self.assertEqual(connection.ask(spaced)[2], expected)

    def test_a_row_equal_to_the_baseline_has_no_contributions(self):
        mean = dict(zip(self.rows.names, map(float, numpy.load(TABLE + "baseline.npy")[0])))
        with Connection(self.service.address) as connection:
            answer = json.loads(connection.ask(json.dumps({"features": mean}))[2])
        self.assertEqual(answer["score"], answer["reference"])
        self.assertEqual({one["value"] for one in answer["contributions"]}, {0})

    def test_warnings_come_with_the_answer(self):
        model = torch.jit.load(TABLE + "model.pt")
        scores = lambda rows: (model(rows).double() @ torch.tensor([1.0, -1.0]).double()).tolist()  # noqa: E731
        with torch.no_grad():
            rows = torch.tensor(self.rows.rows)
            (least,) = scores(torch.from_numpy(numpy.load(TABLE + "baseline.npy")))
            of_rows = scores(rows)
            below, above = rows[of_rows.index(min(of_rows))], rows[of_rows.index(max(of_rows))]
            # A row between two, whose score is that of the baseline: its parts cancel.
            for _ in range(40):
                middle = (below + above) / 2
                below, above = (middle, above) if scores(middle[None])[0] < least else (below, middle)
        with Connection(self.service.address) as connection:
            cancelling = json.loads(connection.ask(self.body(**dict(zip(self.rows.names, middle.tolist()))))[2])
            usual = json.loads(connection.ask(self.body())[2])
        total = math.fsum(abs(one["value"]) for one in cancelling["contributions"])
        self.assertGreater(total, 1000 * abs(cancelling["score"] - cancelling["reference"]))
        self.assertIn("ill-conditioned", " ".join(cancelling["notes"]))
        self.assertEqual(usual["notes"], [])

    def test_bad_bodies_are_refused_and_the_connection_goes_on(self):
        good = self.body()
        short = self.rows.features(0)
        del short["mean area"]
        form = 'the body is not JSON of the form {"features": {NAME: NUMBER, ...}}'
        cases = [
            ("", form), ("{", form), (good[:-1], form), (good + "1", form), (good + "\x00", form),
            (good.replace('"features"', '"rows"'), ""), (good[:-1] + ', "more": 1}', form), ('{"features": []}', form),
            (good.replace('"mean radius": ', '"mean radius": +'), ""), (good.replace(", ", ",, ", 1), form),
            (good.replace('"mean radius": ', '"mean radius": 0'), ""),
            (b'{"features": {"\xff": 1}}', "JSON"),
            (self.body(**{"mean radius": float("nan")}), ""), (self.body(**{"mean radius": float("inf")}), ""),
            (self.body(**{"mean radius": None}), 'feature "mean radius" has to be a finite number'),
            (self.body(**{"mean radius": "12"}), 'feature "mean radius" has to be a finite number'),
            (self.body(**{"mean radius": 1e300}), 'feature "mean radius" has to be a finite number in single precision'),
            (self.body(colour=1), 'there is no feature "colour"; the model takes these 30: mean radius, mean texture, '),
            (json.dumps({"features": short}), 'feature "mean area" is missing: 29 of 30 are given'),
            ('{"features": {}}', 'feature "mean radius" is missing: 0 of 30 are given'),
            (good.replace("mean texture", "mean radius"), 'feature "mean radius" is given twice'),
        ]
        with Connection(self.service.address) as connection:
            for body, said in cases:
                with self.subTest(body[-60:]):
                    status, _, text = connection.ask(body)
                    self.assertEqual(status, 400, text)
                    error = json.loads(text)["error"]
                    self.assertTrue(error)
                    self.assertIn(said, error)
            self.assertEqual(connection.ask(good)[0], 200)

    def test_a_score_that_is_not_finite_is_no_answer(self):
        with Connection(self.service.address) as connection:
            status, _, text = connection.ask(json.dumps({"features": dict.fromkeys(self.rows.names, 3e38)}))
            self.assertEqual((status, json.loads(text)["error"]), (422, "the model gives this row no finite score"))
            self.assertEqual(connection.ask(self.body())[0], 200)

    def test_large_bodies_are_refused(self):
        with Connection(self.service.address) as connection:
            # Bodies of the largest size that is allowed, and of one byte more.
            limit = 16384
            self.assertEqual(connection.ask(self.body().ljust(limit))[0], 200)
        for length in (limit + 1, 300000):
            with Connection(self.service.address) as connection:
                status, _, text = connection.ask(self.body().ljust(length))
                self.assertEqual((status, json.loads(text)["error"]), (413, "a body has at most 16384 bytes"))
        with Connection(self.service.address) as connection:
            # In chunks, without a length that says so.
            connection.send("POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                connection.send("2000\r\n" + " " * 0x2000 + "\r\n")
            connection.send("0\r\n\r\n")
            self.assertEqual(connection.answer()[0], 413)

    def test_other_paths_and_methods_are_refused(self):
        with Connection(self.service.address) as connection:
            self.assertEqual(connection.ask("", "GET", "/nothing")[0], 404)
            for method, path in (("GET", "/score"), ("POST", "/health"), ("DELETE", "/metrics")):
                status, headers, text = connection.ask("", method, path)
                self.assertEqual(status, 405)
                self.assertEqual(headers["allow"], "POST" if path == "/score" else "GET")
                self.assertIn("POST /score", json.loads(text)["error"])
            self.assertEqual(json.loads(connection.ask("", "GET", "/health")[2]), {"status": "ok"})

    def test_time_is_limited(self):
        with Connection(self.service.address) as connection:
            status, _, text = connection.ask(self.body(), headers="X-Timeout-Ms: 0\r\n")
            self.assertEqual((status, json.loads(text)["error"]), (504, "the time is over"))
            for bad in ("-1", "soon", "1.5", "99999999999"):
                self.assertEqual(connection.ask(self.body(), headers="X-Timeout-Ms: %s\r\n" % bad)[0], 400)
            self.assertEqual(connection.ask(self.body(), headers="X-Timeout-Ms: 999999999\r\n")[0], 200)

    def test_metrics_count(self):
        before = load_test.read_metrics(self.service.address)
        with Connection(self.service.address) as connection:
            for _ in range(3):
                connection.ask(self.body())
            connection.ask("{")
            # Its count comes after its answer.
            time.sleep(0.2)
            after = load_test.read_metrics(self.service.address)
            text = connection.ask("", "GET", "/metrics")
        self.assertTrue(text[1]["content-type"].startswith("text/plain; version=0.0.4"))
        for key, more in (('score_requests_total{status="200"}', 3), ('score_requests_total{status="400"}', 1),
                          ("score_request_seconds_count", 4), ('score_request_seconds_bucket{le="+Inf"}', 4)):
            self.assertEqual(after[key], before.get(key, 0) + more, key)
        buckets = [count for key, count in after.items() if key.startswith("score_request_seconds_bucket")]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(len(buckets), 13)
        self.assertGreater(after["score_request_seconds_sum"], before["score_request_seconds_sum"])
        self.assertEqual(after["score_running"], 0)
        with open("/proc/%d/statm" % self.service.process.pid) as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.assertLess(abs(after["process_resident_memory_bytes"] / resident - 1), 0.2)

    def test_callers_that_leave_are_counted(self):
        before = load_test.read_metrics(self.service.address).get('score_requests_total{status="499"}', 0)
        body = self.body()
        with Connection(self.service.address) as connection:
            connection.send("POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
                len(body), body[:100]))
        for _ in range(100):
            after = load_test.read_metrics(self.service.address).get('score_requests_total{status="499"}', 0)
            if after > before:
                break
            time.sleep(0.05)
        self.assertEqual(after, before + 1)

    def test_what_is_too_much_is_refused(self):
        service = start(self.language, "--workers", "1", "--queue", "1")
        try:
            connections = [Connection(service.address) for _ in range(32)]
            busy = 0
            for _ in range(50):
                for connection in connections:
                    body = self.body()
                    connection.send("POST /score HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                answers = [connection.answer() for connection in connections]
                self.assertLessEqual({status for status, _, _ in answers}, {200, 503})
                self.assertIn(200, {status for status, _, _ in answers})
                for status, headers, text in answers:
                    if status == 503:
                        busy += 1
                        self.assertEqual(headers["retry-after"], "1")
                        self.assertEqual(json.loads(text)["error"], "the service is busy: 1 requests run and 1 wait")
                if busy:
                    break
            self.assertGreater(busy, 0)
            for connection in connections:
                connection.__exit__()
        finally:
            service.stop()
            service.process.stdout.close()

    def test_sigterm_finishes_what_runs_and_refuses_what_is_new(self):
        service = start(self.language, "--timeout-ms", "60000")
        body = self.body()
        half = len(body) // 2
        with Connection(service.address) as running, Connection(service.address) as idle:
            self.assertEqual(idle.ask(body)[0], 200)
            running.send("POST /score HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body[:half]))
            time.sleep(0.5)
            stopped = []
            stopper = threading.Thread(target=lambda: stopped.append(service.stop()))
            stopper.start()
            time.sleep(0.5)
            self.assertIsNone(service.process.poll())
            # Requests that come now are answered 503, or not at all.
            try:
                refused = idle.ask(body)
                self.assertIn(refused and refused[0], (503, None))
            except ConnectionError:
                pass
            try:
                with Connection(service.address) as late:
                    refused = late.ask(body)
                    self.assertIn(refused and refused[0], (503, None))
            except ConnectionError:
                pass
            running.send(body[half:])
            status, _, text = running.answer()
            self.assertEqual(status, 200)
            self.assertEqual(load_test.judge(json.loads(text), self.rows), "")
            stopper.join()
        code, said = stopped[0]
        self.assertEqual(code, {"java": 143, "djl": 143, "csharp": 0}[self.language])
        self.assertIn("stopped", said)
        service.process.stdout.close()

    def test_who_never_ends_is_not_waited_for(self):
        service = start(self.language, "--drain-seconds", "1", "--timeout-ms", "60000")
        with Connection(service.address) as stuck, Connection(service.address) as late:
            # A request that came too late leaves nothing that has to be ended.
            self.assertEqual(late.ask(self.body(), headers="X-Timeout-Ms: 0\r\n")[0], 504)
            stuck.send("POST /score HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{")
            time.sleep(0.3)
            begin = time.monotonic()
            self.assertIn("stopped", service.stop()[1])
            self.assertLess(time.monotonic() - begin, 20)
        service.process.stdout.close()

    def test_mistakes_at_the_start_are_told(self):
        for options, said in ((["--port", "x"], "--port takes a whole number of at least 0"),
                              (["--workers", "0"], "--workers takes a whole number of at least 1"),
                              (["--queue"], "--queue takes a whole number of at least 0"),
                              (["--colour", "1"], "there is no option --colour"),
                              (["--log"], "--log takes a file"),
                              (["one more"], "three files are needed")):
            with self.subTest(said):
                refused = subprocess.run(
                    command(self.language, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                    universal_newlines=True)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                self.assertIn(said, refused.stderr)
                self.assertIn("usage: ScoreService MODEL BASELINE SAMPLE", refused.stderr)

    def test_concepts_that_cannot_serve_are_told_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            for text, said in ((None, "concepts.json"), ("{}", "format"), (json.dumps({
                    "format": "addend.concepts", "version": 1, "concepts": [{"name": "Colour", "components": ["colour"]}],
            }), "the concept Colour names the component colour, which does not exist")):
                path = os.path.join(folder, "concepts.json")
                if text is not None:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                with self.subTest(said):
                    refused = subprocess.run(
                        command(self.language, "--port", "0", "--concepts", path), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, timeout=60, universal_newlines=True)
                    self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                    self.assertIn(said, refused.stderr)

    def test_from_training_to_audit(self):
        """The way that docs/services.md leads, with each kind of file that this PyTorch can write."""
        with tempfile.TemporaryDirectory() as folder, open("docs/services.md", encoding="utf-8") as file:
            page = re.search(r"\n## From training to audit\n(.*?)\n## ", file.read(), re.DOTALL).group(1)
            models = {kind: os.path.join(folder, "model." + kind) for kind in kinds(self.language)}
            subprocess.run([sys.executable, HERE + "train.py", *models.values()], check=True)
            for kind in models:
                with self.subTest(kind):
                    self.serve_and_audit(folder, kind, page)

    def serve_and_audit(self, folder, kind, page):
        def path(name):
            return os.path.join(folder, name)

        def verify(log, *arguments):
            done = subprocess.run([PROGRAM, "audit", "verify", log, *arguments], stdout=subprocess.PIPE, universal_newlines=True)
            return done.returncode, done.stdout

        model, log = path("model." + kind), path(kind + ".jsonl")
        with open(path("rows.csv"), encoding="utf-8") as file:
            rows = [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)]
        usual = dict(zip(TOLD, map(float, numpy.load(path("baseline.npy"))[0])))
        network = torch.jit.load(path("model.pt"))
        with torch.no_grad():
            logits = network(torch.tensor([[row[name] for name in TOLD] for row in [*rows, usual]])).double()
        scores = [float(one - other) for one, other in logits]

        # The request of the page, and its answer.
        asked = re.search(r"curl -d '(.*?)'", page).group(1)
        number = rows.index(json.loads(asked)["features"])
        printed = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL).group(1))
        chosen = [number] + list(range(5))
        service = start(self.language, "--concepts", path("concepts.json"), "--log", log, folder=folder, model="model." + kind)
        try:
            with Connection(service.address) as connection:
                answers = [connection.ask(json.dumps({"features": rows[k]})) for k in chosen]
                self.assertEqual(connection.ask("{")[0], 400)  # what is not scored is not recorded
        finally:
            service.stop()
            service.process.stdout.close()
        for k, (status, _, text) in zip(chosen, answers):
            self.assertEqual(status, 200, text)
            answer = json.loads(text)
            self.assertAlmostEqual(answer["score"], scores[k], delta=1e-5)
            self.assertAlmostEqual(answer["reference"], scores[-1], delta=1e-5)
            parts = math.fsum(one["value"] for one in answer["contributions"])
            self.assertAlmostEqual(parts, scores[k] - scores[-1], delta=1e-5)
            expected = reasons_by_hand(answer, rows[k], usual)
            self.assertEqual([(one["code"], one["text"], one["contribution"]) for one in answer["reasons"]], expected)
            self.assertEqual(answer["outcome"], "reasons" if expected else "no_principal_reason")
            self.assertTrue(expected or answer["notes"])
        answer = json.loads(answers[0][2])
        self.assertEqual(list(answer), list(printed))
        self.assertEqual([one["text"] for one in answer["reasons"]], [one["text"] for one in printed["reasons"]])
        for key in ("score", "reference"):
            self.assertAlmostEqual(answer[key], printed[key], delta=1e-4)
        for one, other in zip(answer["contributions"], printed["contributions"]):
            self.assertEqual(one["name"], other["name"])
            self.assertAlmostEqual(one["value"], other["value"], delta=1e-4)
        self.assertIn(", %.0f %%. The mean row has %.0f %%." % tuple(
            100 / (1 + math.exp(-answer[key])) for key in ("score", "reference")), page)

        # Somebody checks: every record is there, has the reasons that were told, and is computed again with the same bits.
        with open(log, encoding="utf-8") as file:
            records = list(map(json.loads, file))
        self.assertEqual(len(records), len(chosen))
        for record, (_, _, text) in zip(records, answers):
            (decision,) = record["reasons"]["decisions"]
            self.assertEqual([one["text"] for one in decision["reasons"]], [one["text"] for one in json.loads(text)["reasons"]])
            self.assertEqual(record["targets"][0]["value"], json.loads(text)["score"])
            self.assertNotIn("elements", json.dumps(record["inputs"]))
        self.assertEqual(verify(log)[0], 0)
        code, told = verify(log, "--model", model, "--inputs", path("rows.csv"), "--json")
        computed = json.loads(told)["computed"]
        self.assertEqual((code, computed["chosen"], computed["same"]), (0, len(chosen), len(chosen)), told)
        # A digit that somebody changed is found.
        with open(log, encoding="utf-8") as file:
            lines = file.read().split("\n")
        lines[1] = re.sub(r'"reference":-?', '"reference":1', lines[1], count=1)
        with open(path("changed.jsonl"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        code, told = verify(path("changed.jsonl"), "--json")
        self.assertEqual((code, [one["first_line"] for one in json.loads(told)["problems"]][:1]), (1, [2]), told)

    def test_no_answer_without_its_record(self):
        """A log to which something else was written takes no record: its service gives no answer, and goes on."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "decisions.jsonl")
            service = start(self.language, "--log", log)
            try:
                refused = subprocess.run(
                    command(self.language, "--port", "0", "--log", log), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    timeout=60, universal_newlines=True)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                self.assertIn(log, refused.stderr)
                with Connection(service.address) as connection:
                    status, _, text = connection.ask(self.body())
                    self.assertEqual((status, "reasons" in json.loads(text)), (200, False))
                    with open(log, "a", encoding="utf-8") as file:
                        file.write("something else\n")
                    status, _, text = connection.ask(self.body())
                    self.assertEqual((status, json.loads(text)), (500, {"error": "the service failed; its log says why"}))
                    self.assertEqual(connection.ask("", "GET", "/health")[0], 200)
            finally:
                service.stop()
                service.process.stdout.close()

    def test_load(self):
        service = start(self.language)
        load = load_test.Load(service.address, self.rows, REQUESTS, 2, seed=1)
        load.run()
        report = load.report()
        print(self.language, json.dumps(report, indent=2), flush=True)
        self.assertEqual(load.failures, [])
        self.assertEqual(report["requests"], REQUESTS)
        self.assertEqual(load.connects, 2 + load.closed_by_us + load.closed_after_413)
        self.assertGreater(report["rows_with_the_sign_of_their_label"], 0.95 * report["rows"])
        self.assertEqual({kind for kind, _ in load.counts}, set(load_test.KINDS))
        if REQUESTS >= 100000:
            tenth, half, end = [size for _, size in sorted(load.resident.items())]
            self.assertLess(max(half, end) - tenth, 8 << 20)
        self.assertIn("stopped", service.stop()[1])
        service.process.stdout.close()


for _language in LANGUAGES:
    _name = "%sTest" % _language.capitalize()
    globals()[_name] = type(_name, (ServiceTest, unittest.TestCase), {"language": _language})
