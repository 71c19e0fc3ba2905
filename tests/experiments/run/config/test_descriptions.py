"""Every config key has a description, which is the comment beside it."""

import pytest

from starleague.experiments.run.config import descriptions, settings

SOURCE = """
# Not a key's.
OPTIONS = {
  "one": 1,  # behind the key
  # Before the key,
  # in two lines.
  "two": 2,
  "bare": 3,
}

def _from_imitation():
  return ml.ConfigDict({"group": _group(), "inner": {  # of a group
    "deep": 4,  # nested
  }})

def _group():
  return {"key": 5}  # of a call
"""


def test_comments_beside_keys_are_found():
  assert descriptions.described(SOURCE) == {
    "one": "behind the key", "two": "Before the key, in two lines.", "inner": "of a group",
    "inner.deep": "nested", "group": "of a group", "group.key": "of a call"}


@pytest.mark.parametrize("key", settings.flat(settings.base()))
def test_every_config_key_is_described(key):
  text = descriptions.descriptions()[key]
  assert 2 <= len(text.split()) <= 25 and "\n" not in text
