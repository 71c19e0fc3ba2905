"""Demonstrators: variation between games, skill, and MMR in observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import demonstrators, scripts, tournament
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from tests.environments.skirmish.default_games import RULES, host

EVERY = scripts.parameters(RULES)
NAMES = scripts.names_of("default")
GAMES = 600


def variations(name, race=0, games=GAMES):
  """Returns a player's parameters in many games: Parameters [games, ...]."""
  index = NAMES.index(name)
  own = jax.tree.map(lambda values: jnp.asarray(values)[index], EVERY)
  return host(jax.jit(jax.vmap(lambda seed: demonstrators.variation(
    RULES, own, jnp.int32(index), seed, jnp.int32(race))))(jnp.arange(games, dtype=jnp.uint32)))


def test_scripts_do_not_vary():
  for name, race in (("rush", 0), ("macro", 1), ("L6", 2)):
    found = variations(name, race, games=8)
    index = NAMES.index(name)
    for field, values, planned in zip(found._fields, found, EVERY, strict=True):
      planned = planned[index, race] if field in scripts.Parameters._fields[:12] else planned[index]
      np.testing.assert_array_equal(values, np.broadcast_to(planned, values.shape), field)


@pytest.mark.parametrize("race", range(3))
def test_a_demonstrator_varies_one_of_the_strategies(race):
  found = variations("demo_6000", race)
  plans = [sorted(EVERY.building[i, race].tolist()) for i in scripts.strategies_of("default")]
  kinds = [sorted(row) for row in found.building.tolist()]
  which = np.array([plans.index(row) for row in kinds])  # swaps change the order only
  assert np.bincount(which, minlength=6).min() > GAMES / 6 * 0.7
  for strategy in range(6):
    index = scripts.strategies_of("default")[strategy]
    mine = which == strategy
    planned = EVERY.building[index, race]
    moved = (found.building[mine] != planned).any(axis=1)
    assert 0.3 < moved.mean() < 0.99 or len(set(planned[planned > 0])) == 1
    assert (found.attack[mine] != EVERY.attack[index, race]).mean() > 0.15
    attack = np.log(found.attack[mine] / EVERY.attack[index, race])
    assert abs(attack.mean()) < 0.12 and attack.std() < 0.35
    planned = EVERY.share[index, race]
    army = planned > 0
    assert ((found.share[mine] > 0) == army).all()
    mix = np.log(found.share[mine][:, army] / planned[army])
    assert abs(mix.mean(axis=0)).max() < 0.12 and mix.std(axis=0).min() > 0.2
  # Totals count the entries so far, and the first town hall.
  hall = RULES.types.townhall
  for building, count in zip(found.building, found.total, strict=True):
    for i in np.flatnonzero(building):
      assert count[i] == (building[:i + 1] == building[i]).sum() + hall[building[i]]
  assert (found.attack >= 1).all() and (found.workers >= 0).all()


def test_stronger_demonstrators_vary_less_and_act_faster():
  ladder = [f"demo_{mmr}" for mmr in range(2000, 7001, 1000)]
  rows = [NAMES.index(name) for name in ladder]
  assert (np.diff(EVERY.jitter[rows]) < 0).all() and (np.diff(EVERY.mistakes[rows]) < 0).all()
  assert (np.diff(EVERY.delays[rows], axis=0) < 0).all() and (np.diff(EVERY.noise[rows]) < 0).all()
  assert EVERY.delays[rows[0]].tolist() == [96, 124] and EVERY.delays[rows[-1]].tolist() == [12, 16]
  assert EVERY.mistakes[rows[-1]] == 0 and EVERY.abilities[rows].tolist() == [0, 0, 0, 0, 1, 1]


def test_demonstrators_of_mini_have_even_steps_of_skill():
  names = scripts.names_of("mini")
  skills = [scripts.scripts_of("mini")[names.index(f"demo_{mmr}")].skill
            for mmr in range(2000, 7001, 1000)]
  assert [skill.delays for skill in skills] == [
    (96, 124), (63, 82), (42, 54), (28, 36), (18, 23), (12, 16)]
  mistakes = [skill.mistakes for skill in skills]
  np.testing.assert_allclose(mistakes, np.linspace(0.4, 0, 6), atol=1e-7)
  np.testing.assert_allclose([skill.jitter for skill in skills], np.linspace(1, 0.4, 6))
  np.testing.assert_allclose([skill.noise for skill in skills], np.linspace(2.5, 1, 6))
  assert [skill.abilities for skill in skills] == [False] * 2 + [True] * 4


def test_demonstrators_draw_the_safe_form_of_a_strategy_where_there_is_one():
  assert [NAMES[i] for i in scripts.strategies_of("default")] == [
    "rush", "safe_timing", "defence", "safe_macro", "safe_siege", "safe_air"]


@pytest.mark.slow
def test_observations_hold_the_mmr_and_workers_bring_the_income():
  """In live games and in their replays."""
  pair = [replays.scripted_player(name, GAME_CONFIGS["default"]) for name in ("demo_3000", "L9")]
  replay = replays.record(tuple(pair), 5, game=GAME_CONFIGS["default"], max_steps=60)
  assert replay.match_up.mmr.tolist() == [3000, 6200]
  assert replay.match_up.income.tolist() == [100, 150]
  states = replays.resimulate(replay)
  brought = np.asarray(states.score.collected)[-1]
  assert brought[0] % 5 == 0 and brought[1] > brought[0]
  game = live.LiveGame(replay.game, replay.match_up, replay.seed)
  assert [int(live.observe(game, player).mmr) for player in range(2)] == [3000, 6200]


@pytest.mark.slow
def test_stronger_demonstrators_win():
  names = scripts.names_of("mini")
  pairs = [("demo_7000", "demo_4000"), ("demo_5000", "demo_2000")]
  rows = [pair for pair in pairs for _ in range(24)]
  players = np.array([[names.index(name) for name in row] for row in rows], np.int32)
  result = tournament.play(tournament.Fixture(
    players, np.ones((len(rows), 2), np.int32), np.zeros(len(rows), np.int32),
    np.arange(len(rows)) % 2 == 1), 3, tier="mini")
  for i in range(2):
    won = (result.winner[24 * i:24 * (i + 1)] == 0).mean()
    assert won > 0.6
