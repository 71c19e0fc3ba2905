"""The agent of a preset as a page: a diagram with shapes, and parameter counts by module.

All figures come from tracing the code, without running it.
"""

from typing import NamedTuple

import haiku as hk
import jax
import numpy as np

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import encoders, types

BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"


class Part(NamedTuple):
  """A part of the agent, and its number of parameters counted from the published description."""

  name: str
  modules: tuple[str, ...]  # first components of its parameters' module names
  published: float  # millions, at the published sizes


PARTS = (
  Part("entity encoder", ("entity_encoder",), 2.81),
  Part("spatial encoder", ("spatial_encoder",), 10.01),
  Part("scalar encoder", ("scalar_encoder",), 0.13),
  Part("core", ("core",), 6.06),
  Part("function", ("function", "function_embedding"), 3.53),
  Part("delay", ("delay", "delay_embedding"), 0.72),
  Part("queued", ("queued", "queued_embedding"), 0.66),
  Part("repeat", ("repeat", "repeat_embedding"), 0.66),
  Part("selected units", ("selected_units",), 0.39),
  Part("target unit", ("target_unit",), 0.34),
  Part("location", ("location",), 3.18),
  Part("baselines", ("baselines",), 13.3),
)


def parameter_counts(config: agent_config.AgentConfig) -> dict[str, int]:
  """Returns the number of parameters of each of PARTS.

  Raises:
    ValueError: a module that belongs to none of them.
  """
  params = jax.eval_shape(agent.make_policy(config).init, jax.random.key(0))
  part_of = {module: part.name for part in PARTS for module in part.modules}
  counts = {part.name: 0 for part in PARTS}
  for module, leaves in params.items():
    first = module.split("/")[0]
    if first not in part_of:
      raise ValueError(f"parameters {module!r} belong to none of {', '.join(part_of)}")
    counts[part_of[first]] += sum(leaf.size for leaf in leaves.values())
  return counts


def parameter_table(config: agent_config.AgentConfig) -> list[str]:
  """Returns a Markdown table of parts; for the full preset with the published counts."""
  counts = parameter_counts(config)
  total = sum(counts.values())
  full = config.name == "full"
  lines = ["| part | parameters | share |" + (" counted from the paper |" if full else ""),
           "|---|---:|---:|" + ("---:|" if full else "")]
  rows = [(part.name, counts[part.name], part.published) for part in PARTS]
  for name, parts in (("**policy**", PARTS[:-1]), ("**all**", PARTS)):
    rows.append((name, sum(counts[part.name] for part in parts),
                 sum(part.published for part in parts)))
  for name, count, published in rows:
    line = f"| {name} | {count:,} | {count / total:.1%} |"
    lines.append(line + (f" {published:.2f} M |" if full else ""))
  return lines


def _shape(x: jax.Array | np.ndarray | jax.ShapeDtypeStruct) -> str:
  return f"[{', '.join(map(str, x.shape))}]"


def diagram(config: agent_config.AgentConfig) -> list[str]:
  """Returns a Mermaid diagram of one step, with the traced shapes."""
  policy = agent.make_policy(config)
  params = jax.eval_shape(policy.init, jax.random.key(0))
  observation = types.observation_spec(config.max_entities, config.map_size)
  state = jax.eval_shape(policy.initial_state)
  output = jax.eval_shape(policy.step, params, jax.random.key(0), observation, state)
  network = hk.transform(lambda x: encoders.encode(config, x))
  encoding = jax.eval_shape(
    lambda key, x: network.apply(network.init(key, x), None, x), jax.random.key(0), observation)
  skips = f"{len(encoding.map_skips)} x {_shape(encoding.map_skips[0])}"
  logits = {name: _shape(x) for name, x in output.logits._asdict().items()}
  return [
    "```mermaid", "flowchart TD",
    f'  entities["entities {_shape(observation.entities)}"] --> entity[entity encoder]',
    f'  minimap["map planes {_shape(observation.minimap)}"] --> spatial[spatial encoder]',
    '  scalars["scalars and z"] --> scalar[scalar encoder]',
    f'  entity -- "scatter connection {_shape(encoding.entity_embeddings)}" --> spatial',
    f'  entity & spatial & scalar -- "{_shape(encoding.core_input)} concatenated" --> core',
    f'  state["hidden and cell state {_shape(state.hidden)}"] <--> core[LSTM core]',
    f'  scalar -- "context {_shape(encoding.scalar_context)}" --> function',
    f'  core --> function["function {logits["function"]}"]',
    f'  function --> delay["delay {logits["delay"]}"]',
    f'  delay --> queued["queued {logits["queued"]}"]',
    f'  queued --> repeat["repeat {logits["repeat"]}"]',
    f'  repeat --> units["units {logits["units"]}"]',
    f'  units --> target["target unit {logits["target_unit"]}"]',
    f'  units --> location["location {logits["location"]}"]',
    f'  entity -- "keys {_shape(encoding.entity_embeddings)}" --> units & target',
    f'  spatial -- "map skips {skips}" --> location',
    '  core & privileged["opponent and scores"] --> baselines["values [5]"]', "```"]


def generated_part(config: agent_config.AgentConfig) -> str:
  """Returns the generated part of the page: the diagram and the table."""
  lines = [f"### One step of `{config.name}`", "", *diagram(config), "",
           f"### Parameters of `{config.name}`", "", *parameter_table(config)]
  return "\n".join(lines)


def require_marks(text: str) -> None:
  """Checks that a page has both marks of the generated part, once each and in order.

  Raises:
    ValueError: it does not.
  """
  marks = [text.count(BEGIN), text.count(END)]
  if marks != [1, 1] or text.index(BEGIN) > text.index(END):
    raise ValueError(f"expected {BEGIN} and then {END}, once each; found {marks[0]} and {marks[1]}")


def update(text: str, part: str) -> str:
  """Returns a page with its generated part replaced.

  Raises:
    ValueError: see `require_marks`.
  """
  require_marks(text)
  before, _, rest = text.partition(BEGIN)
  return f"{before}{BEGIN}\n{part}\n{END}{rest.partition(END)[2]}"
