"""The players and the setting of a game that a user watches or plays."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import make_policy, pretrained, types
from starleague.common.errors import UserError
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.environments import base
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment, replay_format, replays
from starleague.environments.skirmish.rules.tables import tiers
from starleague.environments.skirmish.rules.tables.tables import (
  GAME_CONFIGS,
  GameConfig,
  game_config,
)
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry, skirmish
from starleague.experiments.run.parts import saved_agents

AGENT = "agent"  # the name of the run's newest weights; of a league, the first main agent's
PRETRAINED = "pretrained"  # the name of the pretrained weights of the game's tier
_SMALLEST_FIRST = ("mini", "small", "full")  # presets
_TIERS = ("default", "mini", "large")  # in order of preference


class Setting(NamedTuple):
  """The beginning of a game."""

  game: GameConfig
  match_up: base.MatchUp
  seed: int


def _tier(names: Sequence[str], tier: str | None) -> str:
  """Returns the given tier, or the first one that has a player of `names`."""
  if tier is not None:
    if tier not in tiers.TIERS:
      raise UserError(f"tier {tier!r} does not exist; expected one of {', '.join(tiers.TIERS)}")
    return tier
  trained = _pretrained_presets()
  for name in sorted(names, key=lambda name: name == PRETRAINED):  # scripted ones decide first
    for candidate in _TIERS:
      if name in scripts.names_of(candidate) or (name == PRETRAINED and candidate in trained):
        return candidate
  return _TIERS[0]


def _pretrained_presets() -> dict[str, list[str]]:
  """Returns the presets of the pretrained weights of each tier that has some, smallest first."""
  found: dict[str, list[str]] = {}
  for name in sorted(pretrained.names(), key=_SMALLEST_FIRST.index):
    found.setdefault(pretrained.load_origin(name).tier, []).append(name)
  return found


def choose(names: Sequence[str], *, run_dir: str | os.PathLike[str] | None = None,
           tier: str | None = None) -> tuple[GameConfig, list[replays.Controller]]:
  """Returns the controllers of the named players, and the sizes of their game.

  Args:
    names: scripted players, AGENT, PRETRAINED, or players of the run's league.
    run_dir: the run whose agents play.
    tier: of the game. Default: the run's, or the first one that has the players.

  Raises:
    UserError: a name that does not exist, players of different tiers, a run that cannot be read, or
      a tier without pretrained weights.
  """
  agents: dict[str, replays.Controller] = {}
  if run_dir is None and AGENT in names:
    raise UserError(f"'{AGENT}' is the newest weights of a run: name the run with --run_dir")
  if run_dir is not None:
    game, agents = _agents_of(pathlib.Path(run_dir), names, tier)
  else:
    tier = _tier(names, tier)
    _require_players(names, tier)
    game = GAME_CONFIGS[tier]
  if PRETRAINED in names:
    game, agents[PRETRAINED] = _pretrained_of(game, of_run=run_dir is not None)
  return game, [agents.get(name) or replays.scripted_player(name, game) for name in names]


def own_races(names: Sequence[str], races: Sequence[str],
              run_dir: str | os.PathLike[str] | None) -> list[str]:
  """Returns the races of a game: a league's agents play their own where "random" is given.

  Args:
    names: of the players, in the order of `races`; those that are not of the run keep what is
      given.
    races: names, or "random".
    run_dir: the run whose agents play.
  """
  if run_dir is None or len(races) != len(names):
    return list(races)
  own = {name: name for name in _of_league(names, run_dir)}
  if (main := saved_agents.main_agent(pathlib.Path(run_dir))) is not None:
    own[AGENT] = main
  return [types.RACES[saved_agents.race_of(own[name])]
          if name in own and race == dm_environment.RANDOM else race
          for name, race in zip(names, races, strict=True)]


def _of_league(names: Sequence[str], run_dir: str | os.PathLike[str] | None) -> list[str]:
  """Returns those of some names that are agents of the run's league."""
  if run_dir is None:
    return []
  path = pathlib.Path(run_dir)
  return sorted(set(names) & {*saved_agents.learners(path), *saved_agents.snapshots(path)})


def require_agent(names: Sequence[str], run_dir: str | os.PathLike[str] | None) -> None:
  """Raises UserError if a run is given, but none of the players is its agent."""
  if run_dir is not None and AGENT not in names:
    raise UserError(f"--run_dir is given, but none of {' '.join(names)} is '{AGENT}'")


