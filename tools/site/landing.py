"""The first screen of the site: how to install Addend and a whole program, both from the README."""

import re

_INSTALL = re.compile(r'<h2 id="install">.*?(<pre><code class="language-sh">.*?</pre>)', re.DOTALL)
_PROGRAM = re.compile(r'<pre><code class="language-python">.*?</pre>', re.DOTALL)
_TOP = re.compile(r"\s*(<h1.*?</h1>\s*<p>.*?</p>)", re.DOTALL)


def page(body):
    """The README with its commands and its program below the first paragraph."""
    top, install, program = _TOP.match(body), _INSTALL.search(body), _PROGRAM.search(body)
    if not (top and install and program):
        raise ValueError("the README lacks a first paragraph, a block of sh below Install, or a program in Python")
    first = '<div class="first">\n<p><a href="#install">Install</a> it beside the torch that you have, from a checkout:</p>\n' \
            '%s\n<p>Ask what made a model say what it said (<a href="#an-example">the whole example</a>):</p>\n%s\n</div>\n' % (
                install.group(1), program.group())
    return top.group(1) + first + body[top.end():]
