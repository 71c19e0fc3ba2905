"""One seeded game on two paths: Skirmish directly, and protobuf, websocket, pysc2, adapter.

  python -m tests.environments.sc2.same_game --tier default --steps 60

Both players of both paths take the same actions, those of scripted players of the direct path. The
observations are compared entity for entity. `DIFFERENCES` are the fields that cannot be equal.
"""

import argparse
import collections
import dataclasses
import functools
import itertools
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types, vocabulary
from starleague.environments import base, make_environment
from starleague.environments.sc2.environment import GameHost
from starleague.environments.sc2.server import layout
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.skirmish.bots import players, scripts
from starleague.environments.skirmish.games import dm_environment, exact
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

STEP_LOOPS = 8
MOST_DELAY = 120  # the longest delay of whole environment steps
# Fields that cannot be equal, and why; "column" are columns of entities.
DIFFERENCES = {
  "column facing": "Skirmish has no directions; the server turns units where they move to",
  "column radius": "game units, rounded up, in Skirmish; cells of the grid in pysc2's converter",
  "column cloak": "Skirmish has no cloaked units and leaves the column 0; the game says 3",
  "column tag": "number of the candidate in Skirmish; number of the row in the adapter",
  "column is_on_screen": "Skirmish has no screen; the server's camera has one",
  "column is_selected": "Skirmish has no selection; raw actions change the game's",
  "column is_powered": "Skirmish leaves the column 0; the game says 1 of Protoss units",
  "available_actions": "exact in Skirmish; own unit types decide in the adapter: a superset",
  "action_result of a repeat": "one command in Skirmish; the game answers each of up to three, and "
    "the first error counts: a repeat may fail for want of money where the command did not",
  "executed.build_order_xy": "units are placed where they are first observed: later, on the way",
}
# Compared within 1: the game has floats, which Skirmish rounds up and pysc2 rounds off; places on
# the edge of a cell fall on either side, as y is measured from the other end of the map.
ROUNDED = ("health", "shield", "weapon_cooldown", "order_progress_0", "order_progress_1",
           "build_progress", "x", "y", "energy", "health_ratio", "shield_ratio", "energy_ratio")
# Compared by ability: the game's orders have no kind of target; Attack_unit looks like Attack_pt.
ORDERS = ("order_id_0", "order_id_1", "order_id_2", "order_id_3")
# Skirmish shows them of own units only; the game also of enemies in sight.
OF_OWN = ("energy", "energy_ratio", "buff_id_0")
# Skirmish shows them of resources too; the game of town halls and gas structures only.
OF_STRUCTURES = ("assigned_harvesters", "ideal_harvesters")


class Path(NamedTuple):
  """The compiled functions of the direct path."""

  reset: Any
  act: Any
  advance: Any
  observe: Any
  due: Any
  outcome: Any
  script: Any


@functools.cache
def direct_path(tier: str) -> Path:
  game = GAME_CONFIGS[tier]
  made = make_environment("skirmish", **game._asdict())
  return Path(*(exact.compiled(call) for call in (
    made.reset, made.act, made.advance, made.observe, made.due, made.outcome,
    players.make_scripted(**game._asdict()))))


def agent_config_of(tier: str) -> agent_config.AgentConfig:
  """An agent's config with the sizes of a tier."""
  game = GAME_CONFIGS[tier]
  return dataclasses.replace(
    agent_config.full(), max_entities=game.max_entities, map_size=game.map_size,
    max_selected=game.max_selected, location_size=game.location_size)


class Found(NamedTuple):
  """What was compared."""

  observations: int
  rows: int  # of entities
  differing: collections.Counter  # by field, observations with a difference that is not allowed
  results: collections.Counter  # by action result, observations
  winners: list[tuple[float, float]]  # rewards on both paths


