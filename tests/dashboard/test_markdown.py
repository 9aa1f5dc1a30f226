"""Markdown becomes simple HTML, and nothing in it can become a tag of its own."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.markdown import html

TAGS = r"h[1-6]|[uo]l|li|p|strong|em|s|a|code|pre|blockquote|hr|br|table|thead|tbody|tr|th|td"
ATTRIBUTES = {"href": r"https?://.*", "rel": "noreferrer", "start": r"\d+"}
ATTRIBUTES |= {"class": "language-.*", "style": "text-align:(left|center|right)"}


class Tags(HTMLParser):
    """Fails for a tag that Markdown does not have, or for an attribute with another value."""

    def handle_starttag(self, tag, attrs):
        assert re.fullmatch(TAGS, tag)
        for name, value in attrs:
            assert re.fullmatch(ATTRIBUTES[name], value, re.DOTALL)

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Four *laptops*", "<h2>Four <em>laptops</em></h2>"),
        ("1. one\n   more\n2. two", "<ol><li>one more</li><li>two</li></ol>"),
        ("- a\n- b **c**", "<ul><li>a</li><li>b <strong>c</strong></li></ul>"),
        ("- a\n  - b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
        ("`a **b** <c>`", "<p><code>a **b** &lt;c&gt;</code></p>"),
        ("```\nx < 1\n```", "<pre><code>x &lt; 1</code></pre>"),
        (
            "see [RFC](https://a.example/x?a=1&b=2)",
            '<p>see <a href="https://a.example/x?a=1&amp;b=2" rel="noreferrer">RFC</a></p>',
        ),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](//a.example) and [y](formats.md)", "<p>x and y</p>"),
        ("[x](http:a) <mailto:a@b.example>", "<p>x mailto:a@b.example</p>"),
        ("![x](a.png)", "<p>!x</p>"),
        ("<b onclick=x>a</b>", "<p>&lt;b onclick=x&gt;a&lt;/b&gt;</p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
    ],
)
def test_what_is_supported(text, expected):
    found = re.sub(r"\n(?=<)|(?<=>)\n", "", str(html(text)))
    assert found.replace("\n", " ") == expected


@pytest.mark.parametrize(
    "text",
    [
        '```"><script>\nx\n```',
        '[a](https://a.example/"onclick=x "t<i>")',
        "[a]: javascript:x\n\n[a]",
        "<javascript:x> <data:x,y>",
        "&lt;script&gt; &#60;script&#62;",
        "|<i>|\n|:-:|\n|<script>|",
    ],
)
def test_known_tricks_make_no_tag(text):
    Tags().feed(str(html(text)))


@given(st.text(alphabet="<>\"'&`*#[]()|-1. \nahttps:/!~\\;", max_size=80))
def test_nothing_of_the_text_becomes_a_tag(text):
    Tags().feed(str(html(text)))
