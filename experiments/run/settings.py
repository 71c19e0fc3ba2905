"""A run's settings: read from a config file and flags, checked, kept in the run's folder."""

import difflib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import files
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.rules import tables
from starleague.environments.skirmish.rules.config import game_config
from starleague.experiments.configs import mini
from starleague.league import matchmaking

CONFIG_FILE = "config.json"
# Keys whose value must be above zero.
POSITIVE = ("seconds", "unroll_length", "actor.processes", "actor.games", "actor.inference_batch",
            "actor.iterations", "actor.parameter_interval_s", "data.min_size", "data.tolerance",
            "data.samples_per_item", "data.timeout_s", "learner.batch_size", "learner.accumulate",
            "learner.learning_rate", "learner.publish_interval_s",
            "learner.checkpoint_interval_s", "learner.log_interval_s", "learner.keep_last",
            "learner.max_skipped", "evaluation.games")


class SettingsError(ValueError):
  """A setting that cannot be: names the key, what was found and what is allowed."""


def require_key(key: str) -> None:
  """Refuses a key that no config has.

  Args:
    key: dots between groups, as `learner.batch_size`; a group may be named too.

  Raises:
    SettingsError: naming the nearest key.
  """
  known = list(_flat(mini.get_config().to_dict()))
  groups = {name.rpartition(".")[0] for name in known if "." in name}
  if key in known or key in groups:
    return
  # A key of the right name in the wrong group, or without one, is nearest too.
  last = {name.split(".")[-1]: name for name in known}
  nearest = difflib.get_close_matches(key, known, 1, 0.0)[0]
  nearest = last.get(key.split(".")[-1], nearest)
  raise SettingsError(f"config key {key!r} does not exist; the nearest is {nearest!r}.")


def _merge(into: dict[str, Any], values: Mapping[str, Any], path: str) -> None:
  for key, value in values.items():
    where = f"{path}{key}"
    if key not in into:
      require_key(where)
    known = into[key]
    if isinstance(known, dict):
      if not isinstance(value, Mapping):
        raise SettingsError(f"config key {where!r} is a group of keys, found {value!r}.")
      _merge(known, value, f"{where}.")
    elif isinstance(known, float) and type(value) is int:
      into[key] = float(value)
    elif type(value) is not type(known):
      raise SettingsError(f"config key {where!r} takes a {type(known).__name__}, found "
                          f"{value!r} ({type(value).__name__}).")
    else:
      into[key] = value


def complete(values: Mapping[str, Any]) -> ml_collections.ConfigDict:
  """The keys of `configs/mini.py`, some with other values, checked.

  Args:
    values: nested changes.

  Raises:
    SettingsError: an unknown key, a value of another type, or one that cannot be.
  """
  merged = mini.get_config().to_dict()
  _merge(merged, values, "")
  config = ml_collections.ConfigDict(merged)
  check(config)
  return config


def _lookup(config: ml_collections.ConfigDict, key: str) -> Any:
  for part in key.split("."):
    config = config[part]
  return config


def check(config: ml_collections.ConfigDict) -> None:
  """Refuses values that cannot be, before any process starts.

  Raises:
    SettingsError: naming the key, the value found and those allowed.
  """
  try:
    preset = agent_config.preset(config.preset)
  except ValueError as error:
    raise SettingsError(f"config key 'preset': {error}") from error
  try:
    tables.make_rules(*game_config(config.environment.tier, preset))
  except ValueError as error:
    raise SettingsError(f"config key 'environment.tier': {error}") from error
  _check_players(config)
  for key in POSITIVE:
    if not _lookup(config, key) > 0:
      raise SettingsError(f"config key {key!r} must be above 0, found {_lookup(config, key)!r}.")
  for key in ("actor.self_play", "actor.uniform", "actor.pseudo_probability"):
    if not 0.0 <= _lookup(config, key) <= 1.0:
      raise SettingsError(f"config key {key!r} must be in [0, 1], found {_lookup(config, key)!r}.")
  if config.actor.matchmaking not in matchmaking.WEIGHTINGS:
    raise SettingsError(f"config key 'actor.matchmaking' must be one of "
                        f"{', '.join(matchmaking.WEIGHTINGS)}, found {config.actor.matchmaking!r}.")
  for name in filter(None, config.actor.pseudo_rewards.split(",")):
    if name not in types.PSEUDO_REWARDS:
      raise SettingsError(f"config key 'actor.pseudo_rewards' names {name!r}; expected some of "
                          f"{', '.join(types.PSEUDO_REWARDS)}, with commas between.")
  if config.actor.inference_batch > 2 * config.actor.games:
    raise SettingsError(
      f"config key 'actor.inference_batch' may be at most twice 'actor.games' "
      f"({2 * config.actor.games}), found {config.actor.inference_batch}.")


def _check_players(config: ml_collections.ConfigDict) -> None:
  """Refuses opponents that the tier lacks, or that are given more than an agent is."""
  fair = [script.name for script in scripts.scripts_of(config.environment.tier)
          if script.skill.income == 100 and not script.skill.vision]
  opponents = config.environment.opponents.split(",")
  for key, names, known in (
      ("environment.opponents", opponents, fair),
      ("actor.demonstrators", filter(None, config.actor.demonstrators.split(",")), opponents)):
    for name in names:
      if name not in known:
        raise SettingsError(f"config key {key!r} names {name!r}; expected some of "
                            f"{', '.join(known)}, with commas between.")


def save(config: ml_collections.ConfigDict, run_dir: str | os.PathLike) -> None:
  """Writes a run's settings into its folder, atomically."""
  path = pathlib.Path(run_dir) / CONFIG_FILE
  with files.replacing(path) as file:
    json.dump(config.to_dict(), file, indent=2)
    file.write("\n")


def load(run_dir: str | os.PathLike) -> ml_collections.ConfigDict:
  """The settings of a run's folder.

  Raises:
    SettingsError: no settings there, or ones that do not fit.
  """
  path = pathlib.Path(run_dir) / CONFIG_FILE
  if not path.exists():
    raise SettingsError(f"{path} does not exist; expected the settings of a run there. "
                        f"`python -m starleague.experiments.train` starts one.")
  try:
    values = json.loads(path.read_text())
  except json.JSONDecodeError as error:
    raise SettingsError(f"{path} is not JSON: {error}.") from error
  if not isinstance(values, dict):
    raise SettingsError(f"{path} holds a {type(values).__name__}, expected an object of settings.")
  return complete(values)


def differences(one: ml_collections.ConfigDict, other: ml_collections.ConfigDict,
                ignored: Sequence[str] = ()) -> list[tuple[str, Any, Any]]:
  """Keys, dots between groups, whose values differ: (key, value in one, value in other)."""
  left, right = _flat(one.to_dict()), _flat(other.to_dict())
  return [(key, left[key], right[key]) for key in sorted(left)
          if key not in ignored and left[key] != right[key]]


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
  found: dict[str, Any] = {}
  for key, value in values.items():
    found |= _flat(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
  return found
