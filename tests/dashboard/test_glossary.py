"""The glossary page: every page links to it, its Markdown is escaped, and it may be missing."""

from __future__ import annotations

import re

from dashboard import pages

TEXT = """# Words

A **path** is a *sequence* of links, see [formats](formats.md).

| term | meaning |
|---|---|
| subflow | a TCP connection; `ue1-1/2` |

- cwnd: the window <script>alert(1)</script>
- RTT
"""


def test_every_page_links_to_the_glossary(client):
    for path in ("/", "/runs", "/runs/plain", "/scenarios/testbed_wifi_lte", "/nowhere"):
        assert '<a href="/glossary">Words used here</a>' in client.get(path).text
    assert client.get("/glossary").status_code == 200


def test_markdown_becomes_simple_html(tmp_path):
    (tmp_path / "glossary.md").write_text(TEXT)
    page = str(pages.page(tmp_path / "glossary.md"))
    assert "<h1>Words</h1>" in page
    assert "<strong>path</strong>" in page
    assert "see formats." in page
    assert "<th>term</th>" in page
    assert "<td>a TCP connection; <code>ue1-1/2</code></td>" in page
    assert "---" not in page
    assert page.count("<li>") == 2
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_missing_file_is_a_sentence(tmp_path):
    assert "docs/glossary.md is missing" in pages.page(tmp_path / "glossary.md")


def test_the_words_are_in_alphabetical_order_and_hold_those_of_the_pages():
    lines = pages.FILE.read_text(encoding="utf-8").splitlines()
    words = [row.split("|")[1].strip().lower() for row in lines if row.startswith("| ")][1:]
    bare = [re.split(r" \(|, ", each)[0] for each in words]
    assert bare == sorted(bare)
    assert {"mean opinion score", "slowdown", "jitter", "incast", "playout"} <= set(bare)
