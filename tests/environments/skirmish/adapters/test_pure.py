"""The pure environments: static shapes, one program, equal keys, auto-reset, named errors."""

import collections
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.companions.tasks import registry
from starleague.environments.skirmish.adapters import pure

COPIES = 4
KEY = jax.random.key(11)


class Compiled:
  """An environment over COPIES games."""

  def __init__(self, environment):
    self.environment = environment
    self.traces = collections.Counter()  # by function
    self.reset = self._compiled("reset")
    self.step = self._compiled("step")
    self.mask = self._compiled("get_avail_actions")

  def _compiled(self, name):
    def traced(*arguments):
      self.traces[name] += 1
      return getattr(self.environment, name)(*arguments)

    return jax.jit(jax.vmap(traced))


@pytest.fixture(scope="module")
def solo():
  return Compiled(pure.Solo("rusher", loops=64))


@pytest.fixture(scope="module")
def duel():
  return Compiled(pure.Duel(loops=64))


@pytest.fixture(scope="module")
def full():
  return Compiled(pure.Solo("passive", observations="full", actions="full"))


def keys_of(*numbers):
  return jax.random.split(functools.reduce(jax.random.fold_in, numbers, KEY), COPIES)


def assert_same(one, other):
  jax.tree.map(np.testing.assert_array_equal, one, other)


def test_an_idle_player_loses_and_the_next_game_is_a_fresh_one(solo):
  _, state = solo.reset(keys_of(0))
  ended, idle = np.zeros(COPIES, int), jnp.zeros(COPIES, jnp.int32)
  for step in range(70):
    keys = keys_of(1, step)
    observation, state, reward, done, info = solo.step(keys, state, idle)
    np.testing.assert_array_equal(np.asarray(reward), np.where(done, -1.0, 0.0))
    np.testing.assert_array_equal(np.asarray(info["discount"]), np.where(done, 0.0, 1.0))
    if done.any():
      fresh = solo.reset(jax.vmap(jax.random.split)(keys)[:, 1])
      (seen, then), (first, start) = (
        jax.tree.map(lambda x, done=done: np.asarray(x)[np.asarray(done)], tree)
        for tree in ((observation, state), fresh))
      assert_same(then, start)
      np.testing.assert_allclose(seen, first, atol=1e-6)  # two programs may round differently
    ended += np.asarray(done)
  assert (ended > 0).all()
  assert solo.traces["step"] == 1 and solo.traces["reset"] == 1


def test_equal_keys_give_equal_games(solo):
  def play(number):
    _, state = solo.reset(keys_of(number))
    for step in range(6):
      mask = solo.mask(state)
      action = jax.vmap(jax.random.categorical)(keys_of(3, step), jnp.where(mask, 0.0, -1e9))
      observation, state, *_ = solo.step(keys_of(4, step), state, action)
    return observation, state

  assert_same(play(2), play(2))
  assert (play(2)[0] != play(5)[0]).any()


def test_a_space_of_floats_is_not_sampled():
  with pytest.raises(ValueError, match="^Box.sample: expected a space of integers or booleans, "
                                       "found float32, which has no limits to draw from$"):
    pure.Duel().observation_space().sample(KEY)
  assert pure.Box(2, 3, (64,), jnp.int16).sample(KEY).min() == 2


def test_shapes_are_those_of_the_spaces(solo, duel, full):
  observation, state = solo.reset(keys_of(0))
  assert observation.shape[1:] == solo.environment.observation_space().shape == (2107,)
  space = solo.environment.action_space()
  assert space.n == solo.environment.num_actions == solo.mask(state).shape[1] == 21
  assert space.contains(space.sample(KEY)) and not space.contains(jnp.int32(21))
  assert duel.environment.action_space("player_1").n == len(duel.environment.action_names) == 21
  assert duel.environment.observation_space("player_0").shape == (2107,)
  seen, _ = full.reset(keys_of(0))
  for value, box in zip(jax.tree.leaves(seen), jax.tree.leaves(
      full.environment.observation_space(), is_leaf=lambda x: isinstance(x, pure.Box)),
                        strict=True):
    assert value.shape[1:] == box.shape and value.dtype == box.dtype
  drawn = jax.tree.map(lambda box: box.sample(KEY), full.environment.action_space(),
                       is_leaf=lambda x: isinstance(x, pure.Box))
  assert drawn.units.shape == (8,) and 1 <= drawn.delay <= 127
  assert full.environment.num_actions == 327


