"""Skirmish for other libraries: Gymnasium and PettingZoo (the extra `adapters`), and `pure`."""

import contextlib
from collections.abc import Iterator
from typing import Any

from starleague.common.errors import UserError

__all__ = ["MissingPackageError", "make_gymnasium", "make_pettingzoo"]


class MissingPackageError(UserError, ImportError):
  """The package of an adapter is not installed; the message has the command."""


@contextlib.contextmanager
def _needed_by(maker: str) -> Iterator[None]:
  """Turns the import error of another project's package into one line."""
  try:
    yield
  except ModuleNotFoundError as error:
    package = (error.name or "").partition(".")[0]
    if package in ("", "starleague"):
      raise
    raise MissingPackageError(
      f"{maker} needs the package {package!r}, which is not installed: "
      "pip install 'starleague[adapters]'", name=package) from error


def make_gymnasium(opponent: Any = "rusher", **options: Any) -> Any:
  """Makes a `gymnasium.Env`: one player against a scripted one, an agent or a function.

  Args:
    opponent: as of `gymnasium.SkirmishEnv`.
    **options: its other arguments.

  Raises:
    MissingPackageError: gymnasium is not installed.
    ValueError: an unknown tier, race, map or player.
  """
  with _needed_by("make_gymnasium"):
    from starleague.environments.skirmish.adapters.gymnasium import SkirmishEnv
  return SkirmishEnv(opponent, **options)


def make_pettingzoo(tier: str = "mini", **options: Any) -> Any:
  """Makes a `pettingzoo.ParallelEnv` of both players.

  Args:
    tier: as of `pettingzoo.SkirmishParallelEnv`.
    **options: its other arguments.

  Raises:
    MissingPackageError: pettingzoo or gymnasium is not installed.
    ValueError: an unknown tier, race or map.
  """
  with _needed_by("make_pettingzoo"):
    from starleague.environments.skirmish.adapters.pettingzoo import SkirmishParallelEnv
  return SkirmishParallelEnv(tier, **options)
