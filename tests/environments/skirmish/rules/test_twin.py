"""The engine against a twin that computes each step unit by unit from the rules.

  python -m tests.environments.skirmish.rules.test_twin      # every step instead of one in twelve
"""

import jax
import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish import mini_games as games
from tests.environments.skirmish.places import UNIT
from tests.environments.skirmish.scenes import put, scene
from tests.environments.skirmish.twin.state import Game, Table, differences
from tests.environments.skirmish.twin.step import Twin


def compare(twin, steps):
  """Compares single steps.

  Returns:
    The differences, and how many distinct ones a rounding error could explain. A unit that rests on
    the edge of a cell causes one at every step and counts once.
  """
  wrong, ties = [], set()
  for step in steps:
    found = Game(twin.table, step.before)
    for p in range(2):
      twin.act(found, p, default_games.one(step.actions, p), step.due[p])
    # Commands do not depend on rounding.
    wrong += differences(found, Game(twin.table, step.acted))
    twin.step(found)
    differs = differences(found, Game(twin.table, step.after))
    if differs and found.close:
      ties.add(tuple(differs))
    else:
      wrong += differs
  return wrong, len(ties)


def test_types_can_execute_the_functions_of_the_rules():
  for rules in (games.RULES, default_games.RULES):
    twin = Twin(Table(rules))
    for c, function in enumerate(rules.functions.names[1:], 1):
      found = [twin.capable(function, name) for name in rules.types.names[1:]]
      assert found == rules.functions.capable[c, 1:].tolist(), function


@pytest.mark.slow
def test_the_twin_agrees_on_the_mini_tier(game):
  rng, state, steps = np.random.default_rng(3), games.start(game, 7), []
  for step in range(500):
    names = np.where(rng.random((games.GAMES, 2)) < 0.2, 3, games.ALL_PAIRS)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(7), step), (games.GAMES, 2))
    actions, due = game.script(names, keys, state), game.due(state)
    acted = game.act(state, actions, due)
    after = game.advance(acted)
    for g in range(-step % 20, games.GAMES, 20):
      if np.asarray(state.winner)[g] < 0:
        steps.append(games.host(default_games.Step(
          *(default_games.one(tree, g) for tree in (state, actions, due, acted, after)))))
    state = after
  assert len(steps) > 250
  assert np.asarray(state.score.killed_units).sum() > 2000
  wrong, ties = compare(Twin(Table(games.RULES)), steps)
  assert not wrong, wrong[:10]
  assert ties <= 2


@pytest.mark.slow
def test_the_twin_agrees_on_the_default_tier(default_record):
  """All pairs of races on all maps for 500 steps, with scripted and random legal actions."""
  wrong, ties = compare(Twin(Table(default_games.RULES)), default_record.steps)
  assert not wrong, wrong[:10]
  assert len(default_record.steps) > 900
  assert ties <= 2


@pytest.mark.slow
def test_the_twin_agrees_on_crowds_at_a_patch(default_game):
  """13 to 22 workers without commands share the last patch."""
  crowds, never, steps = (13, 17, 19, 22), np.zeros(2, bool), []
  before = scene(default_game)
  before.patches[:, :, 1:], before.memory.patches[:, :, 1:] = 0, 0
  beside = np.subtract(default_games.TIER.patches[0], (0.0, 1.2))
  for g, workers in enumerate(crowds):
    for i in range(workers):
      put(before, UNIT + i, "SCV", beside, games=g, verb=constants.GATHER, target=0)
  for _ in range(30):
    after = default_games.host(default_game.advance(before))
    for g in range(len(crowds)):
      was, then = (default_games.one(state, g) for state in (before, after))
      steps.append(default_games.Step(was, None, never, was, then))
    before = after
  wrong, _ = compare(Twin(Table(default_games.RULES)), steps)
  assert not wrong, wrong[:10]
  assert after.minerals[:4, 0].tolist() == [5 * 13, 0, 0, 0]  # 13 have delivered their loads
  assert all(after.trip[g, 0, :crowds[g]].min() >= 12 for g in range(1, 4))


@pytest.mark.slow
def test_the_compared_steps_cover_the_rules(default_record):
  """Nearly all types, functions, verbs and upgrades occur in the compared steps."""
  kinds, functions, verbs, upgrades = set(), set(), set(), set()
  for step in default_record.steps:
    kinds |= set(np.unique(step.before.kind).tolist())
    functions |= set(step.acted.commands.function.tolist())
    verbs |= set(np.unique(step.before.orders.verb).tolist())
    upgrades |= set(np.flatnonzero(step.before.upgrades.any(axis=0)).tolist())
  assert verbs == set(range(constants.RETURN + 1))
  assert kinds == set(range(len(default_games.TYPES.names)))
  assert len(functions) > 0.75 * len(default_games.FUNCTION)
  assert len(upgrades) >= 10
  last = default_record.states[-1]
  assert (last.score.killed_units.sum(axis=1) > 0).sum() > 20
  assert (last.score.killed_structures.sum(axis=1) > 0).sum() > 10
  assert (last.score.collected_vespene.sum(axis=1) > 0).sum() > 10


def main():
  """Compares all 500 steps of all 27 games, in a few minutes."""
  found = default_games.record(default_games.compile_game(), 500, every=1)
  wrong, ties = compare(Twin(Table(default_games.RULES)), found.steps)
  print(f"steps={len(found.steps)} differences={len(wrong)} explained_by_rounding={ties}")
  for difference in wrong[:20]:
    print(difference)


if __name__ == "__main__":
  main()
