"""What tests of pages share."""

import html.parser


class Resources(html.parser.HTMLParser):
  """Collects what a page would load, and its open elements."""

  def __init__(self):
    super().__init__()
    self.loaded, self.open = [], []

  def handle_starttag(self, tag, attrs):
    self.loaded += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
    if tag not in ("meta", "input"):
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag
