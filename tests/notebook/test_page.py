"""What a magic shows, as text and as HTML; and as a browser draws it, where there is one."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from dpmem._page import Finding, Page, Row, Section

EVIL = "<script>alert('x')</script> & \"quoted\""


def page(rows=3):
    section = Section(
        "By variable", [Row((n + 1) << 20, f"x[{n}]", "cell In[2], line 1", ["Out[2]", "_2"]) for n in range(rows)]
    )
    found = Finding("warning", "DPM206", "held-by-notebook", "cell In[2], line 1", "kept by `Out[2]`", "let go")
    return Page("In use: 6 MiB", [section], [found], ["a note"])


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert not {name for name, _ in attributes} & {"src", "href", "onclick", "onload"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_text_has_a_line_a_row_and_wraps():
    text = str(page())
    assert text.splitlines()[0] == "In use: 6 MiB"
    assert "     1 MiB  x[0]  cell In[2], line 1\n                also Out[2], _2\n" in text
    assert "warning DPM206 held-by-notebook  cell In[2], line 1\n  kept by `Out[2]`\n  let go" in text
    long = Page("x " * 400, [Section("By variable", [Row(1, "a", "b", ["name"] * 300)])])
    assert max(map(len, str(long).splitlines())) <= 120
    assert "and 276 more" in str(long)


def test_rows_that_are_left_out_are_counted():
    many = page(20)
    assert "… and 8 more, 132 MiB\n" in str(many)
    many.all_by = "%dpmem --all"
    assert "… and 8 more, 132 MiB: %dpmem --all\n" in str(many)
    assert "… and 8 more, 132 MiB: %dpmem --all<" in many._repr_html_()
    assert "more" not in str(Page("all", page(20).sections, rows_max=None))


def test_empty_sections_say_so_or_go():
    assert str(Page("head", [Section("Left", [], "nothing"), Section("Other", [])])) == "head\n\nLeft\n  nothing"
    assert "Other" not in Page("head", [Section("Other", [])])._repr_html_()


def test_html_is_whole_escaped_and_loads_nothing():
    evil = Page(EVIL, [Section(EVIL, [Row(1, EVIL, EVIL, [EVIL])], EVIL), Section(EVIL, [], EVIL)], [], [EVIL])
    evil.findings.append(Finding(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL))
    html = evil._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert "script" not in tags.seen
    assert html.count("&lt;script&gt;") == 15
    assert not re.search(r"url\(|@import|https?:", html)


#: Written into the page: the least contrast of any text with what lies behind it, and whether something overflows.
PROBE = """
<script>
const parts = text => text.match(/[\\d.]+/g).map(Number);
const over = (front, back) => front.slice(0, 3).map((c, i) => c * (front[3] ?? 1) + back[i] * (1 - (front[3] ?? 1)));
const light = c => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const chain = node => node ? [...chain(node.parentElement), node] : [];
let least = 99, texts = 0;
const walker = document.createTreeWalker(document.querySelector(".dpmem"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || node.tagName === "STYLE") continue;
  let back = [255, 255, 255], opacity = 1;
  for (const at of chain(node)) {
    back = over(parts(getComputedStyle(at).backgroundColor), back);
    opacity *= Number(getComputedStyle(at).opacity);
  }
  const colour = parts(getComputedStyle(node).color);
  const front = over([...colour.slice(0, 3), (colour[3] ?? 1) * opacity], back);
  const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
  least = Math.min(least, (a + .05) / (b + .05));
  texts += 1;
}
document.title = JSON.stringify({least, texts, align: getComputedStyle(document.querySelector("td code")).textAlign,
  bar: document.querySelector(".bar").getBoundingClientRect().width,
  wide: document.documentElement.scrollWidth <= innerWidth});
</script>"""
#: What JupyterLab and others give to what is shown in them.
THEMES = {
    "light": "--jp-content-font-color1: rgba(0,0,0,.87); color: rgba(0,0,0,.87); background: white",
    "dark": "--jp-brand-color1: #2196f3; color: rgba(255,255,255,1); background: #111111",
    "unknown": "color: #d4d4d4; background: #1e1e1e",
}
LAB = """
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr { text-align: right; padding: .5em;
  max-width: none; border: none; }
.jp-RenderedHTMLCommon :not(pre) > code { background-color: #888; padding: 1px 5px; }
.jp-RenderedHTMLCommon tbody tr:nth-child(even) { background: #777; }"""


@pytest.mark.parametrize("theme", THEMES)
def test_a_browser_draws_it_readably(theme, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium to draw it with: `apt-get install chromium`")
    file = tmp_path / "page.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><style>{LAB}</style><body style="{THEMES[theme]}">'
        f'<div class="jp-RenderedHTMLCommon">{page()._repr_html_()}</div>{PROBE}'
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--window-size=700,900"]
    done = subprocess.run([browser, *options, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found, done.stderr
    seen = json.loads(found.group(1))
    assert seen["texts"] > 10
    assert seen["least"] >= 4.5, seen
    assert (seen["align"], seen["wide"]) == ("left", True)
    assert seen["bar"] > 20