def test_all_integer_spaces_are_sampled_within_their_limits(full):
  for box in jax.tree.leaves(full.environment.observation_space(),
                             is_leaf=lambda x: isinstance(x, pure.Box)):
    drawn = box.sample(KEY)
    assert drawn.shape == box.shape and drawn.dtype == box.dtype and box.contains(drawn)
  drawn = pure.Box(-2 ** 31, 2 ** 31 - 1, (1000,), np.int32).sample(KEY)
  assert drawn.min() < -2 ** 30 and drawn.max() > 2 ** 30 and abs(np.mean(drawn < 0) - 0.5) < 0.1


def test_keys_of_the_old_kind_do_as_well(solo):
  observation, _ = jax.eval_shape(solo.environment.reset, jax.random.PRNGKey(0))
  assert observation.shape == (2107,)


def full_action(function, delay):
  action = types.Action(function, delay, 0, 0, np.arange(8), 0, 100)
  return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (COPIES, *np.shape(x))), action)


def test_full_actions_have_delays_and_illegal_ones_no_effect(full):
  _, state = full.reset(keys_of(0))
  barracks = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  assert not full.mask(state)[:, barracks].any() and full.mask(state)[:, 0].all()
  found = {}
  for function in (0, barracks):
    observation, later, reward, done, _ = full.step(keys_of(1), state, full_action(function, 9))
    assert observation.game_loop.tolist() == [16] * COPIES and not done.any()
    found[function] = (observation, later)
  assert found[barracks][0].action_result.tolist() == [9] * COPIES  # not enough minerals
  idle, illegal = (found[function][1].game for function in (0, barracks))
  for name in ("x", "y", "kind", "health", "minerals", "orders", "queue", "memory", "score"):
    assert_same(getattr(idle, name), getattr(illegal, name))
  for delay, loop in ((1, 24), (127, 152)):
    observation, later, *_ = full.step(keys_of(2), later, full_action(0, delay))
    assert observation.game_loop.tolist() == [loop] * COPIES


def test_a_duel_is_zero_sum_and_jaxmarls_own_step_plays_it(duel):
  registry.task_names("jaxmarl")  # imports jaxmarl without its messages
  from jaxmarl.environments.multi_agent_env import MultiAgentEnv
  theirs = jax.jit(jax.vmap(functools.partial(MultiAgentEnv.step, duel.environment)))
  observations, state = duel.reset(keys_of(0))
  assert observations["player_1"].shape == (COPIES, 2107)
  games = 0
  for number in range(72):
    # Player 0 acts when it can, player 1 does nothing.
    wish = jax.random.uniform(jax.random.fold_in(KEY, number), (COPIES, 21)).at[:, 0].set(0.0)
    mask = duel.mask(state)["player_0"]
    actions = {"player_0": jnp.argmax(jnp.where(mask, wish, -1.0), axis=1),
               "player_1": jnp.zeros(COPIES, jnp.int32)}
    if number in (0, 69, 70):  # a first step, and those around the end of the longest games
      _, later, *rest = theirs(keys_of(6, number), state, actions)
    found = duel.step(keys_of(6, number), state, actions)
    if number in (0, 69, 70):
      assert_same((later, *rest), found[1:])
    _, state, rewards, dones, infos = found
    np.testing.assert_array_equal(np.asarray(rewards["player_0"] + rewards["player_1"]), 0)
    np.testing.assert_array_equal(dones["__all__"], dones["player_1"])
    games += int(dones["__all__"].sum())
    assert (np.asarray(rewards["player_0"]) >= 0).all() and infos == {}
  assert games >= COPIES
  assert duel.traces["step"] == 1 and duel.traces["reset"] == 1


@pytest.mark.parametrize("maker, options, message", [
  (pure.Solo, {"tier": "huge"}, "tier 'huge': expected one of mini, default, large"),
  (pure.Duel, {"races": ("zerg", "random")}, "race 'zerg': expected one of terran in tier mini"),
  (pure.Duel, {"map_name": "river"}, "map 'river': expected one of open in tier mini"),
  (pure.Duel, {"loops": 12}, "loops: expected a multiple of 8 up to 120, found 12"),
  (pure.Duel, {"loops": 128}, "loops: expected a multiple of 8 up to 120, found 128"),
  (pure.Solo, {"actions": "big"}, "actions 'big': expected one of small, full"),
  (pure.Duel, {"observations": "pixels"}, "observations 'pixels': expected one of flat, full"),
  (pure.Solo, {"opponents": ("L5", "L11"), "tier": "default"},
   "player 'L11': expected one of L0, L1, ")])
def test_unknown_names_are_refused_in_one_line(maker, options, message):
  with pytest.raises(ValueError, match=f"^{re.escape(message)}[^\n]*$"):
    maker(**options)