def _agents_of(run_dir: pathlib.Path, names: Sequence[str],
               tier: str | None) -> tuple[GameConfig, dict[str, replays.Controller]]:
  """Returns a run's game and the controllers of those of some names that it has weights of."""
  if not (of_league := _of_league(names, run_dir)) and AGENT not in names:
    raise UserError(f"--run_dir is given, but none of {' '.join(names)} is '{AGENT}' or a player "
                    "of its league")
  config = settings.load(run_dir)
  if tier not in (None, config.environment.tier):
    raise UserError(f"--tier is {tier}, but {run_dir} plays at {config.environment.tier}")
  _require_players(names, config.environment.tier, of_league)
  parts = registry.make_playing_parts(config)
  game = skirmish.game_of(parts)

  def controller(shown: str, agent: str) -> replays.Controller:
    params, _ = saved_agents.load(parts, run_dir, agent)
    return replays.policy_player(shown, parts.policy, params, game, parts.mmr)

  found = {name: controller(name, name) for name in of_league}
  if AGENT in names:
    found[AGENT] = controller(f"agent {run_dir.resolve().name}", saved_agents.TRAINED)
  return game, found


def _pretrained_of(game: GameConfig, of_run: bool) -> tuple[GameConfig, replays.Controller]:
  """Returns the game of the smallest pretrained weights of a tier, and their controller.

  Args:
    game: of the tier.
    of_run: whether the weights must play this game, because the agent of a run does.
  """
  presets = _pretrained_presets()
  if game.tier not in presets:
    raise UserError(f"'{PRETRAINED}': tier {game.tier} has no pretrained weights; expected one of "
                    f"{', '.join(sorted(presets)) or '(none)'}")
  games = {name: game_config(game.tier, agent_config.preset(name)) for name in presets[game.tier]}
  name = next((name for name in games if not of_run or games[name] == game), None)
  if name is None:
    raise UserError(f"'{PRETRAINED}': its weights play with "
                    f"{' or '.join(map(str, games.values()))}, the run with {game}")
  weights = pretrained.load_pretrained(name)
  return games[name], replays.policy_player(
    f"pretrained {name}", make_policy(weights.config), weights.params, games[name],
    weights.origin.mmr)


def _require_players(names: Sequence[str], tier: str, of_league: Sequence[str] = ()) -> None:
  try:
    scripts.check_names(names, tier, (*scripts.names_of(tier), AGENT, PRETRAINED, *of_league))
  except ValueError as error:
    raise UserError(str(error)) from error


def make_setting(game: GameConfig, seed: int, races: Sequence[str], map_name: str,
                 swap_sides: bool) -> Setting:
  """Returns the beginning of a game; "random" races and maps are drawn from the seed.

  Raises:
    UserError: other than two races, a race or map that the tier does not have, or a seed outside
      0..2^31 - 1.
  """
  if len(races) != 2:
    raise UserError(f"--races: expected two, found {','.join(races)}")
  try:
    replay_format.check_seed(seed)
    match_up = dm_environment.draw_match_up(
      np.random.default_rng(seed), game.tier, races, map_name, swap_sides)
  except ValueError as error:
    raise UserError(str(error)) from error
  return Setting(game, match_up, seed)


def play(names: tuple[str, str], *, seed: int, races: Sequence[str], map_name: str,
         swap_sides: bool = False, run_dir: str | None = None, tier: str | None = None,
         library: str | None = None, predictions: bool = False) -> replays.Replay:
  """Plays a game of two named players; see `choose`, `make_setting` and `with_z`.

  Args:
    names: of the players.
    seed, map_name, swap_sides: see `make_setting`.
    races: see `make_setting` and `own_races`.
    run_dir, tier: see `choose`.
    library: path of a library of z; None: the players get none.
    predictions: whether the replay holds the predictions of agents.
  """
  game, players = choose(names, run_dir=run_dir, tier=tier)
  setting = make_setting(game, seed, own_races(names, races, run_dir), map_name, swap_sides)
  if library is not None:
    setting = with_z(setting, library)
  return replays.record((players[0], players[1]), setting.seed, game=game,
                        match_up=setting.match_up, predictions=predictions)


def with_z(setting: Setting, path: str) -> Setting:
  """Returns a setting in which each player has the z of a game like it, drawn from the seed.

  Args:
    setting: of a game.
    path: of a library of z, with games of the setting's map, races and sides.

  Raises:
    UserError: the file is no library or is damaged, or has no game of the match-up; names it.
  """
  match_up, random = setting.match_up, np.random.default_rng((setting.seed, 1))
  name = dm_environment.map_names(setting.game.tier)[int(match_up.map_index)]
  home, away = map(int, match_up.races)
  try:
    library = StatisticsLibrary.load(path)
    rows = [random.choice(library.rows(name, *races, player ^ int(match_up.swap_sides)))
            for player, races in enumerate(((home, away), (away, home)))]
  except KeyError as error:
    raise UserError(f"{path}: {error.args[0]}") from error
  z = types.Statistics(*(values[rows] for values in library.z))
  return setting._replace(match_up=match_up._replace(z=z))
