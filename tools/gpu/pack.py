"""pack.py: writes a kit (kit.bzl), a tarball with one folder.

    kit/run.py ...          what --file names
    kit/package/addend/     the wheel's package, with the library
    kit/conformance-1/      the suite
    kit/bin/                testees that are programs
    kit/java/               the jars, and a Java that is just enough for them
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# Modules of Java that its testee and the binding import.
_MODULES = "java.base,java.management,jdk.unsupported"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--wheel", required=True, help="a folder with one")
    parser.add_argument("--suite", required=True)
    for option in ("--program", "--file", "--jar"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--java", help="a JDK")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        kit = os.path.join(work, "kit")
        _fill(kit, options)
        command = ["tar", "-C", work, "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-cf", "-", "kit"]
        with open(options.out, "wb") as out:
            with subprocess.Popen(command, stdout=subprocess.PIPE) as packed:
                subprocess.run(["gzip", "-n"], stdin=packed.stdout, stdout=out, check=True)
        if packed.returncode:
            sys.exit("pack.py: tar failed")


def _fill(kit, options):
    os.makedirs(kit)
    for file in options.file:
        shutil.copy(file, kit)
    (wheel,) = glob.glob(os.path.join(options.wheel, "*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(os.path.join(kit, "package"))
    with tarfile.open(options.suite) as archive:
        archive.extractall(kit)
    os.makedirs(os.path.join(kit, "bin"))
    for program in options.program:
        shutil.copy(program, os.path.join(kit, "bin"))
    if options.java:
        os.makedirs(os.path.join(kit, "java"))
        for jar in options.jar:
            shutil.copy(jar, os.path.join(kit, "java"))
        jlink = [os.path.join(options.java, "bin", "jlink"), "--add-modules", _MODULES, "--strip-debug", "--no-header-files"]
        jlink += ["--no-man-pages", "--compress=2", "--output", os.path.join(kit, "java", "jre")]
        subprocess.run(jlink, check=True)
    for folder, _, names in os.walk(kit):
        os.chmod(folder, 0o755)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o755 if os.access(os.path.join(folder, name), os.X_OK) else 0o644)


if __name__ == "__main__":
    main()
