"""No link of the site is dead, no page loads anything from elsewhere, nothing that has to be there is missing, and the search
finds it.

usage: site_test.py SITE API BROWSER.PY [LANGUAGE|search...]
"""

import base64
import html
import html.parser
import importlib
import json
import os
import re
import sys
import tempfile
import unittest
import urllib.parse

SITE = API = None
LANGUAGES = []
SEARCH = False
browser = None  # the module of that file

# Addresses that a browser loads by itself: (element, attribute).
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("video", "src"),
          ("audio", "src"), ("embed", "src"), ("object", "data"), ("input", "src"), ("image", "href"), ("use", "href")}
# Words that every language spells.
WORDS = ["composition", "component", "reference", "leftover", "recovery", "recovery-error", "conditioning", "contribution",
         "model", "input", "baseline", "split", "probe", "target", "context", "results", "report", "explanation",
         "attribution", "program", "name", "inside"]


# Questions, and pages of which one has to be among the first places that are found.
QUESTIONS = {
    "how to install": {"index.html", "docs/building.html", "docs/python.html", "docs/java.html", "docs/csharp.html"},
    "beeswarm": {"docs/from_shap.html", "docs/plots.html", "docs/jobs.html"},
    "leftover": {"docs/glossary.html", "docs/concepts.html", "docs/results.html", "words.html"},
}
_FRAME = '<iframe width="1000" src="file://%s"></iframe>'
# Pages that javadoc makes of itself; it has a search of its own for them.
OF_JAVADOC = re.compile(r"reference/java(\.html$|/(?!dev/addend/[A-Z]))")
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

    def test_the_menu_leads_to_what_people_look_for(self):
        menu = re.search(r'<nav class="menu".*?</nav>', read(os.path.join(SITE, "index.html")), re.DOTALL).group()
        for page in ["docs/jobs", "docs/reasons", "docs/interactions", "docs/from_captum", "docs/from_shap", "benchmarks/README",
                     "benchmarks/peers/README", "docs/notebooks/README", "docs/notebooks/table"]:
            self.assertIn('href="%s.html"' % page, menu)
        self.assertEqual('href="docs/plots.html"' in menu, "docs/plots.html" in self.pages)

    def test_the_first_page_begins_with_how_to_install_and_a_program(self):
        first, rest = read(os.path.join(SITE, "index.html")).split("<img", 1)
        first = re.sub(r"<[^>]*>", "", first)
        self.assertIn("pip install", first)
        self.assertIn("addend.load_model(", first)
        self.assertIn('id="install"', rest)

    def test_no_page_has_a_path_of_a_machine(self):
        own = re.compile(r"(?:^|[^\w.])/(?:home|root|Users|tmp|build|work)/\w|/execroot/|bazel-out/|/sandbox/linux")
        for path in sorted(self.files):
            if path.endswith((".html", ".js", ".css")) and not re.match(r"reference/java/(script-dir|legal|jquery)", path):
                found = own.search(re.sub(r"https?://[^\s\"<]*", "", read(os.path.join(SITE, path))))
                self.assertIsNone(found, path)

    def test_notebooks_are_pages_with_their_figures(self):
        """The figures, which are drawn of data, tell the numbers that the notebooks print."""
        compared = 0
        for name in ("image", "language_model", "speaker", "table", "text"):
            text = read(os.path.join(SITE, "docs/notebooks/%s.html" % name))
            self.assertIn('<pre class="out">', text)
            figure = re.search(r'<pre class="out"><code>([^<]*)</code></pre>\s*<figure class="drawn">(.*?)</figure>', text,
                               re.DOTALL)
            self.assertIsNotNone(figure, name)
            printed, drawn = (html.unescape(part) for part in figure.groups())
            self.assertNotIn("<script", drawn)
            for number, part in re.findall(r"(?m)^ *([-+][\d.]+(?:e-\d+)?)  (\S.*)$", printed):
                bar = re.search(r'<span>%s</span><span class="track">.*?</span><b>(.*?)</b>' % re.escape(part), drawn)
                if bar is not None:
                    self.assertAlmostEqual(float(bar.group(1)), float(number), delta=1e-3 * abs(float(number)))
                    compared += 1
        self.assertGreater(compared, 20)

    def test_figures_of_matplotlib_are_images_that_tell_what_they_show(self):
        """The sum under each figure adds up."""
        number = r"[\u2212+]? ?[\d.]+(?:e[\u2212-]\d+)?"
        for name in ("credit", "recommender", "survival", "time_series"):
            text = read(os.path.join(SITE, "docs/notebooks/%s.html" % name))
            (drawn,) = re.findall(r'<figure class="plot"><img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)"></figure>', text)
            told = html.unescape(drawn[0])
            self.assertTrue(base64.b64decode(drawn[1]).decode("utf-8").startswith("<?xml"))
            terms = re.search(r"(%s) \(reference\) (%s) \(\d+ \w+\) (%s) \(leftover\) = (%s) \(value\)" % ((number,) * 4), told)
            self.assertIsNotNone(terms, told)
            *parts, value = (float(term.replace("\u2212", "-").replace(" ", "")) for term in terms.groups())
            self.assertAlmostEqual(sum(parts), value, delta=2e-3)

    def test_long_pages_have_a_table_of_contents(self):
        long = 0
        for path in self.pages:
            text = read(os.path.join(SITE, path))
            main = re.search(r'<main class="[^"]*">(.*?)</main>', text, re.DOTALL)
            if main is None or path == "index.html":
                continue
            anchors = re.findall(r'<h[23] id="([^"]*)"', main.group(1))
            listed = re.search(r'<nav class="contents".*?</nav>', text, re.DOTALL)
            if len(anchors) >= 3 and len(re.sub(r"<[^>]*>", "", main.group(1))) >= 5500:
                long += 1
                with self.subTest(path):
                    self.assertIsNotNone(listed)
                    self.assertEqual(re.findall(r'href="#([^"]*)"', listed.group()), anchors)
        self.assertGreater(long, 25)

    def test_code_has_colours_and_languages(self):
        text = read(os.path.join(SITE, "docs/first_program.html"))
        group = re.search(r'<div class="samples">.*?</div>', text, re.DOTALL).group()
        self.assertEqual(re.findall(r'data-language="([^"]*)"', group), ["Python", "Java", "C#", "C++", "C"])
        self.assertRegex(text, r'<code class="language-python">.*<span class="n">')

    def searched(self):
        """{page: [[anchor, heading, text]]}, as the search reads it."""
        text = read(os.path.join(SITE, "search/pages.js"))
        return {path: sections for path, _, _, sections in json.loads(text[text.index("["):text.rindex("]") + 1])}

    def test_every_page_is_searched(self):
        if not SEARCH:
            self.skipTest("there is no lunr.js")
        searched = self.searched()
        self.assertEqual([path for path in sorted(self.pages) if path not in searched and not OF_JAVADOC.match(path)], [])
        for path, sections in searched.items():
            with self.subTest(path):
                self.assertTrue(any(text for _, _, text in sections))
                self.assertEqual({anchor for anchor, _, _ in sections} - self.pages[path].ids - {""}, set())
        with open(API, encoding="utf-8") as file:
            functions = {one["name"] for one in json.load(file)["functions"]}
        self.assertEqual(functions - {anchor for anchor, _, _ in searched["reference/c.html"]}, set())
        for path, words in (("docs/notebooks/table.html", "worst smoothness"), ("gallery/language.html", "Mehrheit")):
            self.assertTrue(any(words in text for _, _, text in searched[path]), path)

    def test_the_search_finds(self):
        if not SEARCH:
            self.skipTest("there is no lunr.js")
        if browser.find() is None:
            print("\nskipped: nothing was searched, since there is no browser", flush=True)
            self.skipTest("there is no chromium")
        for question, wanted in QUESTIONS.items():
            for page in ("index.html", "docs/python.html"):
                with self.subTest(question, page=page):
                    address = "file://%s?q=%s" % (os.path.realpath(os.path.join(SITE, page)), urllib.parse.quote(question))
                    shown = browser.dom(address, "--virtual-time-budget=60000")
                    found = re.search(r'<section id="site-found".*?</section>', shown, re.DOTALL).group()
                    links = re.findall(r'<a href="([^"]*)">(.*?)</a>', found, re.DOTALL)
                    self.assertTrue(links, found[:500])
                    folder = os.path.dirname(page)
                    pages = [os.path.normpath(os.path.join(folder, link.split("#")[0])) for link, _ in links]
                    self.assertTrue(set(pages[:5]) & wanted, pages[:10])
                    for link, text in links[:5]:
                        self.assertIn("<mark>", text)

    def framed(self, frames, script, *options):
        """The text that a script writes which sees pages in frames of its own page."""
        if browser.find() is None:
            self.skipTest("there is no chromium")
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "frames.html")
            with open(page, "w", encoding="utf-8") as file:
                file.write('<!DOCTYPE html><meta charset="utf-8"><body>%s<script>%s</script>' % (frames, script))
            shown = browser.dom("file://" + page, "--allow-file-access-from-files", *options)
        return html.unescape(re.search(r"<body>(.*?)</body>", shown, re.DOTALL).group(1)).strip()

    def test_the_reader_chooses_language_and_light_once(self):
        """A click on a tab and one on the switch hold when the page is opened again."""
        page = os.path.realpath(os.path.join(SITE, "docs/first_program.html"))
        script = """const frame = document.querySelector("iframe"), told = [];
          function tell() {
            const page = frame.contentDocument;
            told.push([page.documentElement.dataset.theme || "", [...page.querySelectorAll(".sample")].filter(s => !s.hidden).map(
              s => s.dataset.language), page.querySelectorAll(".code > button").length]);
          }
          frame.onload = () => {
            tell();
            if (told.length > 2) { document.body.textContent = JSON.stringify(told); return; }
            [...frame.contentDocument.querySelectorAll("[role=tab]")].find(tab => tab.textContent === "C#").click();
            frame.contentDocument.getElementById("site-theme").click();
            tell();
            frame.contentWindow.location.reload();
          };"""
        told = json.loads(self.framed(_FRAME % page, script, "--virtual-time-budget=20000"))
        buttons = len(re.findall(r"<pre", read(page)))
        (before, chosen, again) = told
        self.assertEqual(before, ["", ["Python"], buttons])
        self.assertIn(chosen[0], ("light", "dark"))
        self.assertEqual(chosen[1:], [["C#"], buttons])
        self.assertEqual(again, chosen)

    def test_keys_lead_to_the_search_and_through_it(self):
        """A slash leads to the field, arrows through what is found, and the escape key back to the page."""
        if not SEARCH:
            self.skipTest("there is no lunr.js")
        page = os.path.realpath(os.path.join(SITE, "index.html"))
        script = """const frame = document.querySelector("iframe"), told = [];
          frame.onload = async () => {
            const page = frame.contentDocument, list = page.getElementById("site-found");
            const press = key => {
              page.activeElement.dispatchEvent(new frame.contentWindow.KeyboardEvent("keydown", { key, bubbles: true }));
              told.push([page.activeElement.id || page.activeElement.tagName, list.hidden]);
            };
            press("/");
            page.activeElement.value = "leftover";
            page.activeElement.dispatchEvent(new frame.contentWindow.Event("input", { bubbles: true }));
            while (!list.querySelector("a")) await new Promise(done => setTimeout(done, 50));
            ["ArrowDown", "ArrowUp", "Escape"].forEach(press);
            document.body.textContent = JSON.stringify(told);
          };"""
        told = json.loads(self.framed(_FRAME % page, script, "--virtual-time-budget=60000"))
        self.assertEqual(told, [["site-search", True], ["A", False], ["site-search", False], ["BODY", True]])

    def test_no_page_is_wider_than_its_window(self):
        paths = [path for path in sorted(self.pages) if not path.startswith(("gallery/", "source/", "reference/java"))]
        root = os.path.realpath(SITE)
        frames = "".join('<iframe width="%d" height="800" src="file://%s"></iframe>' % (width, os.path.join(root, path))
                         for width in (400, 1280) for path in paths if not re.search(r"_\d+\.html$|peers/results", path))
        script = """addEventListener("load", () => {
          const wide = [...document.querySelectorAll("iframe")].filter(f => {
            const page = f.contentDocument.documentElement; return page.scrollWidth > page.clientWidth; });
          document.body.textContent = "wide:" + wide.map(f => f.width + " " + f.src).join(",") + "."; });"""
        self.assertEqual(self.framed(frames, script), "wide:.")

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
                entries += re.findall(r'<div class="entry"[^>]*><pre><code[^>]*>(.*?)</code></pre><p>(.*?)</p>', text, re.DOTALL)
                self.assertEqual([name for name, told in entries if not WORD.search(told)], [])
                self.assertGreater(len(entries), least)

    def test_the_reference_of_csharp_has_types_and_nothing_internal(self):
        if "csharp" not in LANGUAGES:
            self.skipTest("C# is not built here")
        entries = re.findall(r'<div class="entry"[^>]*><pre><code[^>]*>(.*?)</code></pre>', read(os.path.join(SITE, "reference/csharp.html")),
                             re.DOTALL)
        entries = {html.unescape(re.sub(r"<[^>]*>", "", entry)) for entry in entries}
        for entry in ("double Explanation.Value", "IReadOnlyList<Contribution> Explanation.Contributions",
                      "IReadOnlyList<long> Tensor.Strides", "Explanation Attribution.Explain(int target)",
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
                    self.assertRegex(entries[word], r"<b>%s</b> <a " % re.escape(titles[language]))


if __name__ == "__main__":
    SITE, API, place = sys.argv[1:4]
    LANGUAGES = [word for word in sys.argv[4:] if word != "search"]
    SEARCH = "search" in sys.argv[4:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    browser = importlib.import_module("browser")
    unittest.main(argv=sys.argv[:1])
