"""A page as the tests read it."""

import json
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """What the tests want to know of a page."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags, self.open, self.words, self.scripts = [], [], [], []
        self.feed(self.text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def shown(self):
        return " ".join(" ".join(self.words).split())

    @property
    def data(self):
        return json.loads(self.scripts[0])

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]
