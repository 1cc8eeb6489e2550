"""Code in colours: classes of Pygments in each block, whose colours stand in style.css."""

import html
import re

import pygments
import pygments.formatters
import pygments.lexers
import pygments.util
from layout import escape

_BLOCK = re.compile(r'<pre><code class="language-([\w+#-]+)">(.*?)</code></pre>', re.DOTALL)
_FORMATTER = pygments.formatters.HtmlFormatter(nowrap=True)


def _painted(code, lexer):
    return pygments.highlight(code, lexer, _FORMATTER).rstrip("\n")


def block(code, language):
    """A block of code. language: a name that Pygments knows; a block in another one stays plain."""
    try:
        lexer = pygments.lexers.get_lexer_by_name(language, stripnl=False)
    except pygments.util.ClassNotFound:
        return '<pre><code class="language-%s">%s</code></pre>' % (escape(language), escape(code))
    return '<pre><code class="language-%s">%s</code></pre>' % (escape(language), _painted(code, lexer))


def file(code, name):
    """A whole file, in the language that its name tells."""
    try:
        lexer = pygments.lexers.get_lexer_for_filename(name, stripnl=False)
    except pygments.util.ClassNotFound:
        return "<pre><code>%s</code></pre>" % escape(code)
    return "<pre><code>%s</code></pre>" % _painted(code, lexer)


def page(body):
    """A page whose blocks name their language."""
    return _BLOCK.sub(lambda match: block(html.unescape(match.group(2)), match.group(1)), body)
