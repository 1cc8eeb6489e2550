"""A cluster of Dask on this machine, for tests and measurements."""

import os
import signal
import socket
import subprocess
import sys
import time

import distributed


class Cluster:
    """A scheduler and workers, each a process, in a folder.

    environment: more variables for all of them.
    """

    def __init__(self, folder, **environment):
        self.folder = folder
        self.environment = dict(os.environ, DASK_DISTRIBUTED__DIAGNOSTICS__NVML="False", **environment)
        self.file = os.path.join(folder, "scheduler.json")
        # One port for all schedulers, so that clients find the next one.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.scheduler = None
        self.workers = []
        self.started = []

    def start(self, *arguments, **environment):
        log = open(os.path.join(self.folder, "log"), "ab")
        process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            env=dict(self.environment, **environment))
        log.close()
        self.started.append(process)
        return process

    def start_scheduler(self):
        if os.path.exists(self.file):
            os.remove(self.file)
        self.scheduler = self.start("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port",
                                    str(self.port), "--no-dashboard", "--scheduler-file", self.file)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.file):
            if time.monotonic() > deadline:
                raise RuntimeError("no scheduler: " + self.log())
            time.sleep(0.05)

    def start_worker(self, **environment):
        worker = self.start("-m", "distributed.cli.dask_worker", "--scheduler-file", self.file, "--nthreads", "1",
                            "--no-nanny", "--no-dashboard", "--memory-limit", "0", "--local-directory", self.folder,
                            "--death-timeout", "20", **environment)
        self.workers.append(worker)
        return worker

    def client(self, workers, patience=60):
        """A client, as soon as so many workers are there: at most after so many seconds."""
        client = distributed.Client(scheduler_file=self.file, timeout=20)
        client.wait_for_workers(workers, timeout=patience)
        return client

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()[-4000:]

    def stop(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.kill()
            process.wait()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
