"""Reference outputs of each module of the agent.

  python -m tests.agent.golden          # rewrites tests/agent/golden.json

NumPy creates parameters and inputs from names and seeds, so the numbers depend on neither JAX's
initialisers nor its random number generators. A module's outputs are concatenated and cut into
twenty pieces; the file holds the mean of each.
"""

import json
import pathlib
import zlib
from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import baselines, blocks, config, core, heads, types
from starleague.agent import vocabulary as v
from starleague.agent.encoders import entity, scalar, spatial
from starleague.agent.heads import categorical, location, selected_units, target_unit
from starleague.agent.heads import function as function_head

PATH = pathlib.Path(__file__).with_suffix(".json")
COUNT = 20
MINI = config.mini()
STEPS = 3  # of the core
FUNCTION = v.FUNCTIONS.index("Build_Barracks_pt")


def random_like(spec: Any, seed: int) -> Any:
  """Returns random values of a spec: small integers, flags and floats around zero."""
  random = np.random.default_rng(seed)

  def one(x):
    if x.dtype == np.bool_:
      return random.random(x.shape) < 0.3
    if np.issubdtype(x.dtype, np.integer):
      return random.integers(0, 100, x.shape).astype(x.dtype)
    return random.normal(size=x.shape).astype(x.dtype)

  return jax.tree.map(one, spec)


def random_params(shapes: Any) -> Any:
  """Returns parameters seeded by their names and scaled by their fan-in."""
  def one(path, x):
    random = np.random.default_rng(zlib.crc32(jax.tree_util.keystr(path).encode()))
    scale = max(np.prod(x.shape[:-1]), 9) ** -0.5
    return (scale * random.normal(size=x.shape)).astype(np.float32)

  return jax.tree_util.tree_map_with_path(one, shapes)


def _inputs() -> tuple[types.Observation, types.Privileged, heads.HeadInputs, types.Action]:
  observation = random_like(types.observation_spec(MINI.max_entities, MINI.map_size), 0)
  observation = observation._replace(entity_count=np.int16(20), mmr=np.int16(3500))
  observation.entities[20:] = 0
  floats = jax.ShapeDtypeStruct
  context = 4 * MINI.scalar.home_race
  skip = floats((MINI.coarse_size, MINI.coarse_size, MINI.map_downsamples[-1]), np.float32)
  head_inputs = heads.HeadInputs(
    core=floats((MINI.core_size,), np.float32), scalar_context=floats((context,), np.float32),
    entity_embeddings=floats((MINI.max_entities, MINI.entity_size), np.float32),
    map_skips=(skip,) * (1 + MINI.map_blocks), observation=())
  head_inputs = random_like(head_inputs, 1)._replace(observation=observation)
  action = types.zeros(types.action_spec(MINI.max_selected))
  action.units[:] = (3, 7, 1, *[MINI.max_entities] * 5)
  return jax.tree.map(
    jnp.asarray, (observation, random_like(types.privileged_spec(), 2), head_inputs, action))


def modules() -> dict[str, Callable[[], Any]]:
  """Returns a function per module that applies it to its inputs; call within a transform."""
  observation, privileged, inputs, action = _inputs()
  available = np.asarray(observation.available_actions)
  random = np.random.default_rng(3)
  autoregressive = random.normal(size=MINI.autoregressive_size).astype(np.float32)
  vectors = random.normal(size=(MINI.max_entities, MINI.entity_size)).astype(np.float32)
  encodings = random.normal(size=(STEPS, 2 * MINI.core_size)).astype(np.float32)
  state = random_like(types.core_state_spec(MINI), 4)
  function, yes = jnp.int32(FUNCTION), jnp.bool_(True)
  return {
    "entity_encoder": lambda: entity.encode(
      MINI, observation.entities, observation.entity_count),
    "spatial_encoder": lambda: spatial.encode(
      MINI, observation.minimap, observation.camera, observation.entities, vectors),
    "scalar_encoder": lambda: scalar.encode(MINI, observation),
    "core": lambda: core.unroll(MINI, encodings, np.float32([1, 1, 0]), state),
    "function": lambda: function_head.logits(MINI, inputs)[available],
    "function_embedding": lambda: function_head.embedding(MINI, inputs, function),
    "delay": lambda: (categorical.delay_logits(MINI, autoregressive)[1:],
                      categorical.embedding(MINI, "delay", jnp.int32(9))),
    "queued": lambda: (categorical.queued_logits(MINI, autoregressive),
                       categorical.embedding(MINI, "queued", jnp.int32(1), yes)),
    "repeat": lambda: (categorical.repeat_logits(MINI, autoregressive),
                       categorical.embedding(MINI, "repeat", jnp.int32(2), yes)),
    "selected_units": lambda: selected_units.teacher_force(
      MINI, inputs, autoregressive, function, yes, action.units)[1],
    "target_unit": lambda: target_unit.logits(MINI, inputs, autoregressive, function)[:20],
    "location": lambda: location.logits(MINI, inputs, autoregressive, function),
    "baselines": lambda: baselines.values(MINI, inputs.core, observation, privileged),
  }


def numbers(module: Callable[[], Any]) -> list[float]:
  """Returns the means of COUNT pieces of a module's outputs, or all outputs if there are fewer."""
  def in_float32():
    with blocks.float32_parameters():
      return module()

  network = hk.without_apply_rng(hk.transform(in_float32))
  params = random_params(jax.eval_shape(network.init, jax.random.key(0)))
  outputs = jax.jit(network.apply)(params)
  flat = np.concatenate([np.ravel(x) for x in jax.tree.leaves(outputs)]).astype(np.float64)
  pieces = np.array_split(flat, min(COUNT, flat.size))
  return [float(f"{piece.mean():.7g}") for piece in pieces]


def main() -> None:
  """Rewrites the file."""
  found = {name: numbers(module) for name, module in modules().items()}
  lines = ",\n".join(f' "{name}": {json.dumps(values)}' for name, values in found.items())
  PATH.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
  main()
