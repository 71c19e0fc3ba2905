"""The players and the setting of a game that a user watches or plays."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.errors import UserError
from starleague.environments import base
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment, replay_format, replays
from starleague.environments.skirmish.rules import tiers
from starleague.environments.skirmish.rules.config import GAME_CONFIGS, GameConfig
from starleague.experiments.run import settings, wiring
from starleague.learner import checkpoints

AGENT = "agent"  # the name of the run's newest weights
_TIERS = ("default", "mini", "large")  # in order of preference


class Setting(NamedTuple):
  """The beginning of a game."""

  game: GameConfig
  match_up: base.MatchUp
  seed: int


def _tier(names: Sequence[str], tier: str | None) -> str:
  """Returns the given tier, or the first one that has a scripted player of `names`."""
  if tier is not None:
    if tier not in tiers.TIERS:
      raise UserError(f"tier {tier!r} does not exist; expected one of {', '.join(tiers.TIERS)}")
    return tier
  for name in names:
    for candidate in _TIERS:
      if name in scripts.names_of(candidate):
        return candidate
  return _TIERS[0]


def choose(names: Sequence[str], *, run_dir: str | os.PathLike[str] | None = None,
           tier: str | None = None) -> tuple[GameConfig, list[replays.Controller]]:
  """Returns the controllers of the named players, and the sizes of their game.

  Args:
    names: scripted players, or AGENT.
    run_dir: the run whose agent plays.
    tier: of the game. Default: the run's, or the first one that has the players.

  Raises:
    UserError: a name that does not exist, players of different tiers, or a run that cannot be read.
  """
  if AGENT not in names:
    if run_dir is not None:
      raise UserError(f"--run_dir is given, but none of {' '.join(names)} is '{AGENT}'")
    game = GAME_CONFIGS[_tier(names, tier)]
    _require_players(names, game.tier)
    return game, [replays.scripted_player(name, game) for name in names]
  if run_dir is None:
    raise UserError(f"'{AGENT}' is the newest weights of a run: name the run with --run_dir")
  run_dir = pathlib.Path(run_dir)
  config = settings.load(run_dir)
  if tier not in (None, config.environment.tier):
    raise UserError(f"--tier is {tier}, but {run_dir} plays at {config.environment.tier}")
  _require_players(names, config.environment.tier)
  parts = wiring.make_parts(config)
  params = checkpoints.load_params(run_dir / wiring.CHECKPOINTS, parts.config)
  agent = replays.policy_player(
    f"agent {run_dir.resolve().name}", parts.policy, params, parts.game, parts.mmr)
  return parts.game, [agent if name == AGENT else replays.scripted_player(name, parts.game)
                      for name in names]


def _require_players(names: Sequence[str], tier: str) -> None:
  try:
    scripts.check_names(names, tier, (*scripts.names_of(tier), AGENT))
  except ValueError as error:
    raise UserError(str(error)) from error


def make_setting(game: GameConfig, seed: int, races: Sequence[str], map_name: str,
                 swap_sides: bool) -> Setting:
  """Returns the beginning of a game; "random" races and maps are drawn from the seed.

  Raises:
    UserError: a race or map that the tier does not have, or a seed outside 0..2^31 - 1.
  """
  try:
    replay_format.check_seed(seed)
    match_up = dm_environment.draw_match_up(
      np.random.default_rng(seed), game.tier, races, map_name, swap_sides)
  except ValueError as error:
    raise UserError(str(error)) from error
  return Setting(game, match_up, seed)


def play(names: tuple[str, str], *, seed: int, races: Sequence[str], map_name: str,
         swap_sides: bool = False, run_dir: str | None = None,
         tier: str | None = None) -> replays.Replay:
  """Plays a game of two named players; see `choose` and `make_setting`."""
  game, players = choose(names, run_dir=run_dir, tier=tier)
  setting = make_setting(game, seed, races, map_name, swap_sides)
  return replays.record((players[0], players[1]), setting.seed, game=game,
                        match_up=setting.match_up)


def require_folder(flag: str, path: str | None) -> None:
  """Refuses an output path whose folder does not exist, before the game is played.

  Raises:
    UserError: names the flag and the folder.
  """
  if path is not None and not pathlib.Path(path).parent.is_dir():
    raise UserError(f"--{flag}: folder {pathlib.Path(path).parent} does not exist")
