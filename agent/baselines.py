"""The five value functions, used in training only, which also observe the opponent.

Vinyals et al. 2019, detailed architecture ("baselines") and Methods. All read the core's output,
and the scalars and z of both players. They differ in the statistics that they read. Two choices are
ours: the executed statistics so far are inputs, because the return of a pseudo-reward depends on
them; and all five share one embedding of the features.
"""

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, linear, types
from starleague.agent.config import AgentConfig
from starleague.agent.encoders import scalar

# Fields of the observation that they read.
OBSERVED = frozenset({"player", "unit_counts", "upgrades", "statistics"})
SCOPE = "baselines"  # the first part of the names of their modules
_UNITS = ("units",)
_ALL = ("units", "effects", "upgrades")
# The part of the cumulative statistics that each value function reads.
STATISTICS = {"winloss": _UNITS, "build_order": _ALL, "built_units": _UNITS,
              "upgrades": ("upgrades",), "effects": ("effects",)}


def bounded_value(x: jax.Array) -> jax.Array:
  """Maps to (-1, 1) with slope 1 at 0: the value of win or loss."""
  return (2.0 / jnp.pi) * jnp.arctan((jnp.pi / 2.0) * x)


def _features(config: AgentConfig, observation: types.Observation,
              privileged: types.Privileged) -> tuple[jax.Array, dict[str, jax.Array]]:
  """Returns the shared features, and the embeddings of each part of the statistics."""
  sizes, dtype = config.scalar, jnp.dtype(config.dtype)
  o, p = observation, privileged
  build_order = scalar.BuildOrderEncoder(sizes, name="build_order")
  common = jnp.concatenate([
    scalar.player(sizes, o.player, "player", dtype),
    scalar.player(sizes, p.opponent_player, "opponent_player", dtype),
    scalar.unit_counts(sizes, o.unit_counts, "unit_counts", dtype),
    scalar.unit_counts(sizes, p.opponent_unit_counts, "opponent_unit_counts", dtype),
    scalar.upgrades(sizes.upgrades, o.upgrades, "upgrades", dtype),
    scalar.upgrades(sizes.upgrades, p.opponent_upgrades, "opponent_upgrades", dtype),
    scalar.score(sizes, p.cumulative_score, "score", dtype),
    scalar.score(sizes, p.opponent_cumulative_score, "opponent_score", dtype),
    *(build_order(z, dtype) for z in (
      o.statistics, p.executed, p.opponent_statistics, p.opponent_executed))])
  by_part = {part: jnp.concatenate([
    scalar.cumulative(sizes, z, (part,), name, dtype)
    for name, z in (("target", o.statistics), ("executed", p.executed),
                    ("opponent_target", p.opponent_statistics),
                    ("opponent_executed", p.opponent_executed))]) for part in _ALL}
  return common, by_part


def hide_opponent(privileged: types.Privileged) -> types.Privileged:
  """Returns inputs of the value functions without the opponent's, which are zero; any shapes."""
  return privileged._replace(**{
    name: jax.tree.map(jnp.zeros_like, value)
    for name, value in privileged._asdict().items() if name.startswith("opponent_")})


def values(config: AgentConfig, core_output: jax.Array, observation: types.Observation,
           privileged: types.Privileged) -> jax.Array:
  """Computes the five values; call within a transform.

  Args:
    config: sizes.
    core_output: [core_size].
    observation: of one step; fields that are not in OBSERVED are not read.
    privileged: of one step.

  Returns:
    [5] float32 in the order of `types.REWARDS`; winloss is within (-1, 1).
  """
  outputs = []
  with hk.name_scope(SCOPE):
    common, by_part = _features(config, observation, privileged)
    for reward in types.REWARDS:
      x = jnp.concatenate([core_output, common, *(by_part[part] for part in STATISTICS[reward])])
      x = linear.Linear(config.baseline_size, name=f"{reward}_input")(x)
      for i in range(config.baseline_blocks):
        block = blocks.ResidualBlock(config.baseline_size, name=f"{reward}_block_{i}")
        x = blocks.recompute(block, config.remat)(x)
      x = blocks.relu(x).astype(jnp.float32)
      value = linear.Linear(1, name=f"{reward}_value")(x)[0]
      outputs.append(bounded_value(value) if reward == "winloss" else value)
  return jnp.stack(outputs)
