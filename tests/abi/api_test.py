"""Whether addend_api.json is complete, says nothing that is not so, and is what the SWIG files think it is.

usage: api_test.py API SYMBOLS HANDLES SCHEMAS FILE...
  FILE: the headers, those for Doxygen, the typemaps of SWIG, and what SWIG made of the interface
"""

import json
import os
import re
import sys
import unittest

import schema

API = SYMBOLS = HANDLES = SCHEMAS = None
FILES = {}

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Types that are no nouns of the library.
_PLAIN = {"void", "char", "double", "int32_t", "int64_t", "uint32_t", "size_t"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def base(kind):
    return re.sub(r"\bconst\b|[* ]", "", kind)


def tidy(code):
    return re.sub(r"\s*\*\s*", "* ", re.sub(r"\s+", " ", code)).replace("* *", "**").strip()


class ApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = json.loads(read(API))
        cls.functions = {function["name"]: function for function in cls.api["functions"]}
        cls.types = {one["name"]: one for one in cls.api["types"]}

    def test_the_schema_accepts_it(self):
        self.assertEqual(schema.Schemas(SCHEMAS).problems(self.api), [])

    def test_every_symbol_is_described_once_with_its_version(self):
        listed, version = {}, 0
        for line in read(SYMBOLS).splitlines():
            node = re.fullmatch(r"ADDEND_(\d+)", line)
            version = int(node.group(1)) if node else version
            if line.startswith("addend_"):
                listed[line] = version
        self.assertEqual({name: function["since"] for name, function in self.functions.items()}, listed)
        self.assertEqual(len(self.functions), len(self.api["functions"]))
        self.assertGreater(len(listed), 150)
        self.assertEqual(self.api["abi_version"], max(listed.values()))

    def test_everything_has_a_comment_and_a_known_type(self):
        known = _PLAIN | set(self.types)
        for one in self.api["functions"] + [one for one in self.api["types"] if one["kind"] == "callback"]:
            with self.subTest(one["name"]):
                self.assertTrue(one["comment"].get("text"))
                kinds = [one["returns"]["type"]] + [parameter["type"] for parameter in one["parameters"]]
                for kind in kinds:
                    self.assertIn(base(kind), known)
        for enum in self.api["enums"]:
            self.assertTrue(enum["comment"], enum["name"])
            self.assertEqual(len({value["value"] for value in enum["values"]}), len(enum["values"]))

    def test_handles_are_those_of_the_list(self):
        listed = {"addend_" + noun for noun in re.findall(r"(?m)^ADDEND_HANDLE\((\w+)", read(HANDLES))}
        self.assertEqual({name for name, one in self.types.items() if one["kind"] == "handle"}, listed)

    def test_what_comments_promise_of_parameters_is_of_parameters(self):
        """"in:" and "out:" name no parameter that the function does not have: "model (borrowed)" needs a model."""
        for function in self.api["functions"]:
            names = {parameter["name"] for parameter in function["parameters"]}
            said = function["comment"]
            for listed in re.findall(r"((?:\w+(?: \[[^\]]*\])?, )*\w+(?: \[[^\]]*\])?) \((?:borrowed|shared|copied|taken over|new)\b",
                                     said.get("in", "") + "\n" + said.get("out", "")):
                for name in re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", listed)):
                    with self.subTest(function["name"]):
                        self.assertIn(name, names)

    def test_out_parameters_are_told(self):
        for function in self.api["functions"]:
            for parameter in function["parameters"]:
                if parameter["direction"] == "out":
                    with self.subTest(function["name"]):
                        self.assertIn(parameter["name"], function["comment"].get("out", ""))

    # ---- Doxygen

    def headers(self):
        """(header, the same for Doxygen) of both."""
        for name in ("addend.h", "addend_ext.h"):
            yield FILES["c_api/" + name], FILES["doxygen/" + name]

    def test_doxygens_headers_are_the_same_code(self):
        for header, converted in self.headers():
            code = [re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)) for text in (header, converted)]
            self.assertGreater(len(code[0]), 1000)
            self.assertEqual(*code)

    def test_doxygens_headers_say_every_word(self):
        for header, converted in self.headers():
            said = [[re.findall(r"\w+", re.sub(r"\\(.)", r"\1", comment)) for comment in
                     re.findall(r"/\*(.*?)\*/", text, re.DOTALL)] for text in (header, converted)]
            self.assertEqual(len(said[0]), len(said[1]))
            for before, after in zip(*said):
                lost = {word for word in before if word not in after} - {"in", "out", "errors", "thread"}
                self.assertFalse(lost, " ".join(before)[:200])

    def test_doxygen_is_told_every_parameter(self):
        text = FILES["doxygen/addend.h"] + FILES["doxygen/addend_ext.h"]
        for function in self.api["functions"]:
            if function["name"].endswith("_release"):
                continue  # which share what the first page says of them
            comment = re.search(r"/\*\*((?:[^*]|\*(?!/))*)\*/\nADDEND_API[^;(]*\b%s\s*\(" % function["name"], text).group(1)
            told = re.findall(r"@param\[(\w+)\] (\w+)", comment)
            self.assertEqual(told, [(one["direction"], one["name"]) for one in function["parameters"]], function["name"])

    # ---- SWIG

    def typemaps(self):
        return {name: _COMMENTS.sub(" ", text) for name, text in FILES.items() if name.endswith(".i")}

    def test_swig_names_nothing_that_is_not_there(self):
        known = set(self.functions) | set(self.types) | {enum["name"] for enum in self.api["enums"]}
        self.assertLessEqual({"csharp.i", "java.i", "python.i"}, set(self.typemaps()))
        for name, text in self.typemaps().items():
            own = set(re.findall(r"\b(addend_(?:jni|python|csharp|native|compiled_abi_version))\b", text))
            text = re.sub(r"%\{.*?%\}|\"[^\"\n]*\"|addend_##\w+", " ", text, flags=re.DOTALL)
            for symbol in set(re.findall(r"\baddend_\w+", text)) - own:
                with self.subTest(name, symbol=symbol):
                    self.assertIn(symbol, known)

    def test_what_swig_files_declare_again_is_the_same(self):
        for name, text in self.typemaps().items():
            text = re.sub(r"%\{.*?%\}", " ", text, flags=re.DOTALL)
            for returned, symbol, given in re.findall(r"(?m)^(addend_status\*|void) (addend_\w+)\((.*?)\);", text, re.DOTALL):
                function = self.functions[symbol]
                expected = ", ".join("%s %s" % (p["type"], p["name"]) for p in function["parameters"])
                with self.subTest(name, symbol=symbol):
                    self.assertEqual((returned, tidy(given)), (function["returns"]["type"], tidy(expected)))

    def made(self, end):
        return {name: text for name, text in FILES.items() if name.endswith(end)}

    def test_swig_has_a_typemap_for_everything(self):
        """Types without a typemap become classes SWIGTYPE_p_..., which no face can use."""
        for name, text in {**self.made(".java"), **self.made(".cs")}.items():
            with self.subTest(name):
                self.assertNotIn("SWIGTYPE_p_", text)

    def test_swig_wraps_every_function_that_it_is_not_told_to_leave_out(self):
        wrapped = {"java.i": self.made(".java"), "csharp.i": self.made(".cs")}
        for typemap, sources in wrapped.items():
            if not sources:
                continue  # the tools of that language are not here
            text = self.typemaps()[typemap]
            ignored = set(re.findall(r"%ignore (addend_\w+);", text))
            if typemap == "csharp.i":
                ignored |= {one["release"] for one in self.types.values() if one["kind"] == "handle"}
            declared = set(re.findall(r"(?m)^(?:addend_status\*|void) (addend_\w+)\(", text))
            expected = {name for name, function in self.functions.items() if function["header"] == "addend.h"} - ignored
            every = "\n".join(sources.values())
            found = set(re.findall(r"public (?:final )?static \S+ (addend_\w+)\(", every)) & set(self.functions)
            with self.subTest(typemap):
                self.assertEqual(found, expected | (declared - ignored))


if __name__ == "__main__":
    API, SYMBOLS, HANDLES, SCHEMAS = sys.argv[1:5]
    for path in sys.argv[5:]:
        folder, name = os.path.split(path)
        FILES[os.path.basename(folder) + "/" + name if name.endswith(".h") else name] = read(path)
    unittest.main(argv=sys.argv[:1])
