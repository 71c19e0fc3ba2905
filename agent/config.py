"""Sizes and options of the agent, and the presets `full`, `small` and `mini`.

`full` is the published agent (Vinyals et al. 2019, detailed architecture). The others are the same
code with smaller numbers. Derive a custom size from a preset:

  dataclasses.replace(config.mini(), core_size=128)
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

DTYPES = ("float32", "bfloat16")
UNIT_MASKS = ("existing", "own", "capable")
FUNCTION_MASKS = ("none", "available")
ENTITY_EMBEDDINGS = ("gather", "one_hot")
ENTITY_ATTENTIONS = ("plain", "fused")
ENTITY_MLPS = ("plain", "fused")
TARGET_MASKS = ("existing", "on_screen")
LOCATION_MASKS = ("none", "free")
REMATS = ("none", "blocks", "parts")
PICK_POOLINGS = ("entities", "512", "none")
BUILD_ORDER_POOLINGS = ("flatten", "mean")
# Fields that do not change the meaning of parameters: stored ones may be used with other values.
RUN_FIELDS = frozenset({
  "max_entities", "dtype", "remat", "entity_embedding", "entity_attention", "entity_mlp",
  "temperature", "delay_temperature", "location_mask", "map_units"})
# Sizes of observations and actions, and so of recorded games.
GAME_FIELDS = frozenset({"name", "max_entities", "map_size", "location_size", "max_selected"})


@dataclasses.dataclass(frozen=True)
class ScalarConfig:
  """Embedding width of each scalar feature, in order of concatenation."""

  player: int = 64
  home_race: int = 32
  away_race: int = 32
  upgrades: int = 128
  enemy_upgrades: int = 128
  time: int = 64  # a fixed sinusoid; must be even
  available_actions: int = 64
  unit_counts: int = 64
  mmr: int = 64
  cumulative: int = 32  # each of units, effects, upgrades
  last_delay: int = 64
  last_function: int = 128
  last_queued_repeat: int = 256
  score: int = 64  # value functions only
  build_order_layers: int = 3
  build_order_attention_heads: int = 2
  build_order_key_size: int = 8
  build_order_hidden: int = 32
  build_order_pooling: str = "flatten"  # BUILD_ORDER_POOLINGS: concatenate tokens, or average


@dataclasses.dataclass(frozen=True)
class AgentConfig:
  """Sizes and options of the agent. Sizes are activation widths unless a comment says otherwise."""

  name: str
  # Observation and action.
  max_entities: int  # E
  map_size: int  # H = W of the planes
  location_size: int  # L
  max_selected: int  # K
  # Entity encoder.
  entity_size: int
  entity_layers: int
  entity_attention_heads: int
  entity_key_size: int
  entity_hidden: int
  # Spatial encoder.
  scatter_size: int  # channels of the entities scattered onto the map
  map_projection: int
  map_downsamples: tuple[int, ...]  # channels of each stride-2 convolution
  map_blocks: int
  spatial_size: int
  # Scalar encoder.
  scalar: ScalarConfig
  # Core.
  core_layers: int
  core_size: int
  # Heads.
  head_size: int
  action_blocks: int
  autoregressive_size: int
  key_size: int
  function_embedding: int
  location_channels: int
  location_upsamples: tuple[int, ...]  # channels of each stride-2 upsampling; the last is 1
  # Value functions.
  baseline_size: int
  baseline_blocks: int
  # Options.
  temperature: float = 0.8  # of every argument except the delay; 1.0 in supervised learning
  delay_temperature: float = 1.0
  repeat: bool = True  # whether the repeat head exists; without it `repeat` is always 0
  # Entities that may be selected. "existing": all; "own": the player's that take commands;
  # "capable": of these, those whose type can execute the function, or all if there are none.
  unit_mask: str = "existing"
  function_mask: str = "none"  # "available": only functions in available_actions
  # Entities and cells that may be targeted. "existing": all; "on_screen": functions that a human
  # aims on the screen (vocabulary.ON_SCREEN) reach own entities and the camera's view. The paper
  # mentions masks, and "outside camera" once.
  target_mask: str = "existing"
  # Cells in which structures may be placed. "none": all; "free": free cells on a map of `map_units`
  # game units a side (`placement`).
  location_mask: str = "none"
  map_units: float = 48.0
  # Divisor of a picked unit's key in the autoregressive embedding: the number of "entities", "512",
  # or "none" (1). The paper's "mean across the entities" allows each reading.
  pick_pooling: str = "entities"
  # Implementation of the entity embedding and of the scatter onto the map; both compute the same
  # function. "gather" uses look-ups and scatter-adds, for CPUs; "one_hot" uses matrix products, for
  # matrix units.
  entity_embedding: str = "gather"
  # "plain": matrix products; "fused": the same function, on a TPU and a GPU in a kernel that keeps
  # each set's logits beside the matrix unit.
  entity_attention: str = "plain"
  # "plain": matrix products; "fused": the same function, on a TPU in a kernel that keeps hidden
  # rows beside the matrix unit.
  entity_mlp: str = "plain"
  # Of activations. Softmax, LSTM cell and values are float32; so are logits from their masks on,
  # which most last layers give in this dtype.
  dtype: str = "float32"
  # Rematerialisation in the backward pass. "none"; "blocks": each block of encoders, heads and
  # value functions; "parts": all encoders together, and all heads of a step together.
  remat: str = "none"

  @property
  def coarse_size(self) -> int:
    """Rows and columns of the coarse map, after the downsampling convolutions."""
    return self.map_size >> len(self.map_downsamples)


def full() -> AgentConfig:
  """Returns the published agent (Vinyals et al. 2019, detailed architecture): 42 M parameters."""
  return AgentConfig(
    name="full", max_entities=512, map_size=128, location_size=256, max_selected=64,
    entity_size=256, entity_layers=3, entity_attention_heads=2, entity_key_size=128,
    entity_hidden=1024,
    scatter_size=32, map_projection=32, map_downsamples=(64, 128, 128), map_blocks=4,
    spatial_size=256,
    scalar=ScalarConfig(),
    core_layers=3, core_size=384,
    head_size=256, action_blocks=16, autoregressive_size=1024, key_size=32,
    function_embedding=256, location_channels=128, location_upsamples=(128, 64, 16, 1),
    baseline_size=256, baseline_blocks=16, target_mask="on_screen", entity_embedding="one_hot",
    entity_attention="fused", entity_mlp="fused", dtype="bfloat16")


def mini() -> AgentConfig:
  """Returns a small agent for Skirmish on a laptop and for tests: 0.4 M parameters."""
  return AgentConfig(
    name="mini", max_entities=64, map_size=32, location_size=32, max_selected=8,
    entity_size=32, entity_layers=1, entity_attention_heads=2, entity_key_size=8,
    entity_hidden=64,
    scatter_size=8, map_projection=8, map_downsamples=(8, 16), map_blocks=1,
    spatial_size=32,
    scalar=ScalarConfig(
      player=16, home_race=8, away_race=8, upgrades=16, enemy_upgrades=8, time=16,
      available_actions=16, unit_counts=16, mmr=8, cumulative=8, last_delay=8, last_function=16,
      last_queued_repeat=8, score=16, build_order_layers=1, build_order_key_size=4,
      build_order_hidden=16, build_order_pooling="mean"),
    core_layers=1, core_size=64,
    head_size=32, action_blocks=1, autoregressive_size=128, key_size=16,
    function_embedding=32, location_channels=16, location_upsamples=(8, 1),
    baseline_size=32, baseline_blocks=1, unit_mask="capable", function_mask="available")


def small() -> AgentConfig:
  """Returns a small agent for three races and three maps on two cores: 0.9 M parameters."""
  return dataclasses.replace(
    mini(), name="small", max_entities=96, max_selected=12, entity_size=48, entity_hidden=96,
    spatial_size=48, core_size=192, head_size=48, baseline_size=48, location_mask="free")


_PRESETS: dict[str, Callable[[], AgentConfig]] = {
  "full": full, "mini": mini, "small": small}


def preset(name: str) -> AgentConfig:
  """Returns a preset by name.

  Raises:
    ValueError: there is no preset of that name.
  """
  if name not in _PRESETS:
    raise ValueError(f"unknown agent preset {name!r}: expected one of {sorted(_PRESETS)}")
  return _PRESETS[name]()


def changed(config: AgentConfig, text: str) -> AgentConfig:
  """Returns the config with some fields changed, checked by `validate`.

  Args:
    config: a preset, for example.
    text: FIELD=VALUE, several separated by commas, as "core_size=192,map_downsamples=8:24". Colons
      separate the parts of a tuple. Fields of ScalarConfig begin with "scalar.". Empty: no change.

  Raises:
    ValueError: a part has another form, an unknown or repeated field, or an impossible value.
  """
  own: dict[str, Any] = {}
  scalar: dict[str, Any] = {}
  for part in filter(None, text.split(",")):
    name, equals, value = part.partition("=")
    group, _, field = name.rpartition(".")
    target, values = (config.scalar, scalar) if group == "scalar" else (config, own)
    known = [each.name for each in dataclasses.fields(target)]
    if group not in ("", "scalar") or field not in known or name == "scalar" or not equals:
      raise ValueError(f"found {part!r}, expected FIELD=VALUE with a field of AgentConfig such as "
                       "core_size, or one of ScalarConfig such as scalar.time")
    if field in values:
      raise ValueError(f"found {part!r}, expected one value of {name}, which {text!r} has twice")
    values[field] = _parsed(part, value, getattr(target, field))
  found = dataclasses.replace(config, scalar=dataclasses.replace(config.scalar, **scalar), **own)
  validate(found)
  return found


def _parsed(part: str, text: str, like: Any) -> Any:
  """Parses a field's value; it has the type of `like`, the present value."""
  kind = type(like)
  try:
    if kind is bool:
      return {"True": True, "False": False}[text]
    if kind is tuple:
      return tuple(int(each) for each in text.split(":"))
    return kind(text)
  except (KeyError, ValueError):
    expected = "integers with colons between" if kind is tuple else f"type {kind.__name__}"
    raise ValueError(f"found {part!r}, expected {expected}") from None