class Comparison:
  """Plays games on both paths; the processes of the second one are kept."""

  def __init__(self, tier: str):
    self.tier, self.path = tier, direct_path(tier)
    names = dm_environment.map_names(tier)
    self.games = GameHost(agent_config_of(tier), tuple(
      f"{battlefields.OWN_FOLDER}/{battlefields.own_name(tier, name)}{battlefields.SUFFIX}"
      for name in names), camera=False, deadline_s=900.0)
    self.found = Found(0, 0, collections.Counter(), collections.Counter(), [])
    # Of each player of the last game: game loop, and what was executed on both paths.
    self.executed: list[list[tuple[int, types.Statistics, types.Statistics]]] = [[], []]

  def play(self, races: tuple[int, int], map_index: int, seed: int, steps: int) -> None:
    """Plays the same game on both paths for so many decisions, or to its end."""
    path, environment = self.path, self.games.environment()
    match_up = base.make_match_up(races, map_index, bool(seed % 2))
    start, noise = exact.keys_of(seed)
    self.executed = [[], []]
    direct, other = path.reset(start, match_up), environment.reset(seed, match_up)
    for step in range(steps):
      over, due = bool(path.outcome(direct).over), np.asarray(path.due(direct))
      assert over == bool(environment.outcome(other).over)
      if over:
        break
      np.testing.assert_array_equal(environment.due(other), due)
      for player in np.flatnonzero(due):
        self._compare(player, path.observe(direct, jnp.int32(player)),
                      environment.observe(other, player))
      keys = [jax.random.fold_in(jax.random.fold_in(noise, step), player) for player in range(2)]
      both = jax.tree.map(lambda *x: np.stack(x), *(
        self._decide(races, direct, player, keys[player]) for player in range(2)))
      direct, other = path.act(direct, both, due), environment.act(other, both, due)
      other = environment.advance(other)
      while not path.due(direct).any() and not path.outcome(direct).over:
        direct = path.advance(direct)
    rewards = [np.asarray(x.reward) for x in (path.outcome(direct), environment.outcome(other))]
    np.testing.assert_array_equal(*rewards)
    self.found.winners.append(tuple(rewards[0].tolist()))

  def _decide(self, races: tuple[int, int], state: Any, player: int,
              key: jax.Array) -> types.Action:
    """The action of a scripted player, with a delay of whole environment steps."""
    index = (races[0] + 2 * races[1] + player) % len(scripts.names_of(self.tier))
    action = self.path.script(jnp.int32(index), key, state, jnp.int32(player))
    delay = -(-int(action.delay) // STEP_LOOPS) * STEP_LOOPS
    action = action._replace(delay=np.clip(delay, STEP_LOOPS, MOST_DELAY))
    return jax.tree.map(lambda x, like: np.asarray(x, like.dtype), action,
                        types.action_spec(GAME_CONFIGS[self.tier].max_selected))

  def _compare(self, player: int, direct: Any, other: Any) -> None:
    found = self.found
    direct = jax.tree.map(np.asarray, direct)
    self.executed[player].append(
      (int(direct[0].game_loop), direct[1].executed, other[1].executed))
    found.differing.update(set(differences(*direct, *other)))
    found.results[int(direct[0].action_result)] += 1
    self.found = found._replace(observations=found.observations + 1,
                                rows=found.rows + int(direct[0].entity_count))

  def close(self) -> None:
    self.games.close()


def differences(direct: types.Observation, hidden: types.Privileged, other: types.Observation,
                other_hidden: types.Privileged) -> Iterator[str]:
  """Yields the fields that differ although they can be equal."""
  yield from _entity_differences(direct.entities, other.entities)
  if (direct.available_actions & ~other.available_actions).any():
    yield "available_actions"
  for i, name in enumerate(types.MINIMAP_PLANES):
    if (direct.minimap[i] != other.minimap[i]).any():
      yield f"plane {name}"
  pairs = [("", direct, other), ("hidden ", hidden, other_hidden)]
  for prefix, one, two in pairs:
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two),
                            strict=True):
      name = jax.tree_util.keystr(path, simple=True, separator=".")
      if name == "action_result" and not x and direct.last_repeat:
        continue
      if name in ("entities", "minimap", "available_actions") or "xecuted.build_order_xy" in name:
        continue
      if x.shape != np.shape(y) or x.dtype != y.dtype or (x != y).any():
        yield prefix + name


def _entity_differences(one: np.ndarray, two: np.ndarray) -> Iterator[str]:
  alliance = one[:, types.COLUMN["alliance"]]
  for i, name in enumerate(types.ENTITY_COLUMNS):
    if f"column {name}" in DIFFERENCES:
      continue
    rows = np.ones(len(one), bool)
    if name in OF_OWN:
      rows = alliance == types.ALLIANCE_SELF
    elif name in OF_STRUCTURES:
      rows = alliance != types.ALLIANCE_NEUTRAL
    if name in ORDERS:
      abilities = vocabulary.FUNCTION_ABILITIES
      if (abilities[one[rows, i]] != abilities[two[rows, i]]).any():
        yield f"column {name}"
      continue
    allowed = 1 if name in ROUNDED else 0
    if (np.abs(one[rows, i].astype(int) - two[rows, i]) > allowed).any():
      yield f"column {name}"


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--tier", default="default")
  parser.add_argument("--steps", type=int, default=60, help="decisions of a game")
  options = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    os.environ["SC2PATH"] = str(layout.make_layout(pathlib.Path(folder)))
    comparison = Comparison(options.tier)
    races = [types.RACES.index(race) for race in dm_environment.playable(options.tier)]
    maps = range(len(dm_environment.map_names(options.tier)))
    try:
      for seed, (home, away, place) in enumerate(itertools.product(races, races, maps)):
        comparison.play((home, away), place, seed, options.steps)
        print(f"races={home},{away} map={place} {comparison.found}", flush=True)
    finally:
      comparison.close()


if __name__ == "__main__":
  main()
