"""Messages: the arguments of each method, values that survive, sizes and shapes refused."""

import inspect
import pathlib

import msgspec
import pytest

from starleague.league import messages
from starleague.league.coordinator import Coordinator
from starleague.league.leases import Assignment
from starleague.league.players import LeagueError, Player
from starleague.league.shared_files import SharedFiles


def test_requests_have_the_arguments_of_their_methods():
  for name, method in messages.METHODS.items():
    fields = [field.name for field in msgspec.structs.fields(method.request)]
    owner = SharedFiles if hasattr(SharedFiles, name) else Coordinator
    found = getattr(owner, name)
    if name != "players":
      assert fields == list(inspect.signature(found).parameters)[1:], name


@pytest.mark.parametrize("method, part, value", [
  ("matches", "answer", [Assignment("1-1", "a", "b", "pfsp", True, 3)]),
  ("players", "answer", [Player("a-0001", "historical", "zerg", "a", "main", 7)]),
  ("scores", "answer", [0.5, 1.0]),
  ("orders", "request", messages.OrdersRequest(None)),
])
def test_a_message_has_the_value_that_was_encoded(method, part, value):
  assert messages.decode(method, part, messages.encode(value)) == value


def test_the_largest_message_is_encoded_and_one_byte_more_is_refused(monkeypatch):
  monkeypatch.setattr(messages, "MAX_BYTES", 12)
  assert messages.encode("x" * 10) == b'"xxxxxxxxxx"'
  with pytest.raises(LeagueError, match="A message of 13 bytes is too large, expected at most 12"):
    messages.encode("x" * 11)


@pytest.mark.parametrize("method, message, text", [
  ("matches", b'{"name": "a", "count": 0}', r"Expected `int` >= 1 - at `\$.count`, found 0\."),
  ("scores", b'{"home": "a", "away": ["b", 7]}', r"at `\$.away\[1\]`, found 7\."),
  ("pause", b'{"name": "' + b"x" * 300 + b'"}', r"at `\$.name`, found 'x{79}\.\.\.\."),
  ("matches", b"{}", r"missing required field `name`\."),
])
def test_a_refusal_names_the_field_and_the_value(method, message, text):
  with pytest.raises(LeagueError, match=text):
    messages.decode(method, "request", message)


def test_the_page_names_each_method_with_its_callers():
  page = (pathlib.Path(__file__).parents[2] / "docs" / "league.md").read_text()
  table = page.split("| caller | methods |")[1].split("\n\n")[0]
  assert [name for name in messages.METHODS if f"`{name}`" not in table] == []
