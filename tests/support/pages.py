"""A reader of the pages that reports and certificates are, and of the documents behind them."""

import itertools
import re
from html.parser import HTMLParser
from xml.etree import ElementTree


class Page(HTMLParser):
    """Collect what a test asks about, and refuse tags that are not closed in order and drawings that are no XML."""

    VOID = frozenset({"br", "img", "input", "meta", "wbr"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open
        self.svgs = text.count("<svg")
        for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            ElementTree.fromstring(svg)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def read_alone(text, *, scripts=0):
    """Return a page, after checking that it loads nothing, and can be read without eyes or mouse or `scripts`.

    Pictures may be in the page itself, each with words for those who cannot see it.
    """
    page = Page(text)
    assert all(attrs["alt"] for attrs in page.all("img"))
    text = re.sub(r'\ssrc="data:image/svg\+xml;base64,[\w+/=]+"', "", text)
    names = {name for name, _ in page.tags}
    assert page.all("script") == [{}] * scripts
    assert not names & {"link", "iframe", "object", "form", "base", "use"}
    assert not re.search(r"(?:https?:)?//|@import|url\(|\ssrc=|\son\w+=", text)
    assert page.all("html") == [{"lang": "en"}] and "width=device-width" in text
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(
        attrs["href"].startswith("#") and attrs["href"][1:] in ids
        for attrs in page.all("a")
    )
    for _, attrs in page.tags:
        assert set((attrs.get("aria-labelledby") or "").split()) <= set(ids)
    assert all(attrs.get("scope") in ("row", "col") for attrs in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    levels = [int(name[1]) for name, _ in page.tags if re.fullmatch(r"h[1-6]", name)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    return page


def paths(value, free, path=()):
    """Yield the path of every entry of a document, except below the keys in `free`; of a list, the first entry's."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            if key not in free:
                yield from paths(inner, free, (*path, key))
    elif isinstance(value, list) and value:
        yield from paths(value[0], free, (*path, 0))


def contrast(*colours):
    """Return the contrast of two colours #rrggbb, as WCAG defines it; text needs 4.5."""
    lower, upper = sorted(map(_luminance, colours))
    return (upper + 0.05) / (lower + 0.05)


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
