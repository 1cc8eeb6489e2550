"""Slurm on one machine, for tests and measurements: its own daemons with a configuration, ports and files of their own.

Nothing of it needs an administrator, systemd, control groups, or a Slurm that was set up.
"""

import ctypes
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue")
# Daemons lie where only administrators look.
PATH = os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), "/usr/local/sbin", "/usr/sbin"])
# What has to be installed.
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
KillWait=1
MessageTimeout=5
ReturnToService=2
SlurmdTimeout=60
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
"""

_libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for own in sockets:
        own.bind(("127.0.0.1", 0))
    ports = [own.getsockname()[1] for own in sockets]
    for own in sockets:
        own.close()
    return ports


def descendants(root):
    """Processes below one, in no order: {id: command line, as a list}."""
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
        above = process
        while above in parents and above != root:
            above = parents[above]
        if above == root and process != root:
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
        self.daemons = {}
        # Steps outlive the daemon that started them. They become children of this process then, which finds them.
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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
        def follow():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [name] + list(arguments), env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=follow)

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
        self.daemons[name].kill()
        self.daemons.pop(name).wait()

    def kill_controller(self):
        """Kills it right after it wrote down what it knows, which it does every few seconds."""
        state = os.path.join(self.folder, "state", "job_state")
        before = os.stat(state).st_mtime_ns if os.path.exists(state) else 0
        self.wait("slurmctld wrote its state", lambda: os.path.exists(state) and os.stat(state).st_mtime_ns != before)
        self.kill("slurmctld")

    def crash_node(self):
        """Leaves what is left of a machine that loses its power, and says so, as slurmctld would by itself after
        SlurmdTimeout. Gives the tasks that ran there."""
        steps = self.steps()
        self.kill("slurmd")
        for process in steps:
            kill(process)
        lost = self.running()
        self.ask("scontrol", "update", "NodeName=node", "State=DOWN", "Reason=power")
        return lost

    def steps(self):
        """Processes of Slurm's steps and of what runs in them, with their command lines."""
        daemons = {own.pid for own in self.daemons.values()}
        below = descendants(os.getpid())
        steps = [process for process, command in below.items() if command[0].startswith("slurmstepd")]
        found = {process: below[process] for process in steps}
        for step in steps:
            found.update(descendants(step))
        return {process: command for process, command in found.items() if process not in daemons}

    def stop(self):
        for own in self.daemons.values():
            own.kill()
            own.wait()
        deadline = time.monotonic() + PATIENCE
        while descendants(os.getpid()):
            if time.monotonic() > deadline:
                raise AssertionError("processes do not end: %s" % descendants(os.getpid()))
            for process in descendants(os.getpid()):
                kill(process)
                try:
                    os.waitpid(process, os.WNOHANG)
                except ChildProcessError:
                    pass  # its parent ends first
            time.sleep(0.05)

    def ask(self, *command, **options):
        """What a program of Slurm says, or None where it fails."""
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, **options)
        self.said = done.stderr
        return done.stdout if done.returncode == 0 else None

    def queue(self):
        """The tasks that wait or run: {"7_3": "RUNNING"}."""
        text = None
        while text is None:
            text = self.ask("squeue", "--noheader", "--array", "--format=%i %T")
        return dict(line.split() for line in text.splitlines())

    def running(self):
        return sorted(task for task, state in self.queue().items() if state == "RUNNING")

    def wait(self, what, happened):
        deadline = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError("not within %d s: %s\n%s" % (PATIENCE, what, self.logs()))
            time.sleep(0.1)

    def logs(self):
        text = [self.ask("squeue", "--format=%i %T %r %S") or ""]
        for path in sorted(glob.glob(os.path.join(self.folder, "*.log"))):
            with open(path, errors="replace") as file:
                text.append("%s:\n%s" % (os.path.basename(path), "".join(file.readlines()[-30:])))
        return "\n".join(text)
