"""The flags of a run's config: `--config FILE`, and `--config.KEY=VALUE` for each key."""

import functools
import inspect
import os
import runpy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_collections
from absl import flags

from starleague.experiments.run.config import descriptions, settings
from starleague.experiments.run.config.entry import one_line
from starleague.experiments.run.games import registry

_DEFINE: dict[type, Callable[..., flags.FlagHolder]] = {
  bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float,
  str: flags.DEFINE_string}


class ConfigFlags(NamedTuple):
  """The flags of a config, defined by `define`."""

  path: flags.FlagHolder[str]
  overrides: Mapping[str, flags.FlagHolder]  # by key, dots between groups

  def value(self) -> ml_collections.ConfigDict:
    """Returns the config that the flags select.

    Raises:
      SettingsError: the file cannot be used, or a value is invalid.
    """
    chosen = self.chosen()
    return settings.complete(
      self.load(chosen.get("init"), chosen.get("environment.name")), chosen)

  def chosen(self) -> dict[str, Any]:
    """Returns the values of the flags that are given, by key."""
    return {key: flag.value for key, flag in self.overrides.items() if flag.value is not None}

  def load(self, init: str | None, environment: str | None = None) -> dict[str, Any]:
    """Returns the values of the config file; see `load_file`."""
    return load_file(self.path.value, init, environment)


@functools.cache  # launch files may import one another
def define(path: str | os.PathLike) -> ConfigFlags:
  """Defines `--config` and a flag for each config key.

  Args:
    path: the default config file.
  """
  config = flags.DEFINE_string(
    "config", str(path), "Config file: Python with a function get_config().")
  values = settings.flat(settings.base())
  overrides = {
    key: _DEFINE[type(value)](f"config.{key}", None, _help(key, value))
    for key, value in values.items()}
  for name in ("config", *(f"config.{key}" for key in overrides)):
    flags.declare_key_flag(name)
  return ConfigFlags(config, overrides)


def _help(key: str, value: Any) -> str:
  """Returns the help of a config key: its meaning, its value in mini, and its valid values."""
  meaning = descriptions.descriptions().get(key, "").rstrip(".")
  valid = settings.all_ranges().get(key)
  return (f"{meaning[:1].upper()}{meaning[1:]}. In mini: {value!r}"
          f"{'' if valid is None else f', {valid}'}.")


def load_file(path: str | os.PathLike, init: str | None = None,
              game: str | None = None) -> dict[str, Any]:
  """Returns the values of a config file.

  Args:
    path: a Python file with a function `get_config()` that returns a ConfigDict. If the function
      has a parameter `init`, its values may depend on the run's initial weights.
    init: the value of the config key `init`; None: the game's, or else the file's.
    game: the value of the config key `environment.name`, which changes some values; None: the
      file's, whose values are not changed.

  Raises:
    SettingsError: it is no such file, or it raises.
  """
  where = f"config file {str(path)!r}"
  entry = None if game is None else registry.find(game)
  init = init or (entry and entry.default_init)
  if not os.path.isfile(path):
    found = "a directory" if os.path.isdir(path) else "no such file"
    raise settings.SettingsError(f"{where}: {found}; expected a Python file with get_config().")
  if not str(path).endswith(".py"):
    raise settings.SettingsError(f"{where}: expected a Python file, with the suffix .py.")
  try:
    get_config = runpy.run_path(str(path)).get("get_config")
  except (Exception, SystemExit) as error:  # the file may raise anything
    raise settings.SettingsError(f"{where}: {type(error).__name__}: {one_line(error)}") from error
  if not callable(get_config):
    raise settings.SettingsError(f"{where}: expected a function get_config(), found none.")
  try:
    takes_init = "init" in inspect.signature(get_config).parameters and init is not None
    config = get_config(init=init) if takes_init else get_config()
  except (Exception, SystemExit) as error:
    raise settings.SettingsError(
      f"{where}: get_config() raised {type(error).__name__}: {one_line(error)}") from error
  if not isinstance(config, ml_collections.ConfigDict):
    raise settings.SettingsError(
      f"{where}: get_config() must return a ConfigDict, found {type(config).__name__}.")
  try:
    values = config.to_dict()
  except Exception as error:  # references between keys may fail to resolve
    raise settings.SettingsError(f"{where}: {type(error).__name__}: {one_line(error)}") from error
  group = values.get("environment")
  named = group.get("name") if isinstance(group, Mapping) else None
  if entry is not None and named != entry.name:
    _update(values, entry.changes)
  return values


def _update(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
  """Changes nested values; one in the place of a group stays, as `settings.complete` refuses it."""
  for key, value in changes.items():
    if not isinstance(value, Mapping):
      values[key] = value
    elif isinstance(group := values.setdefault(key, {}), dict):
      _update(group, value)
