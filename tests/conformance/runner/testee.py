"""The program under test: started, asked many things at once, started again when it dies, hangs, or loses its device."""

import os
import selectors
import shlex
import subprocess
import tempfile
import time

from . import refusal
from .protocol import Answer, ProtocolError, Request

_CHUNK = 1 << 16


class TesteeError(Exception):
    """The testee cannot be used at all."""


class Lost:
    """Stands for the answer that did not come."""

    def __init__(self, code, message):
        self.code = code
        self.message = message
        self.entries = {}
        self.tensors = {}
        self.results = []
        self.report = {}

    def payload(self):
        return {}


# The code of the answer to a request that made the testee lose the context of its device.
LOST_CONTEXT = "LOST_CONTEXT"

# LibTorch's name of a device that has a name of its own here: //tests/far, which the testee's command loads.
_DEVICES = {"far": "privateuseone"}


class Testee:
    """One running testee."""

    def __init__(self, command, device="cpu", threads=1, timeout=60.0, environment=None):
        self.command = command
        self.device = device
        self.threads = threads
        self.timeout = timeout
        self.environment = environment or os.environ
        self.restarts = 0
        self.hello = {}
        self._process = None
        self._errors = tempfile.TemporaryFile()
        self._identity = 0
        self._blocking = False
        self.start()

    # ---- one process

    def start(self):
        """Starts it and asks hello. Raises TesteeError."""
        environment = dict(self.environment)
        # No reduced precision on GPUs, and sums in one order: what is compared are bits.
        environment.update(
            NVIDIA_TF32_OVERRIDE="0",
            CUBLAS_WORKSPACE_CONFIG=":4096:8",
            OMP_NUM_THREADS=str(self.threads),
            MKL_NUM_THREADS=str(self.threads),
            OPENBLAS_NUM_THREADS=str(self.threads),
        )
        if self._blocking:
            environment["CUDA_LAUNCH_BLOCKING"] = "1"
        try:
            self._process = subprocess.Popen(
                shlex.split(self.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise TesteeError("cannot start %r: %s" % (self.command, error)) from None
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        device = _DEVICES.get(self.device, self.device)
        request = Request("hello", {"device": device, "threads": str(self.threads)})
        conversation = Conversation(self, [request], patient=False)
        _run([conversation])
        answer = conversation.answers[0]
        if answer.code != "OK":
            self.abandon()
            raise TesteeError("%r does not say hello: %s: %s" % (self.command, answer.code, answer.message))
        self.hello = answer.entries
        if self.hello.get("device") == device:
            self.hello["device"] = self.device
        if self.hello.get("suite") != "1":
            self.abandon()
            raise TesteeError("%r speaks suite %s, not 1" % (self.command, self.hello.get("suite")))

    def restart(self, blocking=False):
        """Ends it and starts it again. `blocking`: so that a GPU's errors are those of the request that is answered."""
        self.kill()
        self.restarts += 1
        self._blocking = blocking
        self.start()

    @property
    def features(self):
        return set(self.hello.get("features", "").split())

    @property
    def dtypes(self):
        return set(self.hello.get("dtypes", "").split())

    def last_words(self):
        """The end of what it wrote to standard error."""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 2000))
        return self._errors.read().decode("utf-8", "replace").strip()

    def kill(self):
        """Ends the process, and says how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "it had ended"
        status = process.poll()
        if status is None:
            # Its output may have ended a moment before it did.
            try:
                status = process.wait(0.2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdin.close()
        process.stdout.close()
        if status is None:
            return "it was ended"
        return "signal %d" % -status if status < 0 else "exit code %d" % status

    def close(self):
        """Says bye. Returns None, or what was wrong about the end."""
        try:
            return self._say_bye()
        finally:
            self.abandon()

    def abandon(self):
        """Ends it without a word."""
        self.kill()
        self._errors.close()

    def _say_bye(self):
        if self._process is None:
            return None
        conversation = Conversation(self, [Request("bye")], patient=False)
        _run([conversation])
        process = self._process
        if conversation.answers[0].code != "OK":
            ended = self.kill()
            return "bye: %s: %s (%s)" % (conversation.answers[0].code, conversation.answers[0].message, ended)
        try:
            process.stdin.close()
            status = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it does not end after bye"
        process.stdout.close()
        self._process = None
        return None if status == 0 else "it ended with %d after bye: %s" % (status, self.last_words())

    def identity(self):
        self._identity += 1
        return self._identity


class Conversation:
    """Requests to one testee and its answers. Writing and reading go on at once, so that no pipe can block both."""

    def __init__(self, testee, requests, patient=True):
        self.testee = testee
        self.requests = requests
        self.answers = []
        self.patient = patient  # whether a testee that dies is started again
        self._identities = []
        self._begin()

    @property
    def finished(self):
        return len(self.answers) == len(self.requests)

    def _begin(self):
        """Sends what has no answer yet."""
        remaining = self.requests[len(self.answers) :]
        self._identities = [self.testee.identity() for _ in remaining]
        frames = [request.encode(identity) for request, identity in zip(remaining, self._identities)]
        self._output = memoryview(b"".join(frames))
        self._input = bytearray()
        self.deadline = time.monotonic() + self.testee.timeout

    @property
    def streams(self):
        process = self.testee._process
        return ([process.stdin] if self._output else []), process.stdout

    def write(self):
        try:
            sent = os.write(self.testee._process.stdin.fileno(), self._output[:_CHUNK])
            self._output = self._output[sent:]
        except BlockingIOError:
            pass
        except OSError:  # It has gone; reading will tell.
            self._output = memoryview(b"")

    def read(self):
        try:
            data = os.read(self.testee._process.stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._lose("CRASH", "the testee ended")
            return
        self._input += data
        while len(self._input) >= 4 and not self.finished:
            size = int.from_bytes(self._input[:4], "little")
            if len(self._input) < 4 + size:
                break
            blob = bytes(self._input[4 : 4 + size])
            del self._input[: 4 + size]
            try:
                answer = Answer(blob)
                if answer.entries.get("id") != str(self._identities[0]):
                    raise ProtocolError("the answer is to %r, not %d" % (answer.entries.get("id"), self._identities[0]))
            except ProtocolError as error:
                self._lose("PROTOCOL", str(error))
                return
            self._identities.pop(0)
            self.answers.append(answer)
            self.deadline = time.monotonic() + self.testee.timeout

    def late(self):
        self._lose("TIMEOUT", "no answer in %g s" % self.testee.timeout)

    def _lose(self, code, message):
        """The request that was worked on has failed; the others are asked again."""
        ended = self.testee.kill()
        words = self.testee.last_words()
        self.answers.append(Lost(code, "%s (%s)%s" % (message, ended, ": " + words if words else "")))
        if not self.patient:
            self.answers += [Lost(code, message)] * (len(self.requests) - len(self.answers))
            return
        self.testee.restarts += 1
        self.testee.start()
        if not self.finished:
            self._begin()


def _run(conversations):
    """Until all have finished."""
    while True:
        open_ones = [conversation for conversation in conversations if not conversation.finished]
        if not open_ones:
            return
        with selectors.DefaultSelector() as selector:
            processes = []
            for conversation in open_ones:
                writers, reader = conversation.streams
                for stream in writers:
                    selector.register(stream, selectors.EVENT_WRITE, conversation.write)
                selector.register(reader, selectors.EVENT_READ, conversation.read)
                processes.append((conversation, conversation.testee._process, bool(writers)))
            same = True
            while same:
                wait = min(conversation.deadline for conversation in open_ones) - time.monotonic()
                for key, _ in selector.select(max(0.0, wait)):
                    key.data()
                    if any(c.finished or c.testee._process is not p for c, p, _ in processes):
                        break
                now = time.monotonic()
                for conversation in open_ones:
                    if not conversation.finished and conversation.deadline <= now:
                        conversation.late()
                same = not any(
                    c.finished or c.testee._process is not p or w != bool(c._output) for c, p, w in processes
                )


def ask(testees, requests):
    """The answers of each testee to the same requests."""
    conversations = [Conversation(testee, list(requests)) for testee in testees]
    _run(conversations)
    return [_with_context(conversation) for conversation in conversations]


def _with_context(conversation):
    """The answers of a conversation. If the testee lost the context of its device in it, an answer says nothing of its
    own request: a GPU's errors are reported by later calls. So all are asked again, one at a time, by a testee that
    waits for its device, and that which loses the context alone has failed."""
    testee, answers = conversation.testee, conversation.answers
    lost = [refusal.lost_context(answer) for answer in answers]
    if not any(lost):
        return answers
    again, found = [], False
    testee.restart(blocking=True)
    for request in conversation.requests:
        alone = Conversation(testee, [request])
        _run([alone])
        (answer,) = alone.answers
        words = refusal.lost_context(answer)
        if words:
            found = True
            answer = Lost(LOST_CONTEXT, "lost the context of its device: " + words)
            testee.restart(blocking=True)
        again.append(answer)
    testee.restart()
    if not found:
        first = next(place for place, words in enumerate(lost) if words)
        words = "lost the context of its device: %s; it or one before it, none does so alone" % lost[first]
        again[first] = Lost(LOST_CONTEXT, words)
    return again