def tempered(config: AgentConfig, factor: float) -> AgentConfig:
  """Returns the config with both temperatures multiplied by a factor.

  Below 1 the policy is sharper and explores less. Parameters fit any temperature.
  """
  # Rounded: files and messages show 0.6, not the product 0.6000000000000001.
  return dataclasses.replace(config, temperature=round(factor * config.temperature, 9),
                             delay_temperature=round(factor * config.delay_temperature, 9))


def on_map(config: AgentConfig, units: float | None) -> AgentConfig:
  """Returns the config for a map of `units` game units a side; None: a game without the mask.

  The mask of free cells follows the rules of Skirmish. StarCraft II has others.
  """
  if config.location_mask == "none":
    return config
  if units is None:
    return dataclasses.replace(config, location_mask="none")
  return dataclasses.replace(config, map_units=units)


def structure(values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields of a config that give parameters their meaning, as flat JSON values.

  Args:
    values: `dataclasses.asdict` of an AgentConfig, or the same read from JSON.

  Returns:
    {"core_size": 64, "scalar.player": 16, ...}, without RUN_FIELDS.
  """
  flat: dict[str, Any] = {}
  for name, value in values.items():
    if isinstance(value, Mapping):
      flat |= {f"{name}.{key}": part for key, part in structure(value).items()}
    elif name not in RUN_FIELDS:
      flat[name] = list(value) if isinstance(value, tuple) else value
  return flat


def validate(config: AgentConfig) -> None:
  """Checks a config's sizes and options against each other.

  Raises:
    ValueError: a field has an impossible value; names the field, the expected and the found value.
  """
  _check_positive(config)
  _check_choice("unit_mask", config.unit_mask, UNIT_MASKS)
  _check_choice("function_mask", config.function_mask, FUNCTION_MASKS)
  _check_choice("target_mask", config.target_mask, TARGET_MASKS)
  _check_choice("location_mask", config.location_mask, LOCATION_MASKS)
  _check_choice("entity_embedding", config.entity_embedding, ENTITY_EMBEDDINGS)
  _check_choice("entity_attention", config.entity_attention, ENTITY_ATTENTIONS)
  _check_choice("entity_mlp", config.entity_mlp, ENTITY_MLPS)
  _check_choice("pick_pooling", config.pick_pooling, PICK_POOLINGS)
  _check_choice("dtype", config.dtype, DTYPES)
  _check_choice("remat", config.remat, REMATS)
  _check_choice("scalar.build_order_pooling", config.scalar.build_order_pooling,
                BUILD_ORDER_POOLINGS)
  _require(256 % config.map_size == 0, "map_size", "a divisor of 256, the position grid",
           config.map_size)
  halvings = 2 ** len(config.map_downsamples)
  _require(config.map_size % halvings == 0, "map_downsamples",
           f"at most as many as can halve map_size {config.map_size}",
           config.map_downsamples)
  reached = config.coarse_size * 2 ** len(config.location_upsamples)
  _require(reached == config.location_size, "location_upsamples",
           f"as many as double the coarse map of {config.coarse_size} to location_size "
           f"{config.location_size}", config.location_upsamples)
  _require(config.location_upsamples[-1] == 1, "location_upsamples", "ending in 1 channel",
           config.location_upsamples)
  _require(config.location_channels == config.map_downsamples[-1], "location_channels",
           f"the last of map_downsamples {config.map_downsamples}, the width of the map skips",
           config.location_channels)
  _require(config.autoregressive_size % config.coarse_size ** 2 == 0, "autoregressive_size",
           f"a multiple of {config.coarse_size} * {config.coarse_size}, the coarse map",
           config.autoregressive_size)
  _require(config.scalar.time % 2 == 0, "scalar.time", "even, for pairs of sine and cosine",
           config.scalar.time)


def _require(condition: bool, field: str, expected: str, found: object) -> None:
  if not condition:
    raise ValueError(f"AgentConfig.{field} must be {expected}; found {found!r}")


def _check_choice(field: str, found: str, choices: tuple[str, ...]) -> None:
  _require(found in choices, field, f"one of {choices}", found)


def _check_positive(config: AgentConfig) -> None:
  may_be_zero = ("map_blocks", "action_blocks", "baseline_blocks")
  fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
  fields |= {f"scalar.{field.name}": getattr(config.scalar, field.name)
             for field in dataclasses.fields(config.scalar)}
  for name, value in fields.items():
    if isinstance(value, tuple):
      _require(bool(value) and all(channels >= 1 for channels in value), name,
               "one or more positive channel counts", value)
    elif isinstance(value, bool):
      continue
    elif isinstance(value, float):
      _require(value > 0, name, "above zero", value)
      _require(math.isfinite(value), name, "finite", value)
    elif isinstance(value, int):
      least = 0 if name in may_be_zero else 1
      _require(value >= least, name, f"at least {least}", value)
