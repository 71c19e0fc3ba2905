"""Helpers of the tests of pages."""

import base64
import html.parser
import json
import re
import zlib

import numpy as np


class Resources(html.parser.HTMLParser):
  """Collects the addresses that a page loads, and its open elements."""

  def __init__(self):
    super().__init__()
    self.loaded, self.open = [], []

  def handle_starttag(self, tag, attrs):
    self.loaded += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
    if tag not in ("meta", "input"):
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag


def check_self_contained(page):
  """Checks that a page is well-formed and loads nothing."""
  parser = Resources()
  parser.feed(page)
  assert parser.loaded == [] and parser.open == []


def data_of(page, name):
  """Returns the JSON of a page's script element."""
  return json.loads(re.search(
    rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)[1])


def plots_of(page):
  """Returns the plots of a page in order."""
  return [json.loads(found) for found in re.findall(
    r"<div class='plot' [^>]*><script type='application/json'>(.*?)</script>", page, re.DOTALL)]


def unpack(packed):
  """Inverts `watch.page.pack`."""
  raw = zlib.decompress(base64.b64decode(packed["data"]))
  total, *rest = packed["shape"]
  growth = np.frombuffer(raw, np.dtype(packed["type"]).newbyteorder("<")).reshape(*rest, total)
  return np.moveaxis(np.cumsum(growth, axis=-1, dtype=packed["type"]), -1, 0)
