"""A run's config: read from a config file and flags, checked, stored in the run's directory."""

import difflib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections

from starleague.actor.loops import engines
from starleague.agent import pretrained, types
from starleague.common import files, run_files
from starleague.common.errors import UserError
from starleague.common.ranges import Range
from starleague.experiments.configs import mini
from starleague.experiments.run.config import objectives, resources
from starleague.experiments.run.config.errors import SettingsError, check_known, split
from starleague.experiments.run.config.ranges import RANGES
from starleague.experiments.run.games import registry
from starleague.league import matchmaking
from starleague.learner.loops.options import OFFLINE_METHODS

ONE, EACH = LEARNERS = ("one", "each")  # learner of all players of a league, or one for each
# Weights that training starts from.
IMITATION, RANDOM, PRETRAINED = INITS = ("imitation", "random", "pretrained")
CLONED, RECORDED = RATIOS = ("cloned", "recorded")  # importance ratios of offline learning


def base(init: str | None = None, game: registry.Game | None = None) -> dict[str, Any]:
  """Returns the values of `configs/mini.py`, with the config groups of all games.

  Args:
    init: the value of the config key `init`; None: the game's.
    game: changes some values; None: the default game.
  """
  game = game or registry.find(registry.DEFAULT)
  values = mini.get_config(init or game.default_init).to_dict()
  values["environment"]["name"] = game.name
  values |= {each.name: dict(each.options) for each in registry.games().values() if each.options}
  _merge(values, game.changes, "")
  return values


def require_key(key: str) -> None:
  """Checks that a config key exists.

  Args:
    key: dots between groups, as `learner.batch_size`; a group is accepted too.

  Raises:
    SettingsError: it does not exist; names the nearest key.
  """
  known = list(flat(base()))
  groups = {name.rpartition(".")[0] for name in known if "." in name}
  if key in known or key in groups:
    return
  raise SettingsError(f"{unknown_key(key, known)}.")


def unknown_key(key: str, known: Sequence[str]) -> str:
  """Returns the message for a key that is not among the known ones; names the nearest."""
  return f"config key {_shortened(key)!r} does not exist; the nearest is {_nearest(key, known)!r}"


def _nearest(key: str, known: Sequence[str]) -> str:
  """Returns the known key nearest to one that does not exist.

  A misspelt key of its own group comes first, then one of its name in another group, or without a
  group, then the most similar one.
  """
  group, _, name = key.rpartition(".")
  own = [each for each in known if each.rpartition(".")[0] == group]
  similar = difflib.get_close_matches(name, [each.rpartition(".")[2] for each in own], 1)
  if similar:
    return f"{group}.{similar[0]}" if group else similar[0]
  same = [each for each in known if each.rpartition(".")[2] == name]
  return same[-1] if same else difflib.get_close_matches(key, known, 1, 0.0)[0]


def _shortened(text: str, length: int = 80) -> str:
  return text if len(text) <= length else f"{text[:length]}..."


def _shown(value: Any) -> str:
  """Returns a value for a message, in one short line."""
  try:
    return _shortened(" ".join(repr(value).split()))
  except ValueError:  # Python does not print integers of more than 4300 digits
    return f"an integer of {value.bit_length()} bits"


def _merge(into: dict[str, Any], values: Mapping[str, Any], path: str) -> None:
  """Replaces the values of known keys, recursively; `path` is the prefix of their names."""
  for key, value in values.items():
    where = f"{path}{key}"
    if key not in into:
      require_key(where)
    known = into[key]
    if isinstance(known, dict):
      if not isinstance(value, Mapping):
        raise SettingsError(
          f"config key {where!r} is a group of keys, found {_shown(value)}.")
      _merge(known, value, f"{where}.")
    elif isinstance(known, float) and type(value) is int and abs(value) < 2**53:
      into[key] = float(value)
    elif type(value) is not type(known):
      raise SettingsError(f"config key {where!r} takes a {type(known).__name__}, found "
                          f"{_shown(value)} ({type(value).__name__}).")
    else:
      into[key] = value


