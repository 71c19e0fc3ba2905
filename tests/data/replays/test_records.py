"""The rows of the tables: values of decoded games have the types of their columns."""

import json
import types
import typing

import pytest

from starleague.data.replays import records, refusals
from tests.data.replays.games import Game, decoded

FIELDS = {records.GameRow: 18, records.PlayerRow: 19, records.BuildRow: 12, records.CommandRow: 17,
          records.RefusalRow: 4}


def fits(value, hint):
  """Returns whether a value is of a hint's type: a class, a list of one, or one or None."""
  if isinstance(hint, types.UnionType):
    return any(fits(value, kind) for kind in typing.get_args(hint))
  if typing.get_origin(hint) is list:
    item, = typing.get_args(hint)
    return type(value) is list and all(fits(each, item) for each in value)
  return type(value) is hint


def rows():
  """Yields rows of all kinds: of a game with a map, without results, and a refusal."""
  for game in (Game(), Game(handles=(), events=Game.events[:-1])):
    found = decoded(game)
    yield from (found.game, *found.players, *found.builds, *found.commands)
  yield records.RefusalRow("", "a.SC2Replay", refusals.DAMAGED, "cut off")


def test_values_have_the_types_of_their_columns():
  found = list(rows())
  assert {type(row) for row in found} == set(FIELDS)
  for row in found:
    for name, hint in typing.get_type_hints(type(row)).items():
      assert fits(getattr(row, name), hint), (type(row).__name__, name, getattr(row, name))


@pytest.mark.parametrize("kind", sorted(FIELDS, key=lambda kind: kind.__name__))
def test_rows_travel_as_json(kind):
  """Decoders send rows as JSON: what comes back equals what was sent."""
  found = [row for row in rows() if isinstance(row, kind)]
  assert len(kind._fields) == FIELDS[kind]
  assert [kind(*row) for row in json.loads(json.dumps(found))] == found
