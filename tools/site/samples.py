"""Samples of one thing in several languages, which the reader sees in one of them: site.js makes tabs of them."""

import re

from layout import escape

LANGUAGES = {"python": "Python", "py": "Python", "java": "Java", "csharp": "C#", "cs": "C#", "cpp": "C++", "c": "C"}

# A block with the line above it that names its language, if there is such a line.
_SAMPLE = re.compile(
    r'(?P<line><p>(?:Python|Java|C#|C\+\+|C)(?![\w+#])(?:(?!</p>).)*:</p>\s*)?'
    r'<pre><code class="language-(?P<language>%s)">(?:(?!</pre>).)*</pre>\s*' % "|".join(LANGUAGES), re.DOTALL)


def _group(samples):
    parts = ['<section class="sample" data-language="%s">\n%s</section>' % (escape(language), text)
             for language, text in samples]
    return '<div class="samples">\n%s\n</div>\n' % "\n".join(parts)


def grouped(body):
    """A page in which samples that follow each other, each in another language, are one group."""
    parts, run, end = [], [], 0

    def flush():
        texts = [text for _, text in run]
        several = len(run) > 1 and len({language for language, _ in run}) == len(run)
        parts.append(_group(run) if several else "".join(texts))
        run.clear()

    for match in _SAMPLE.finditer(body):
        if match.start() != end:
            flush()
            parts.append(body[end:match.start()])
        run.append((LANGUAGES[match.group("language")], match.group()))
        end = match.end()
    flush()
    return "".join(parts) + body[end:]
