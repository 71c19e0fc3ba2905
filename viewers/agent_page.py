"""The agent of a preset as a page: a diagram of its data with shapes, and its parameters by module.

Everything is read off the code, by tracing it without running it.
"""

from typing import NamedTuple

import haiku as hk
import jax

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import encoders, types

BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"


class Part(NamedTuple):
  """A module of the agent and what the published text comes to when it is counted."""

  name: str
  modules: tuple[str, ...]  # first parts of the names of its parameters
  tally: float | None  # millions, at the published sizes


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


def parameter_counts(settings: agent_config.AgentConfig) -> dict[str, int]:
  """Parameters of each of PARTS.

  Raises:
    ValueError: naming parameters that belong to none of them.
  """
  params = jax.eval_shape(agent.make_policy(settings).init, jax.random.key(0))
  part_of = {module: part.name for part in PARTS for module in part.modules}
  counts = {part.name: 0 for part in PARTS}
  for module, leaves in params.items():
    first = module.split("/")[0]
    if first not in part_of:
      raise ValueError(f"parameters {module!r} belong to none of {', '.join(part_of)}")
    counts[part_of[first]] += sum(leaf.size for leaf in leaves.values())
  return counts


def parameter_table(settings: agent_config.AgentConfig) -> list[str]:
  """Lines of a table: part, parameters, share, and the tally at the published sizes."""
  counts = parameter_counts(settings)
  total = sum(counts.values())
  policy = total - counts["baselines"]
  published = settings.name == "full"
  lines = ["| part | parameters | share |" + (" counted from the paper |" if published else ""),
           "|---|---:|---:|" + ("---:|" if published else "")]
  for part in PARTS:
    count = counts[part.name]
    line = f"| {part.name} | {count:,} | {count / total:.1%} |"
    lines.append(line + (f" {part.tally:.2f} M |" if published else ""))
  for name, count, parts in (("**policy**", policy, PARTS[:-1]), ("**all**", total, PARTS)):
    line = f"| {name} | {count:,} | {count / total:.1%} |"
    tally = sum(part.tally or 0.0 for part in parts)
    lines.append(line + (f" {tally:.2f} M |" if published else ""))
  return lines


def _shape(x) -> str:
  return f"[{', '.join(map(str, x.shape))}]"


def diagram(settings: agent_config.AgentConfig) -> list[str]:
  """Lines of a Mermaid diagram of one step, with the shapes that tracing the code gives."""
  policy = agent.make_policy(settings)
  params = jax.eval_shape(policy.init, jax.random.key(0))
  observation = types.observation_spec(settings.max_entities, settings.map_size)
  state = jax.eval_shape(policy.initial_state)
  output = jax.eval_shape(policy.step, params, jax.random.key(0), observation, state)
  network = hk.transform(lambda x: encoders.encode(settings, x))
  encoding = jax.eval_shape(
    lambda key, x: network.apply(network.init(key, x), None, x), jax.random.key(0), observation)
  skips = f"{len(encoding.map_skips)} x {_shape(encoding.map_skips[0])}"
  logits = {name: _shape(x) for name, x in output.logits._asdict().items()}
  lines = [
    "```mermaid", "flowchart TD",
    f'  entities["entities {_shape(observation.entities)}"] --> entity[entity encoder]',
    f'  minimap["map planes {_shape(observation.minimap)}"] --> spatial[spatial encoder]',
    '  scalars["scalars and z"] --> scalar[scalar encoder]',
    f'  entity -- "drawn on the map {_shape(encoding.entity_embeddings)}" --> spatial',
    f'  entity & spatial & scalar -- "{_shape(encoding.core_input)} side by side" --> core',
    f'  state["state {_shape(state.hidden)} twice"] <--> core[LSTM core]',
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
  return lines


def page_part(settings: agent_config.AgentConfig) -> str:
  """The generated part of the page."""
  lines = [f"### One step of `{settings.name}`", "", *diagram(settings), "",
           f"### Parameters of `{settings.name}`", "", *parameter_table(settings)]
  return "\n".join(lines)


def renew(text: str, part: str) -> str:
  """A page with its generated part replaced.

  Raises:
    ValueError: the page does not have both marks, once each and in order.
  """
  before, begin, rest = text.partition(BEGIN)
  _, end, after = rest.partition(END)
  if not (begin and end) or BEGIN in after or END in after:
    raise ValueError(f"expected {BEGIN} and then {END} once each in the page")
  return f"{before}{BEGIN}\n{part}\n{END}{after}"
