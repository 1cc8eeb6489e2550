"""Slurm on one machine, for tests and measurements: its own daemons with a configuration, ports and files of their own.

Nothing of it needs an administrator, systemd, control groups, or a Slurm that was set up.
"""

import ctypes
import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue")
# Daemons lie where only administrators look.
PATH = os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), "/usr/local/sbin", "/usr/sbin"])
# Programs that have to be installed, but are not.
MISSING = [name for name in NEEDED if shutil.which(name, path=PATH) is None]

# How long a task, a daemon or the whole queue may take on a busy machine.
PATIENCE = 120

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobRequeue=0
KillWait=1
MessageTimeout=5
ReturnToService=2
SlurmdTimeout=60
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
"""

PR_SET_CHILD_SUBREAPER = 36  # of <sys/prctl.h>


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for own in sockets:
        own.bind(("127.0.0.1", 0))
    ports = [own.getsockname()[1] for own in sockets]
    for own in sockets:
        own.close()
    return ports


def descendants(root):
    """Processes below one: {id: command line, as a list}."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                text = file.read()
        except OSError:
            continue  # it ended meanwhile
        parents[int(path.split("/")[2])] = int(text[text.rindex(")") + 2:].split()[1])
    found = {}
    for process in parents:
        above = parents[process]
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            try:
                with open("/proc/%d/cmdline" % process) as file:
                    found[process] = file.read().split("\0")
            except OSError:
                pass
    return found


def kill(process, number=signal.SIGKILL):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class Cluster:
    """A controller and a node on this machine, run by the user of this process, with files in a folder that is there.

    tools: a folder whose programs tasks find. cpus: how many tasks run at once, on machines with fewer of them too.
    """

    def __init__(self, folder, tools, cpus):
        self.folder = folder
        self.environment = dict(os.environ, PATH=tools + os.pathsep + PATH, SLURM_CONF=os.path.join(folder, "slurm.conf"))
        self.version = self.ask("slurmctld", "-V").split()[1]
        self.daemons = {}  # ids of processes
        self.said = ""  # on standard error, by the program that was asked last
        self.keeper = subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=self.environment,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                                       start_new_session=True)
        for name in ("state", "spool"):
            os.mkdir(os.path.join(folder, name))
        controller_port, node_port = free_ports(2)
        self.write("slurm.conf", CONFIGURATION.format(
            controller_port=controller_port, cpus=cpus, folder=folder, host=socket.gethostname(), node_port=node_port,
            user=pwd.getpwuid(os.getuid()).pw_name).encode("utf-8"))
        if tuple(int(part) for part in self.version.split(".")[:2]) >= (23, 11):
            # Before, a Slurm that tracks processes otherwise asks for no control groups.
            self.write("cgroup.conf", b"CgroupPlugin=disabled\n")
        self.write("munge.key", os.urandom(64))

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(content)

    def start(self, name, *arguments):
        self.keeper.stdin.write(json.dumps([os.path.join(self.folder, name + ".log"), name] + list(arguments)) + "\n")
        self.keeper.stdin.flush()
        self.daemons[name] = int(self.keeper.stdout.readline())

    def start_all(self):
        self.start_munge()
        self.start_controller()
        self.start_node()

    def start_munge(self):
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed",
                 "log-file": "munge.log"}
        self.start("munged", "--foreground", "--force", *("--%s=%s" % (option, os.path.join(self.folder, name))
                                                          for option, name in files.items()))
        self.wait("munged is there", lambda: os.path.exists(os.path.join(self.folder, "munge.socket")))

    def start_controller(self):
        self.start("slurmctld", "-D")
        self.wait("slurmctld answers", lambda: self.ask("scontrol", "ping") is not None)

    def start_node(self):
        self.start("slurmd", "-D", "-N", "node")
        self.wait("the node is idle or busy", lambda: re.search(
            r"State=(IDLE|MIXED|ALLOCATED|COMPLETING)\b(?!\*)", self.ask("scontrol", "show", "node") or ""))

    def kill(self, name):
        process = self.daemons.pop(name)
        kill(process)
        self.wait(name + " ended", lambda: not os.path.exists("/proc/%d" % process))

    def kill_controller(self):
        """Kills it right after it wrote down what it knows, which it does every few seconds."""
        state = os.path.join(self.folder, "state", "job_state")
        before = os.stat(state).st_mtime_ns if os.path.exists(state) else 0
        self.wait("slurmctld wrote its state", lambda: os.path.exists(state) and os.stat(state).st_mtime_ns != before)
        self.kill("slurmctld")

    def crash_node(self):
        """Leaves what is left of a machine that loses its power, and says so, as slurmctld would by itself after
        SlurmdTimeout. Gives the tasks that ran there for the first time."""
        lost = [task for task in self.running() if self.restarts(task) == 0]
        self.kill("slurmd")
        # All at once: no step tells how its task ended.
        steps = self.steps()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in steps:
                kill(process, number)
        self.ask("scontrol", "update", "NodeName=node", "State=DOWN", "Reason=power")
        return lost

    def steps(self):
        """Processes of Slurm's steps and of what runs in them, with their command lines."""
        found = descendants(self.keeper.pid)
        if "slurmctld" in self.daemons:
            for process in descendants(self.daemons["slurmctld"]):
                found.pop(process, None)
        for process in self.daemons.values():
            found.pop(process, None)
        return found

    def stop(self):
        """Ends everything; as the end of this process does, whatever ends it."""
        self.keeper.communicate()
        if self.keeper.returncode != 0:
            raise AssertionError("some of what was started does not end")

    def ask(self, *command, **options):
        """Runs a program of Slurm and returns its output, or None if it fails."""
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, **options)
        self.said = done.stderr
        return done.stdout if done.returncode == 0 else None

    def queue(self):
        """The tasks that wait or run: {"7_3": "RUNNING"}."""
        answers = []

        def asked():
            answers.append(self.ask("squeue", "--noheader", "--array", "--format=%i %T"))
            return answers[-1] is not None

        self.wait("squeue answers", asked)
        return dict(line.split() for line in answers[-1].splitlines())

    def running(self):
        return sorted(task for task, state in self.queue().items() if state == "RUNNING")

    def restarts(self, task):
        return int(re.search(r" Restarts=([0-9]+) ", self.ask("scontrol", "--oneliner", "show", "job", task)).group(1))

    def wait(self, what, happened, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError("not within %d s: %s\n%s" % (patience, what, self.logs()))
            time.sleep(0.1)

    def logs(self):
        text = [self.ask("squeue", "--format=%i %T %r %S") or ""]
        for path in sorted(glob.glob(os.path.join(self.folder, "*.log"))):
            with open(path, errors="replace") as file:
                text.append("%s:\n%s" % (os.path.basename(path), "".join(file.readlines()[-30:])))
        return "\n".join(text)


def keep():
    """Starts daemons, each named by a line of standard input: a list of the file for what it says, the program and its
    arguments. Where the input ends, as it does with the process at its other end, everything is ended. Steps outlive the
    daemon that started them, and are children of this process then."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def reap(*_):
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            pass

    signal.signal(signal.SIGCHLD, reap)
    started = []
    for line in sys.stdin:
        path, *command = json.loads(line)
        with open(path, "ab") as log:
            started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True))
        print(started[-1].pid, flush=True)
    deadline = time.monotonic() + PATIENCE
    while descendants(os.getpid()):
        if time.monotonic() > deadline:
            return 1
        for process in descendants(os.getpid()):
            kill(process)
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit(keep())
