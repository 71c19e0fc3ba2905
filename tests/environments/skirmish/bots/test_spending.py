"""Spending: without fighting, players build their whole plans."""

import numpy as np
import pytest

from starleague.agent import config
from starleague.environments.skirmish.bots import plans, scripts
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish.default_games import (
  GAMES,
  MATCH_UPS,
  NAMES,
  RACES,
  RULES,
  TYPES,
  S,
  choose,
  compile_game,
  host,
  start,
)

STRATEGIES = tuple(plans.STRATEGIES)
STEPS = 800  # 6,400 game loops
# `small` has coarse locations: buildings stand up to 0.75 units from where they were wanted.
GAME_CONFIGS = {"default": tables.GAME_CONFIGS["default"],
                "small": tables.game_config("default", config.preset("small"))}
EVERY = scripts.parameters(RULES)


def missing(kind, name, race):
  """Returns the buildings of a plan that are missing, with their numbers, by type."""
  index, race = NAMES.index(name), constants.RACES.index(race)
  have = np.bincount(kind[:S], minlength=len(TYPES.names))
  wanted = np.zeros_like(have)
  for building, count in zip(EVERY.building[index, race], EVERY.total[index, race], strict=True):
    wanted[building] = max(wanted[building], count)
  return {TYPES.names[i]: int(wanted[i] - have[i]) for i in np.flatnonzero(wanted > have) if i}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", GAME_CONFIGS)
def test_every_plan_is_built_on_every_map(monkeypatch, sizes):
  peaceful = EVERY._replace(attack=np.full_like(EVERY.attack, plans.NEVER))
  monkeypatch.setattr(scripts, "parameters", lambda rules: peaceful)
  game = compile_game(GAME_CONFIGS[sizes])
  # Each strategy of each race once on each map: the opponent's race selects the strategy.
  strategies = np.array([(RACES.index(theirs), 3 + RACES.index(mine))
                         for mine, theirs, _ in MATCH_UPS])
  names = np.array([NAMES.index(name) for name in STRATEGIES])[strategies]
  state = start(game)
  for step in range(STEPS):
    state = game.advance(game.act(state, choose(game, state, names, 1, step), game.due(state)))
    if step % 100 < 99:
      continue
    seen = host(state)
    found = {
      (name, race, MATCH_UPS[g][2]): missing(seen.kind[g, p], name, race)
      for g in range(GAMES) for p in range(2)
      for name, race in [(STRATEGIES[strategies[g, p]], constants.RACES[seen.race[g, p]])]}
    if not any(found.values()):
      break
  assert (seen.winner < 0).all() and not seen.score.killed_structures.any()
  assert len(found) == 54
  assert not {which: lack for which, lack in found.items() if lack}
