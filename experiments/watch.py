"""Watches a game of Skirmish: one page that plays a replay, or the terminal.

  python -m starleague.experiments.watch game.npz
  python -m starleague.experiments.watch --play L7 macro --races protoss,zerg --map ramps --seed 3
  python -m starleague.experiments.watch --play agent rusher --run_dir runs/mini --terminal
  python -m starleague.experiments.watch game.npz --gif game.gif

The page holds the whole game and needs no network. A replay that does not come out as it was
recorded is refused.
"""

import pathlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from absl import app, flags

from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state import State
from starleague.experiments.run import competitors
from starleague.experiments.run import flags as run_flags
from starleague.experiments.run.competitors import AGENT
from starleague.learner import checkpoints
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import gif as watch_gif
from starleague.viewers.watch import page as watch_page
from starleague.viewers.watch import terminal as watch_terminal

for _name in ("run_dir", "seed", "tier", "races", "map"):
  flags.declare_key_flag(_name)
_PLAY = flags.DEFINE_bool(
  "play", False, "Play a game first: the two arguments are the players, scripted ones as L7 or "
  f"macro, or {AGENT} (the newest weights of --run_dir). Without it the one argument is a replay, "
  "as game.npz.")
_SWAP_SIDES = flags.DEFINE_bool("swap_sides", False, "Player 1 starts where player 2 does.")
_SAVE = flags.DEFINE_string("save", None, "Where the played game's replay goes.")
_OUTPUT = flags.DEFINE_string("output", None, "Where the page goes; beside the replay if not given.")
_GIF = flags.DEFINE_string("gif", None, "Make a moving picture of the game, as game.gif.")
_GIF_VIEW = flags.DEFINE_integer(
  "gif_view", 0, "Of --gif: what player 1 or 2 sees; 0: everything.", lower_bound=0, upper_bound=2)
_TERMINAL = flags.DEFINE_bool("terminal", False, "Show it here, as text.")
_SPEED = flags.DEFINE_float("speed", 4.0, "Of --terminal, times real time.")
_VIEW = flags.DEFINE_integer(
  "view", 0, "Of --terminal: what player 1 or 2 sees; 0: everything.", lower_bound=0, upper_bound=2)


class Options(NamedTuple):
  """What is to be shown."""

  replay: str | None = None  # a file, or
  play: tuple[str, str] | None = None  # two players who are to play first
  seed: int = 0
  swap_sides: bool = False
  run_dir: str | None = None
  save: str | None = None
  tier: str | None = None
  races: tuple[str, ...] = ("random", "random")
  map_name: str = "random"


def _game(options: Options) -> tuple[Replay, State, pathlib.Path]:
  """The game asked for, its states, and where its page goes if nothing else is said."""
  if options.play is None:
    path = pathlib.Path(options.replay or "")
    replay = replays.load(path)
    try:
      return replay, replays.resimulate(replay), path.with_suffix(".html")
    except replays.ReplayError as error:
      raise replays.ReplayError(f"{path}: {error}") from error
  game, players = competitors.choose(options.play, run_dir=options.run_dir, tier=options.tier)
  setting = competitors.make_setting(
    game, options.seed, options.races, options.map_name, options.swap_sides)
  replay = replays.record((players[0], players[1]), setting.seed, game=game,
                          match_up=setting.match_up)
  path = pathlib.Path(f"{'-'.join(options.play)}-{options.seed}")
  if options.save is not None:
    path = replays.save(options.save, replay)
    print(f"replay={path} kilobytes={path.stat().st_size / 1000:.1f} steps={replay.steps}",
          flush=True)
  return replay, replays.resimulate(replay), path.with_suffix(".html")


def _options(arguments: Sequence[str]) -> Options:
  """What the flags and the other arguments ask for."""
  if len(arguments) != (2 if _PLAY.value else 1):
    raise app.UsageError("name a replay, or two players with --play")
  if _SAVE.value is not None and not _PLAY.value:
    raise app.UsageError("--save is for a game that is played: use it with --play")
  if not _SPEED.value > 0:
    raise app.UsageError(f"--speed must be above 0, found {_SPEED.value}")
  if not _PLAY.value:
    return Options(replay=arguments[0])
  return Options(None, (arguments[0], arguments[1]), run_flags.SEED.value, _SWAP_SIDES.value,
                 run_flags.RUN_DIR.value, _SAVE.value, run_flags.TIER.value,
                 tuple(run_flags.RACES.value), run_flags.MAP.value)


def main(argv: Sequence[str]) -> None:
  """Entry point: what is no flag is a replay, or two players."""
  options = _options(argv[1:])
  try:
    replay, states, default = _game(options)
    if _GIF.value is not None:
      path = watch_gif.write(_GIF.value, replay, states, view=_GIF_VIEW.value)
      print(f"gif={path} kilobytes={path.stat().st_size / 1000:.1f}", flush=True)
    if _OUTPUT.value is not None or not (_TERMINAL.value or _GIF.value):
      path = watch_page.write_page(_OUTPUT.value or default, replay, states)
      print(f"page={path} kilobytes={path.stat().st_size / 1000:.1f} "
            f"result={watch_frames.result(replay)!r}", flush=True)
    if _TERMINAL.value:
      watch_terminal.play(replay, states, speed=_SPEED.value, view=_VIEW.value)
  except (OSError, ValueError, checkpoints.CheckpointDamagedError,
          checkpoints.CheckpointMismatchError) as error:
    sys.exit(f"watch: {error}")


if __name__ == "__main__":
  app.run(main)