def complete(values: Mapping[str, Any],
             overrides: Mapping[str, Any] | None = None) -> ml_collections.ConfigDict:
  """Returns the config of `configs/mini.py` with changed values, checked.

  Args:
    values: changed values, nested as in the config.
    overrides: further changes, by key with dots between groups.

  Raises:
    SettingsError: an unknown key, a value of another type, or an invalid value.
  """
  changed = overrides or {}
  init = changed.get("init", values.get("init"))
  group = values.get("environment")
  named = group.get("name") if isinstance(group, Mapping) else None
  name = changed.get("environment.name", named)
  merged = base(init if init in INITS else None,
                registry.games().get(name) if isinstance(name, str) else None)
  _merge(merged, values, "")
  for key, value in changed.items():
    nested: Any = value
    for part in reversed(key.split(".")):
      nested = {part: nested}
    _merge(merged, nested, "")
  config = ml_collections.ConfigDict(merged)
  check(config)
  return config


def check(config: ml_collections.ConfigDict) -> None:
  """Checks all values, before any process starts.

  Raises:
    SettingsError: an invalid value; names the key, the value and the valid values.
  """
  values = flat(config.to_dict())
  for key, valid in all_ranges().items():
    if values[key] not in valid:  # NaN is in no range
      raise SettingsError(f"config key {key!r} must be {valid}, found {_shown(values[key])}.")
  found = registry.agent_of(config)
  game = registry.game_of(config)
  _check_choices(config)
  _check_personal(config, game.engine == engines.COMPILED)
  game.check(config, found)
  _check_sizes(config)
  _check_cluster(config)


def all_ranges() -> dict[str, Range]:
  """Returns the valid values of every number of a config, by key."""
  games = registry.games().values()
  return RANGES | {key: valid for game in games for key, valid in game.ranges.items()}


def _check_cluster(config: ml_collections.ConfigDict) -> None:
  """Checks the resources of processes, and the learners of a league."""
  for role, text in config.cluster.items():
    try:
      if role not in ("learners", "learner_hosts"):
        resources.parse(text)
    except resources.ResourcesError as error:
      raise SettingsError(f"config key 'cluster.{role}': {error}.") from error
  if config.cluster.learners not in LEARNERS:
    raise SettingsError(f"config key 'cluster.learners' must be one of {', '.join(LEARNERS)}, "
                        f"found {config.cluster.learners!r}.")
  if config.league.main_updates and config.cluster.learners != ONE:
    raise SettingsError(
      f"config key 'cluster.learners' must be {ONE!r} if 'league.main_updates' is above 0, "
      f"found {config.cluster.learners!r}: one process counts the updates of all players.")


def _check_personal(config: ml_collections.ConfigDict, compiled: bool) -> None:
  """Checks what differs between a league's players; `compiled`: games are played inside JAX."""
  for key in ("exploiter_minimax", "exploiter_goals", "objectives", "snapshots_z"):
    if config.league[key] and not compiled:
      raise SettingsError(f"config key 'league.{key}' must be {type(config.league[key])()!r} in "
                          f"{config.environment.name}, whose games are played outside JAX; found "
                          f"{config.league[key]}.")
  if config.actor.objective and not compiled:
    raise SettingsError(f"config key 'actor.objective' must be '' in {config.environment.name}, "
                        f"whose games are played outside JAX; found {config.actor.objective!r}.")
  try:
    objectives.parse_objective(config.actor.objective, config.environment.tier)
  except UserError as error:
    raise SettingsError(f"config key 'actor.objective': {error}.") from error
  for key in ("exploiter_goals", "snapshots_z"):
    if config.league[key] and not config.actor.pseudo_probability:
      raise SettingsError("config key 'actor.pseudo_probability' must be above 0 if "
                          f"'league.{key}' is true: without it a run has no z.")


def _check_sizes(config: ml_collections.ConfigDict) -> None:
  """Checks the sizes that must fit one another."""
  if config.actor.inference_batch > 2 * config.actor.games:
    raise SettingsError(
      f"config key 'actor.inference_batch' must be at most twice 'actor.games' "
      f"({2 * config.actor.games}), found {config.actor.inference_batch}.")
  for name, group in (("learner", config.learner), ("imitation", config.imitation)):
    if group.batch_size % group.accumulate:
      raise SettingsError(
        f"config key '{name}.batch_size' must be a multiple of '{name}.accumulate' "
        f"({group.accumulate}), found {group.batch_size}.")
  if not config.imitation.seconds and not config.imitation.epochs:
    raise SettingsError("config keys 'imitation.seconds' and 'imitation.epochs' must not both be "
                        "0: imitation would not end.")
  if config.demonstrations.labels and not (
      config.imitation.labels_seconds or config.imitation.labels_epochs):
    raise SettingsError(
      "config keys 'imitation.labels_seconds' and 'imitation.labels_epochs' must not both be 0 if "
      f"'demonstrations.labels' is {config.demonstrations.labels}: labels would not be learnt.")
  if config.evaluation.games % 2:
    raise SettingsError("config key 'evaluation.games' must be even (half from each side), found "
                        f"{config.evaluation.games}.")


