"""The benchmark of Skirmish: each step of each game has random numbers of its own, and no reset."""

import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import skirmish
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

MINI = GAME_CONFIGS["mini"]


@pytest.fixture
def counting(monkeypatch):
  """Replaces the game by one whose state counts the steps and that observes their keys."""
  monkeypatch.setattr(skirmish, "make_skirmish", lambda **config: None)
  monkeypatch.setattr(skirmish, "_start", lambda environment, key: jnp.int32(0))
  monkeypatch.setattr(skirmish, "_step", lambda environment, game, state, key: (
    state + 1, jax.random.key_data(key)))


def test_each_step_of_each_game_has_a_key_of_its_own(counting):
  run, _ = skirmish.make_batch(MINI, 3)
  start_keys, keys = skirmish._keys(3)
  seen = [jax.random.key_data(start_keys)]
  for steps in range(1, 5):
    states, last = run(steps)
    np.testing.assert_array_equal(states, [steps] * 3)
    expected = jax.vmap(lambda key, steps=steps: jax.random.fold_in(key, steps - 1))(keys)
    np.testing.assert_array_equal(last, jax.random.key_data(expected))
    seen.append(last)
  assert len(np.unique(np.concatenate(seen), axis=0)) == 3 * 5


def test_batches_and_single_games_take_equal_numbers_of_steps(monkeypatch):
  taken = []

  def record(name, result):
    def measured(*arguments):
      taken.append((name, *arguments[-2:]))
      return result
    monkeypatch.setattr(skirmish, name, measured)

  record("measure_single", 10.0)
  record("measure", (100.0, 1.0))
  record("measure_smax", 50.0)
  monkeypatch.setattr(skirmish, "measure_twin", lambda game, steps: 5.0)
  monkeypatch.setattr(sys, "argv", ["skirmish", "--games", "2", "8", "--steps", "6"])
  skirmish.main()
  assert taken == [("measure_single", MINI, 6), ("measure", 2, 6), ("measure", 8, 6),
                   ("measure_smax", 2, 6), ("measure_smax", 8, 6)]


class CountingSmax:
  """In the place of SMAX: the state counts the steps."""

  agents = ("ally_0", "enemy_0")

  def __init__(self, scenario):
    assert scenario == "smacv2_20_units, as a scenario"

  def action_space(self, agent):
    return types.SimpleNamespace(n=3)

  def reset(self, key):
    return jnp.zeros(2), jnp.int32(0)

  def step_env(self, key, state, actions):
    assert set(actions) == set(self.agents)
    return jnp.zeros(2), state + 1, 0.0, False, {}

  def step(self, key, state, actions):
    raise AssertionError("computes a reset")


def test_steps_of_smax_compute_no_reset(monkeypatch):
  monkeypatch.setitem(sys.modules, "jaxmarl.environments.smax", types.SimpleNamespace(
    SMAX=CountingSmax, map_name_to_scenario=lambda name: f"{name}, as a scenario"))
  states = []

  def seconds(play, *arguments):
    states.append(play(*arguments)[0])
    return 0.5

  monkeypatch.setattr(skirmish, "_seconds", seconds)
  assert skirmish.measure_smax(games=2, steps=3) == 2 * 3 / 0.5
  np.testing.assert_array_equal(states, [[3, 3]])
