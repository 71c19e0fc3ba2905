"""Who can play a game that somebody wants to see: scripted players, and the agent of a run."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.environments import base
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment, replays
from starleague.environments.skirmish.rules import tiers
from starleague.environments.skirmish.rules.config import GAME_CONFIGS, GameConfig
from starleague.experiments.run import settings, wiring
from starleague.learner import checkpoints

AGENT = "agent"  # the name that means the run's newest weights


class Setting(NamedTuple):
  """Where a game takes place, and about what."""

  game: GameConfig
  match_up: base.MatchUp
  seed: int


def _tier(names: Sequence[str], tier: str | None) -> str:
  """The tier asked for, or the first one that has a scripted player of the first name."""
  if tier is not None:
    if tier not in tiers.TIERS:
      raise ValueError(f"tier {tier!r} does not exist; expected one of {', '.join(tiers.TIERS)}")
    return tier
  for name in names:
    for candidate in ("default", "mini", "large"):
      if name in scripts.names_of(candidate):
        return candidate
  return "default"


def choose(names: Sequence[str], *, run_dir: str | os.PathLike[str] | None = None,
           tier: str | None = None) -> tuple[GameConfig, list[replays.Controller]]:
  """Players by name, and the sizes of their game.

  Args:
    names: scripted players, or AGENT.
    run_dir: the run whose agent plays.
    tier: that of the game; None: the run's, or one that has the players.

  Raises:
    ValueError: names that do not exist or do not go together.
    OSError: the run cannot be read.
    SettingsError: the run's settings cannot.
  """
  if AGENT not in names:
    if run_dir is not None:
      raise ValueError(f"--run_dir is given, but nobody of {' '.join(names)} is '{AGENT}'")
    game = GAME_CONFIGS[_tier(names, tier)]
    _check(names, game.tier)
    return game, [replays.scripted_player(name, game) for name in names]
  if run_dir is None:
    raise ValueError(f"'{AGENT}' is the newest weights of a run: name it with --run_dir")
  run_dir = pathlib.Path(run_dir)
  config = settings.load(run_dir)
  if tier not in (None, config.environment.tier):
    raise ValueError(f"--tier is {tier}, but {run_dir} plays at {config.environment.tier}")
  _check(names, config.environment.tier)
  parts = wiring.make_parts(config)
  game = parts.game
  params = checkpoints.load_params(run_dir / wiring.CHECKPOINTS, parts.config)
  agent = replays.policy_player(f"agent {run_dir.resolve().name}", parts.policy, params, game)
  return game, [agent if name == AGENT else replays.scripted_player(name, game) for name in names]


def _check(names: Sequence[str], tier: str) -> None:
  known = (*scripts.names_of(tier), AGENT)
  for name in names:
    if name not in known:
      raise ValueError(f"player {name!r} does not exist in tier {tier}; expected one of "
                       f"{', '.join(known)}")


def make_setting(game: GameConfig, seed: int, races: Sequence[str], map_name: str,
                 swap_sides: bool) -> Setting:
  """A game's beginning: what is "random" is drawn from the seed.

  Raises:
    ValueError: a name that does not exist, or a seed out of range.
  """
  if not 0 <= seed < 2 ** 31:
    raise ValueError(f"seed must be in 0..{2 ** 31 - 1}, found {seed}")
  match_up = dm_environment.draw_match_up(
    np.random.default_rng(seed), game.tier, races, map_name, swap_sides)
  return Setting(game, match_up, seed)