def _check_choices(config: ml_collections.ConfigDict) -> None:
  """Checks the matchmaking and the initial weights."""
  if config.init not in INITS:
    raise SettingsError(
      f"config key 'init' must be one of {', '.join(INITS)}, found {config.init!r}.")
  if config.init == PRETRAINED and config.preset not in pretrained.names():
    raise SettingsError(f"config key 'preset' must be one of {', '.join(pretrained.names())} if "
                        f"'init' is {PRETRAINED!r}, found {config.preset!r}.")
  for key, value in (("init", config.init),
                     ("demonstrations.imitator", config.demonstrations.imitator)):
    if config.agent and value == PRETRAINED:
      raise SettingsError(f"config key 'agent' must be '' if {key!r} is {PRETRAINED!r}, found "
                          f"{config.agent!r}: the included weights are of the preset.")
  for key in ("matchmaking", "race_matchmaking"):
    if config.actor[key] not in matchmaking.WEIGHTINGS:
      raise SettingsError(f"config key 'actor.{key}' must be one of "
                          f"{', '.join(matchmaking.WEIGHTINGS)}, found {config.actor[key]!r}.")
  if config.league.matchmaking not in matchmaking.SCHEMES:
    raise SettingsError(f"config key 'league.matchmaking' must be one of "
                        f"{', '.join(matchmaking.SCHEMES)}, found {config.league.matchmaking!r}.")
  for key, value, known in (("offline.method", config.offline.method, OFFLINE_METHODS),
                            ("offline.ratios", config.offline.ratios, RATIOS),
                            ("demonstrations.agent", config.demonstrations.agent,
                             run_files.AGENTS)):
    if value not in known:
      raise SettingsError(
        f"config key {key!r} must be one of {', '.join(known)}, found {value!r}.")
  check_known("actor.pseudo_rewards", split(config.actor.pseudo_rewards), types.PSEUDO_REWARDS)


def save(config: ml_collections.ConfigDict, run_dir: str | os.PathLike) -> None:
  """Writes a run's config into its directory, atomically."""
  path = pathlib.Path(run_dir) / run_files.CONFIG
  with files.replacing(path) as file:
    json.dump(config.to_dict(), file, indent=2)
    file.write("\n")


def load(run_dir: str | os.PathLike) -> ml_collections.ConfigDict:
  """Returns the config of a run's directory.

  Raises:
    SettingsError: there is no config, or an invalid one; names the file.
  """
  path = pathlib.Path(run_dir) / run_files.CONFIG
  if not path.exists():
    raise SettingsError(f"{path} does not exist; expected the config of a run there. "
                        f"`python -m starleague.experiments.train` starts one.")
  try:
    values = json.loads(path.read_text(encoding="utf-8"))
  except OSError as error:
    raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
  except RecursionError as error:
    raise SettingsError(f"{path} is nested too deeply; expected the config of a run.") from error
  except ValueError as error:
    raise SettingsError(f"{path} is not JSON: {error}.") from error
  if not isinstance(values, dict):
    raise SettingsError(f"{path} holds a {type(values).__name__}, expected an object of keys.")
  try:
    return complete(values)
  except SettingsError as error:
    raise SettingsError(f"{path}: {error}") from error


def differences(one: ml_collections.ConfigDict, other: ml_collections.ConfigDict,
                ignored: Sequence[str] = ()) -> list[tuple[str, Any, Any]]:
  """Returns the keys whose values differ: (key, value in one, value in other)."""
  left, right = flat(one.to_dict()), flat(other.to_dict())
  return [(key, left[key], right[key]) for key in sorted(left)
          if key not in ignored and left[key] != right[key]]


def flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
  """Returns nested values by key, dots between groups; `path` is the prefix of all keys."""
  found: dict[str, Any] = {}
  for key, value in values.items():
    found |= flat(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
  return found
