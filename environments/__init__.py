"""Games behind the two-player protocol of `base`."""

from collections.abc import Callable
from typing import Any

from starleague.environments.base import Environment

__all__ = ["make_environment"]


def _make_skirmish(**sizes: Any) -> Environment:
  from starleague.environments.skirmish.rules.environment import make_skirmish
  return make_skirmish(**sizes)


def _make_sc2(**options: Any) -> Environment:
  from starleague.environments.sc2.environment import GameHost
  return GameHost(**options).environment()


_MAKERS: dict[str, Callable[..., Environment]] = {"skirmish": _make_skirmish, "sc2": _make_sc2}


def make_environment(name: str, **sizes: Any) -> Environment:
  """Makes an environment by name; its package is imported at the first call.

  Args:
    name: "skirmish", or "sc2": StarCraft II, whose functions are not pure: see
      `sc2.environment`.
    **sizes: the arguments of its maker; for "skirmish", those of `skirmish.make_skirmish`, for
      "sc2" those of `sc2.environment.GameHost`.

  Raises:
    ValueError: an unknown name, or sizes that the maker rejects.
    TypeError: an argument that the maker does not have.
  """
  if name not in _MAKERS:
    raise ValueError(f"unknown environment {name!r}: choose one of {sorted(_MAKERS)}")
  return _MAKERS[name](**sizes)
