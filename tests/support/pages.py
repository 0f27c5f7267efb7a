"""A reader of the pages that reports and certificates are."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree


class Page(HTMLParser):
    """Collect what a test asks about, and refuse tags that are not closed in order and drawings that are no XML."""

    VOID = frozenset({"meta", "wbr"})

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
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]
