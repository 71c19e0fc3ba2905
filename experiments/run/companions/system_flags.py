"""The flags of a companion system's run: `--set.KEY=VALUE`, made from its dataclasses.

The keys of `RunOptions` have no prefix; those of a system's config have its name: `set.steps`,
`set.impala.correction`.
"""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from absl import flags

from starleague.common.errors import UserError
from starleague.companions import registry
from starleague.companions.options import RunOptions

_DEFINE: dict[Any, Callable[..., flags.FlagHolder]] = {
  bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float,
  str: flags.DEFINE_string}


class Chosen(NamedTuple):
  """A run as the flags describe it."""

  entry: registry.Entry
  options: RunOptions
  config: Any  # of the system


class SystemFlags(NamedTuple):
  """The flags of all systems, defined by `define`."""

  overrides: Mapping[str, flags.FlagHolder]  # by key

  def value(self, name: str) -> Chosen:
    """Returns the run of a system.

    Raises:
      UserError: the system does not exist, a key belongs to another system, or a value is invalid.
    """
    return choose(registry.find(name), self.given())

  def given(self) -> dict[str, Any]:
    """Returns the values of the command line, by key."""
    return {key: flag.value for key, flag in self.overrides.items() if flag.value is not None}


def choose(entry: registry.Entry, given: Mapping[str, Any]) -> Chosen:
  """Returns the run of a system with some values changed.

  Args:
    entry: of the system.
    given: values by key, dots between groups.

  Raises:
    UserError: a key is unknown or belongs to another system, or a value is invalid.
  """
  prefix = f"{entry.name}."
  for key in given:
    group, _, name = key.rpartition(".")
    owner = RunOptions if not group else entry.config if group == entry.name else None
    if owner is None or name not in {field.name for field in dataclasses.fields(owner)}:
      raise UserError(f"config key {key!r} is no key of the system {entry.name!r}; "
                      f"--set.{prefix}KEY and keys without a group are")
  options = {key: value for key, value in given.items() if "." not in key}
  config = {key.removeprefix(prefix): value for key, value in given.items() if "." in key}
  return Chosen(entry, RunOptions(**{**entry.options, **options}), entry.config(**config))


@functools.cache
def define() -> SystemFlags:
  """Defines the flags of all systems."""
  overrides = {}
  for group, owner in [("", RunOptions)] + [
      (f"{name}.", entry.config) for name, entry in registry.systems().items()]:
    texts = described(owner)
    for field in dataclasses.fields(owner):
      default = "" if field.default is dataclasses.MISSING else f" Default: {field.default!r}."
      flag = f"set.{group}{field.name}"
      overrides[f"{group}{field.name}"] = _DEFINE[field.type](
        flag, None, f"{texts[field.name]}{default}")
      flags.declare_key_flag(flag)
  return SystemFlags(overrides)


def described(owner: type) -> dict[str, str]:
  """Returns the texts of a dataclass's fields, from the sections "Attributes" of its docstrings.

  A class that extends another one describes its own fields only.
  """
  found: dict[str, str] = {}
  for each in reversed(owner.__mro__):
    # Since Python 3.13 the compiler removes the indentation of docstrings, as `cleandoc` does.
    section = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^  (\w+): (.*(?:\n    .*)*)", section, re.MULTILINE)
    found |= {name: " ".join(text.split()) for name, text in entries}
  return found
