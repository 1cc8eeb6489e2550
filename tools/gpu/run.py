#!/usr/bin/env python3
"""Builds Addend with the LibTorch of this Python and runs the conformance suite on a GPU; see README.md."""

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

KIT = os.path.dirname(os.path.abspath(__file__))
API_INCLUDE = "torch/csrc/api/include"
LANGUAGES = {
    "cpp": "./cpp_testee",
    "c": "./c_testee",
    "python": "env PYTHONPATH=bindings/python %s -B tests/conformance/testees/python/testee.py" % shlex.quote(sys.executable),
}

# Without importing addend: does this LibTorch see the device, and which one is it?
_ASK = """
import json, sys, torch
device = sys.argv[1]
if device != "cpu":
    torch.zeros(1, device=device)
print(json.dumps({"version": torch.__version__, "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI),
                  "name": "" if device == "cpu" else torch.cuda.get_device_name(device)}))
"""


def main():
    options = _options()
    os.chdir(KIT)
    torch = _torch(options.device)
    say("LibTorch %s in %s%s" % (torch["version"], torch["include"], ", " + torch["name"] if torch["name"] else ""))
    _write_ninja(torch, options.standard or _standard(torch))
    if options.plan_only:
        return 0
    _build(options.jobs)
    if options.build_only:
        return 0
    return _run(options, torch)


def _options():
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Builds core, C interface and testees with the LibTorch of this Python, then runs the suite.",
        epilog="Options behind -- go to the suite's own run.py: `-- --cases 'laws_*'`.",
    )
    add = parser.add_argument
    add("--device", default="cuda", help="cuda (the default), cuda:1, cpu")
    add("--language", action="append", choices=sorted(LANGUAGES), help="may be repeated; all by default")
    add("--results", default="results", metavar="DIR", help="where result files go; results by default")
    add("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes at once; all processors by default")
    add("--standard", choices=["c++17", "c++20"], help="of the language; by default the first that LibTorch's headers take")
    add("--plan-only", action="store_true", help="write build.ninja, and nothing else")
    add("--build-only", action="store_true", help="build, and run nothing")
    own, behind = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, behind = own[:at], own[at + 1 :]
    options = parser.parse_args(own)
    options.suite = behind
    options.language = options.language or list(LANGUAGES)
    options.results = os.path.abspath(options.results)
    return options


def say(text):
    print("gpu: " + text, flush=True)


def fail(text):
    sys.exit("gpu: " + text)


# ---- Building


def _torch(device):
    spec = importlib.util.find_spec("torch")
    if not spec:
        fail("%s has no package torch; start run.py with the Python that has it" % sys.executable)
    asked = subprocess.run([sys.executable, "-c", _ASK, device], capture_output=True, text=True, check=False)
    if asked.returncode:
        fail("LibTorch cannot compute on %s:\n%s" % (device, asked.stderr.strip().splitlines()[-1]))
    result = json.loads(asked.stdout)
    # Without what says who built it: "2.11.0" of "2.11.0+cu130".
    result["version"] = re.match(r"[0-9.]*[0-9]", result["version"])[0]
    folder = spec.submodule_search_locations[0]
    # Some distributions put the headers where the compiler looks, and link the libraries.
    include = os.path.join(folder, "include")
    if not os.path.exists(os.path.join(include, "ATen", "ATen.h")):
        include = "/usr/include"
    if not os.path.exists(os.path.join(include, "ATen", "ATen.h")):
        fail("no header files of LibTorch in %s" % folder)
    result["include"] = include
    result["lib"] = os.path.dirname(os.path.realpath(os.path.join(folder, "lib", "libtorch_cpu.so")))
    result["per_operator"] = os.path.exists(os.path.join(include, "ATen", "ops"))
    return result


def _torch_options(torch):
    defines = ["-D_GLIBCXX_USE_CXX11_ABI=%d" % torch["abi"]]
    if torch["per_operator"]:
        defines.append("-DAT_PER_OPERATOR_HEADERS")
    folders = [os.path.join(torch["include"], API_INCLUDE)]
    if torch["include"] != "/usr/include":
        folders.insert(0, torch["include"])
    return defines + [word for folder in folders for word in ("-isystem", folder)]


def _standard(torch):
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "probe.cc")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <torch/script.h>\n")
        for standard in ("c++17", "c++20"):
            command = ["c++", "-std=" + standard, "-fsyntax-only", "-w"] + _torch_options(torch) + [source]
            asked = subprocess.run(command, capture_output=True, text=True, check=False)
            if asked.returncode == 0:
                return standard
    fail("the headers of LibTorch do not compile:\n" + asked.stderr[:2000])


