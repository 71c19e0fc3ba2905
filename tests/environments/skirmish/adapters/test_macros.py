"""The small action set: masks are what the rules allow, all other actions are no_op."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.adapters import macros
from starleague.environments.skirmish.rules.interface import availability
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from tests.environments.skirmish.mini_games import RULES, SCV, start

NAMES = macros.names(RULES)
OUTSIDE = (-1, len(NAMES), 10_000)
INDICES = jnp.array([*range(len(NAMES)), *OUTSIDE])
# Fields that tell of the last action only.
NOTES = ("last_function", "was_selected", "refused")


def outcomes(state):
  """Mask and availability of player 0, and the state after a step of each action."""
  environment = make_skirmish()
  player = jnp.int32(0)

  def after(index):
    mine = macros.action(RULES, state, player, index, 8)
    both = jax.tree.map(lambda x: jnp.stack([x, jnp.zeros_like(x)]), mine)
    later = environment.advance(environment.act(state, both, jnp.array([True, False])))
    return later, mine

  return (macros.mask(RULES, state, player), availability.available(RULES, state)[0],
          *jax.vmap(after)(INDICES))


@pytest.fixture(scope="module")
def found(played):
  """Outcomes of all actions in the states of games under way, [states, ...]."""
  program = jax.jit(jax.vmap(outcomes))
  parts = [jax.tree.map(np.asarray, program(states)) for states in played]
  found = jax.tree.map(lambda *values: np.concatenate(values), *parts)
  running = np.concatenate([states.winner < 0 for states in played])
  return jax.tree.map(lambda values: values[running], found)


def changed(found):
  """Whether a step with each action gives another state than with no_op, [states, indices]."""
  _, _, later, _ = found
  differs = [
    (values != values[:, :1]).reshape(*values.shape[:2], -1).any(axis=2)
    for path, values in jax.tree_util.tree_leaves_with_path(later)
    if path[0].name not in NOTES and values.size]
  return np.any(differs, axis=0)


def test_warp_gates_are_left_out():
  """Without the research Gateways stay Gateways, which a macro action can use."""
  names = macros.names(tables.make_rules(*GAME_CONFIGS["large"]))
  assert "Train_Zealot_quick" in names and "Build_TechLab_quick" in names
  assert "Train_Medivac_quick" in names and "Train_WarpPrism_quick" not in names
  assert not [name for name in names if "Warp" in name]


def test_masked_in_actions_have_an_effect(found):
  mask, _, later, _ = found
  refused = later.refused[:, :len(NAMES), 0]
  assert {NAMES[i]: refused[s, i] for s, i in np.argwhere(mask & (refused > 0))} == {}
  without = np.argwhere(mask & ~changed(found)[:, :len(NAMES)])
  assert {NAMES[i] for _, i in without} == {"no_op"}


def test_all_other_actions_are_no_op(found):
  mask, _, later, mine = found
  illegal = np.concatenate([~mask, np.ones((len(mask), len(OUTSIDE)), bool)], axis=1)
  assert illegal.sum() > 1000
  for values in jax.tree.leaves(later):
    same = values == values[:, :1]
    assert same[illegal].all()
  assert (mine.function[illegal] == 0).all() and (mine.function[:, :len(NAMES)][mask] > 0).any()


def test_masks_are_what_the_rules_allow(found):
  mask, can, _, _ = found
  for i, name in enumerate(NAMES):
    if name.startswith("Train") and name != "Train_SCV_quick":
      np.testing.assert_array_equal(mask[:, i], can[:, RULES.functions.names.index(name)], name)
    if name.startswith(("Build", "Train_SCV")):  # a site, or work, is needed too
      assert not (mask[:, i] & ~can[:, RULES.functions.names.index(name)]).any()
  assert mask[:, 0].all()
  assert {NAMES[i] for i in np.flatnonzero(mask.any(axis=0))} == set(NAMES)


def test_no_more_workers_than_the_bases_employ(game):
  """Four patches near a Command Center employ eight SCVs."""
  train = jnp.int32(NAMES.index("Train_SCV_quick"))
  state = jax.tree.map(lambda values: values[0], start(game, 4))
  environment, player = make_skirmish(), jnp.int32(0)

  @jax.jit
  def step(state):
    mine = macros.action(RULES, state, player, train, 8)
    both = jax.tree.map(lambda x: jnp.stack([x, jnp.zeros_like(x)]), mine)
    return environment.advance(environment.act(state, both, jnp.array([True, False])))

  for _ in range(160):
    state = step(state)
  assert int((state.kind[0] == SCV).sum()) == 8 and int(state.minerals[0]) > 300


def test_the_actions_of_the_tiers():
  assert NAMES == (
    "no_op", "mine", "attack", "defend", "retreat", *(f"attack_{i}" for i in range(9)),
    "Train_SCV_quick", "Train_Marine_quick", "Train_Marauder_quick", "Train_Hellion_quick",
    "Build_CommandCenter_pt", "Build_Barracks_pt", "Build_Factory_pt")
  names = macros.names(tables.make_rules(**GAME_CONFIGS["default"]._asdict()))
  assert len(set(names)) == len(names) > 80
  assert names[:5] == ("no_op", "mine", "mine_gas", "Effect_Stim_quick", "Morph_SiegeMode_quick")
  assert {"Build_Refinery_pt", "Train_Zergling_quick", "Effect_Scan_pt"} <= set(names)
