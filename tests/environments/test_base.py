"""Match-ups: defaults, dtypes, and JAX arrays that stay JAX arrays."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base


def test_defaults_are_an_unconditional_game_of_terran():
  found = base.make_match_up()
  assert found.races.tolist() == [1, 1] and found.mmr.tolist() == [base.AGENT_MMR] * 2
  assert found.income.tolist() == [100, 100]
  assert (int(found.map_index), bool(found.swap_sides)) == (0, False)
  assert {name: (np.asarray(value).dtype.name, np.shape(value)) for name, value in
          found._asdict().items() if name != "z"} == {
    "races": ("int32", (2,)), "map_index": ("int32", ()), "swap_sides": ("bool", ()),
    "mmr": ("int16", (2,)), "income": ("int32", (2,))}
  for spec, leaf in zip(jax.tree.leaves(types.statistics_spec()), jax.tree.leaves(found.z),
                        strict=True):
    assert leaf.shape == (2, *spec.shape) and leaf.dtype == spec.dtype and not leaf.any()


def test_jax_arrays_are_kept_and_other_values_converted():
  races = jnp.array([2, 3])
  z = base.make_match_up().z
  found = base.make_match_up(races, map_index=2, swap_sides=1, z=z, mmr=[4000, 5000],
                             income=(100, 150))
  assert found.races is races and found.z is z
  assert not any(isinstance(value, jax.Array) for value in (
    found.map_index, found.swap_sides, found.mmr, found.income))
  assert (found.map_index, found.swap_sides) == (2, True)
  assert found.mmr.tolist() == [4000, 5000] and found.income.tolist() == [100, 150]


def test_a_match_up_can_be_made_under_vmap():
  """Traced values are JAX arrays: a batch of games has a match-up each."""
  found = jax.vmap(lambda race, side: base.make_match_up(
    jnp.stack([race, race]), swap_sides=side, z=base.make_match_up().z))(
      jnp.array([1, 2, 3]), jnp.array([False, True, False]))
  assert found.races.tolist() == [[1, 1], [2, 2], [3, 3]]
  assert found.swap_sides.tolist() == [False, True, False]