def _write_ninja(torch, standard):
    with open("kit.json", encoding="utf-8") as file:
        kit = json.load(file)
    common = kit["copts"] + ["-fPIC", "-I."] + _torch_options(torch) + ["-isystem", "include"]
    cxx = kit["cxxopts"]
    link = ["-L" + torch["lib"], "-Wl,-rpath," + torch["lib"], "-ltorch_cpu", "-lc10"]
    # Nothing refers to the kernels of the device by name: they register themselves when libtorch.so loads their library.
    link += ["-Wl,--push-state,--no-as-needed", "-ltorch", "-Wl,--pop-state"]
    libraries = [os.path.join("lib", name) for name in kit["libraries"]]
    # RPATH, not RUNPATH: it holds for what these libraries need, too.
    link += ["-Wl,--disable-new-dtags", "-Wl,-rpath," + os.path.join(KIT, "lib"), "-Wl,--as-needed"] + libraries
    lines = [
        "ninja_required_version = 1.3",
        "builddir = build",
        "rule cxx",
        "  description = $in",
        "  command = c++ -MMD -MF $out.d $options -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule cc",
        "  description = $in",
        "  command = cc -MMD -MF $out.d $options -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule link",
        "  description = $out",
        "  command = c++ $in $options -o $out",
    ]
    compiled = {}
    library = kit["programs"][0]["place"]
    major_minor = ".".join(torch["version"].split(".")[:2])
    for number, program in enumerate(kit["programs"]):
        place = program["place"].replace("{libtorch}", major_minor)
        needed = []
        for unit in program["units"]:
            options = _unit_options(unit, torch, standard)
            for source in unit["sources"]:
                is_c = source.endswith(".c")
                built = "build/%s.o" % source
                words = common + ([] if is_c else cxx) + options
                needed.append(built)
                if built not in compiled:
                    compiled[built] = words
                    lines += ["build %s: %s %s" % (built, "cc" if is_c else "cxx", source), "  options = " + _words(words)]
                elif compiled[built] != words:
                    fail("%s is compiled in two ways" % source)
        words = [_expand(word) for word in program["options"]]
        # The first, the library, opens the second, which alone needs LibTorch; all others link the library.
        if number == 0:
            words.append("-ldl")
        if number == 1:
            words += link + ["-ldl"]
        if number > 1:
            needed.append(library)
            words += ["-Wl,--as-needed"] + libraries + ["-Wl,-rpath," + os.path.join(KIT, os.path.dirname(library))]
        if program["shared"]:
            words.insert(0, "-shared")
        lines += ["build %s: link %s" % (place, " ".join(needed)), "  options = " + _words(words)]
    with open("build.ninja", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _unit_options(unit, torch, standard):
    """Those of Bazel, with the LibTorch and the Python of this machine instead of those of the other."""
    result = []
    copts = iter(unit["copts"])
    for word in copts:
        if word == "-isystem":
            next(copts)
            result += ["-isystem", sysconfig.get_paths()["include"]]
        elif word.startswith("-std=c++"):
            result.append("-std=" + standard)
        else:
            result.append(word)
    for define in unit["defines"]:
        define = re.sub(r"^ADDEND_LIBTORCH_VERSION=.*", 'ADDEND_LIBTORCH_VERSION=\\\\"%s\\\\"' % torch["version"], define)
        result += ["-D" + word for word in shlex.split(define)]
    return result + ["-I" + folder for folder in unit["includes"] if os.path.isdir(folder)]


def _expand(option):
    """Bazel's variables in options of the linker."""
    option = option.replace("$$ORIGIN", "$ORIGIN")
    return re.sub(r"\$\(location (?://)?([^:)]*):([^)]*)\)", lambda found: os.path.join(found[1] or "c_api", found[2]), option)


def _words(words):
    return " ".join(shlex.quote(word) for word in words).replace("$", "$$")


def _build(jobs):
    ninja = [shutil.which("ninja")] if shutil.which("ninja") else [sys.executable, "-m", "ninja"]
    if subprocess.run(ninja + ["-j", str(max(jobs, 1))], check=False).returncode:
        fail("the build failed (it needs ninja: package ninja-build, or ninja of pip)")


# ---- Running


def _run(options, torch):
    os.makedirs(options.results, exist_ok=True)
    running = []
    for language in options.language:
        name = "libtorch-%s-%s-%s" % (torch["version"], options.device.split(":")[0], language)
        log = os.path.join(options.results, name + ".log")
        command = [sys.executable, "-B", "tests/conformance/run.py", "--testee", LANGUAGES[language]]
        command += ["--device", options.device, "--result", os.path.join(options.results, name + ".json")]
        if options.device != "cpu":
            command.append("--compare-devices")
        with open(log, "wb") as output:
            process = subprocess.Popen(command + options.suite, stdout=output, stderr=subprocess.STDOUT)
        say("%s runs; its output is in %s" % (language, log))
        running.append((language, log, process))
    status = 0
    for language, log, process in running:
        code = process.wait()
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        say("%s: %s" % (language, lines[-1] if lines else "no output"))
        status = status or code
    return status


if __name__ == "__main__":
    sys.exit(main())
