"""No link of the site is dead, no page loads anything from elsewhere, and nothing that has to be there is missing.

usage: site_test.py SITE API [LANGUAGE...]
"""

import html.parser
import json
import os
import re
import sys
import unittest
import urllib.parse

SITE = API = None
LANGUAGES = []

# Addresses that a browser loads by itself: (element, attribute).
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("video", "src"),
          ("audio", "src"), ("embed", "src"), ("object", "data"), ("input", "src"), ("image", "href"), ("use", "href")}
# Words that every language spells.
WORDS = ["composition", "component", "reference", "leftover", "recovery", "recovery-error", "conditioning", "contribution",
         "model", "input", "baseline", "split", "probe", "target", "context", "results", "report", "explanation",
         "attribution", "program", "name", "inside"]


# A word of a sentence, outside of the marks around it.
WORD = re.compile(r"(?:^|>)[^<]*\w")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.links, self.loads, self.ids, self.styles = [], [], set(), []
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ("id", "name"):
            if given.get(name) and (name == "id" or tag == "a"):
                self.ids.add(given[name])
        for name, value in given.items():
            if (tag, name) in LOADED and value is not None:
                self.loads.append(value)
            elif name == "href" and value is not None:
                self.links.append(value)
            elif name == "style" and value:
                self.styles.append(value)
        refresh = re.search(r"url=(.*)", given.get("content") or "", re.IGNORECASE)
        if given.get("http-equiv", "").lower() == "refresh" and refresh:
            self.links.append(refresh.group(1).strip("'\" "))
        self._style = tag == "style"

    def handle_data(self, data):
        if self._style:
            self.styles.append(data)

    def handle_endtag(self, tag):
        self._style = False


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {os.path.relpath(os.path.join(folder, name), SITE)
                     for folder, _, names in os.walk(SITE, followlinks=True) for name in names}
        cls.pages = {path: Page(read(os.path.join(SITE, path))) for path in cls.files if path.endswith(".html")}

    def test_no_internal_link_is_dead(self):
        checked, dead = 0, []
        for path, page in self.pages.items():
            for href in page.links + page.loads:
                url = urllib.parse.urlsplit(href)
                if url.scheme or url.netloc:
                    continue
                target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
                if os.path.isdir(os.path.join(SITE, target)):
                    target = os.path.join(target, "index.html")
                anchor = urllib.parse.unquote(url.fragment)
                checked += 1
                if target not in self.files:
                    dead.append("%s: %s" % (path, href))
                elif anchor and target in self.pages and anchor not in self.pages[target].ids:
                    dead.append("%s: %s (no such anchor)" % (path, href))
        self.assertEqual(dead[:50], [])
        self.assertGreater(checked, 1500)

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, page in self.pages.items():
            for url in page.loads:
                with self.subTest(path, url=url[:80]):
                    self.assertIn(urllib.parse.urlsplit(url).scheme, ("", "data"))
                    self.assertFalse(url.startswith("//"))
        sheets = [read(os.path.join(SITE, path)) for path in self.files if path.endswith(".css")]
        for text in sheets + [style for page in self.pages.values() for style in page.styles]:
            for url in re.findall(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]([^'\"]*)", text):
                with self.subTest(url=url):
                    self.assertNotRegex("".join(url), r"^(?:\w+:)?//")

    def test_every_page_of_the_repository_is_there(self):
        for path in ["index.html", "gallery.html", "words.html", "names.html", "docs/python.html", "docs/from_python.html",
                     "docs/java.html", "docs/csharp.html", "docs/cpp.html", "docs/c_api.html", "docs/building.html", "docs/glossary.html"]:
            self.assertIn(path, self.pages)
        menu = self.pages["index.html"].links
        self.assertIn("words.html", menu)

    def test_the_c_reference_is_complete(self):
        with open(API, encoding="utf-8") as file:
            api = json.load(file)
        ids = self.pages["reference/c.html"].ids
        for key in ("functions", "types", "enums"):
            for one in api[key]:
                self.assertIn(one["name"], ids)

    def test_each_language_has_its_reference(self):
        for language, page, anchors in (
            ("cpp", "reference/cpp.html", ["Model.Decompose", "Explanation.leftover", "Tensor.Copy", "Program.AsModel"]),
            ("python", "reference/python.html", ["Model.decompose", "Explanation.leftover", "compile", "Composition.softmax"]),
            ("csharp", "reference/csharp.html", ["Addend.Model", "Addend.Explanation.Leftover", "Addend.Scope"]),
            ("java", "reference/java/dev/addend/Explanation.html", ["leftover()", "top(int)"]),
        ):
            if language in LANGUAGES:
                with self.subTest(language):
                    self.assertFalse(set(anchors) - self.pages[page].ids)

    def test_each_name_of_a_reference_has_a_sentence(self):
        for language, page, least in (("cpp", "reference/cpp.html", 200), ("csharp", "reference/csharp.html", 600)):
            if language not in LANGUAGES:
                continue
            with self.subTest(language):
                text = read(os.path.join(SITE, page))
                entries = re.findall(r'<h2 id="[^"]*">(.*?)</h2><p>(.*?)</p>', text, re.DOTALL)
                entries += re.findall(r'<div class="entry"[^>]*><pre><code>(.*?)</code></pre><p>(.*?)</p>', text, re.DOTALL)
                self.assertEqual([name for name, told in entries if not WORD.search(told)], [])
                self.assertGreater(len(entries), least)

    def test_the_reference_of_csharp_has_types_and_nothing_internal(self):
        if "csharp" not in LANGUAGES:
            self.skipTest("C# is not built here")
        entries = set(re.findall(r'<div class="entry"[^>]*><pre><code>(.*?)</code></pre>', read(os.path.join(SITE, "reference/csharp.html"))))
        for entry in ("double Explanation.Value", "IReadOnlyList&lt;Contribution&gt; Explanation.Contributions",
                      "IReadOnlyList&lt;long&gt; Tensor.Strides", "Explanation Attribution.Explain(int target)",
                      "Split Input.Split", "double Report.WorstRecoveryError"):
            self.assertIn(entry, entries)
        self.assertEqual([entry for entry in entries if re.search(r"Handle\b|\.Take\(|Structure\.", entry)], [])

    def test_words_are_spelled_in_every_language(self):
        text = read(os.path.join(SITE, "words.html"))
        entries = dict(re.findall(r'<div class="word" id="([^"]+)">(.*?)(?=<div class="word"|</main>)', text, re.DOTALL))
        self.assertGreater(len(entries), 50)
        titles = {"cpp": "C++", "python": "Python", "csharp": "C#", "java": "Java", "c": "C"}
        for word in WORDS:
            for language in ["c"] + LANGUAGES:
                with self.subTest(word, language=language):
                    self.assertRegex(entries[word], r"<b>%s</b><a " % re.escape(titles[language]))


if __name__ == "__main__":
    SITE, API = sys.argv[1:3]
    LANGUAGES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
