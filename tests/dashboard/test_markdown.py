"""Markdown becomes simple HTML, and nothing in it can become a tag of its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.markdown import html

TAGS = r"</?(h[123]|ul|ol|li|p|b|em|code|pre|table|thead|tbody|tr|th|td)>"
LINK = r'<a href="https?://[^"<>\s]*" rel="noreferrer">|</a>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Four *laptops*", "<h2>Four <em>laptops</em></h2>"),
        ("1. one\n   more\n2. two", "<ol><li>one more</li><li>two</li></ol>"),
        ("- a\n- b **c**", "<ul><li>a</li><li>b <b>c</b></li></ul>"),
        ("`a **b** <c>`", "<p><code>a **b** &lt;c&gt;</code></p>"),
        ("```\nx < 1\n```", "<pre><code>x &lt; 1\n</code></pre>"),
        (
            "see [RFC](https://a.example/x?a=1&b=2)",
            '<p>see <a href="https://a.example/x?a=1&amp;b=2" rel="noreferrer">RFC</a></p>',
        ),
        ("[x](javascript:alert(1))", "<p>x)</p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
    ],
)
def test_what_is_supported(text, expected):
    assert html(text).replace("\n<pre>", "<pre>") == expected


@given(st.text(alphabet="<>\"'&`*#[]()|-1. \nahttps:/", max_size=80))
def test_nothing_of_the_text_becomes_a_tag(text):
    assert re.sub(f"{TAGS}|{LINK}", "", str(html(text))).count("<") == 0
