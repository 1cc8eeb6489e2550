"""Writes the options of requests that Python has a keyword for.

    generate_request.py OPTIONS MODULE
"""

import pathlib
import sys

import request  # in bindings/generate

_MODULE = '''"""The keywords that are options of requests. Generated from core/explain/request_options.txt; do not edit."""

# Options that are true or false.
%s
# Options that live models take, for a decomposition alone and for any run.
%s%s
# Options of traces, for which the caller runs the model.
%s'''


def main(path, module):
    options = [option for option in request.read(path) if option.names.get("Python") != "-"]

    def keys(name, *calls, but=""):
        found = [option.key for option in options if set(calls) <= set(option.calls) and but not in option.calls]
        return names(name, found)

    flags = names("FLAGS", [option.key for option in options if option.type == "flag"])
    live = keys("OF_DECOMPOSE", "live", "decompose", but="attribute"), keys("OF_ANY", "live", "decompose", "attribute")
    pathlib.Path(module).write_text(_MODULE % (flags, *live, keys("OF_TRACE", "trace")), encoding="utf-8")


def names(name, keys):
    return "%s = (\n%s)\n" % (name, "".join('    "%s",\n' % key for key in keys))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
