"""The parts of actors: one way to play each game, hosts that reach the games' processes."""

import functools
from multiprocessing.reduction import ForkingPickler

import pytest

from starleague.agent import types
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry, sc2


def make_parts(name, **changes):
  return registry.make_parts(settings.complete({}, {"environment.name": name, **changes}))


@pytest.mark.parametrize("name, is_compiled", [("skirmish", True), ("sc2", False)])
def test_a_game_is_played_in_one_way(name, is_compiled):
  parts = make_parts(name)
  assert ((parts.compiled is not None), (parts.hosted is not None)) == (
    is_compiled, not is_compiled)
  assert parts.opponents and parts.maps and parts.races
  assert set(parts.opponent_races) <= set(range(len(types.RACES))) - {types.RACES.index("random")}


def test_hosted_games_can_be_sent_to_a_new_process():
  parts = make_parts("sc2", **{
    "sc2.maps": "Flat32,Simple64", "sc2.deadline_s": 30.0, "sc2.camera": False,
    "actor.games": 3, "actor.inference_batch": 6, "data.timeout_s": 40.0})
  # The pickler that `multiprocessing` sends the arguments of a process with.
  found = ForkingPickler.loads(ForkingPickler.dumps(parts.hosted))
  assert found._replace(make_host=None) == parts.hosted._replace(make_host=None)
  assert isinstance(found.make_host, functools.partial)
  assert found.make_host.func is sc2.make_host
  assert found.make_host.args == (parts.config, ("Flat32", "Simple64"), "", False, 30.0)
  assert (found.processes, found.inference_batch, found.answer_s) == (3, 6, 100.0)
  assert [found.bot_race(bot) for bot in ("zerg:hard", "protoss:easy:rush")] == [
    types.RACES.index("zerg"), types.RACES.index("protoss")]
