"""Watches a game of Skirmish: one page that plays a replay, or the terminal.

  python -m starleague.experiments.watch game.npz
  python -m starleague.experiments.watch --play rusher builder --seed 3 --save game.npz
  python -m starleague.experiments.watch --play agent rusher --run_dir runs/mini --terminal

The page holds the whole game and needs no network. A replay that does not come out as it was
recorded is refused.
"""

import argparse
import html
import json
import os
import pathlib
import re
import sys
from collections.abc import Sequence

from starleague.actor import files
from starleague.actor.environments.skirmish import players, replays
from starleague.actor.environments.skirmish.replays import Replay
from starleague.actor.environments.skirmish.state import State
from starleague.agent import types
from starleague.experiments import settings, watch_frames, watch_terminal, wiring
from starleague.learner import checkpoints

AGENT = "agent"  # the name that means the run's newest weights


def render_page(replay: Replay, states: State) -> str:
  """The page as HTML. Pure."""
  data = pathlib.Path(__file__).with_name("data")
  game = json.dumps(watch_frames.page_data(replay, states), ensure_ascii=False)
  parts = {
    "TITLE": html.escape(" vs ".join(replay.players)), "HEADER": _header(replay),
    "MAP": (data / "watch_map.js").read_text(encoding="utf-8"),
    "SCRIPT": (data / "watch.js").read_text(encoding="utf-8"),
    # Inside a script element nothing but "</" could end the data.
    "GAME": game.replace("<", "\\u003c")}
  # In one pass: a player's name may itself look like a place.
  return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]],
                (data / "watch.html").read_text(encoding="utf-8"))


def _header(replay: Replay) -> str:
  one, two = (html.escape(name) for name in replay.players)
  match_up = replay.match_up
  races = "-".join(types.RACES[race] for race in match_up.races)
  brief = {"tier": replay.game.tier, "map": str(int(match_up.map_index)), "races": races,
           "seed": str(replay.seed), "steps": str(replay.steps),
           "result": watch_frames.result(replay)}
  spans = " ".join(f"<span><b>{name}</b> {html.escape(value)}</span>"
                  for name, value in brief.items())
  return (f"<header><h1>{one} <span>vs</span> {two}</h1>"
          f"<p class='brief'>{spans}</p></header>")


def write_page(path: str | os.PathLike[str], replay: Replay, states: State) -> pathlib.Path:
  """Writes the page of a replay whose states were played again, at once."""
  path = pathlib.Path(path)
  page = render_page(replay, states)
  with files.replacing(path) as file:
    file.write(page)
  return path


def _competitors(arguments: argparse.Namespace) -> tuple[replays.Game, list[replays.Player]]:
  """Who is to play, and in which environment."""
  if AGENT not in arguments.play:
    if arguments.run_dir is not None:
      raise ValueError(f"--run_dir is given, but nobody of {' '.join(arguments.play)} is '{AGENT}'")
    return replays.DEFAULT_GAME, [replays.scripted_player(name) for name in arguments.play]
  if arguments.run_dir is None:
    raise ValueError(f"'{AGENT}' is the newest weights of a run: name it with --run_dir")
  run_dir = pathlib.Path(arguments.run_dir)
  config = settings.load(run_dir)
  parts = wiring.make_parts(config)
  game = replays.Game(
    config.environment.tier, *(getattr(parts.config, size) for size in replays.Game._fields[1:]))
  params = checkpoints.load_params(run_dir / wiring.CHECKPOINTS, parts.config)
  agent = replays.policy_player(f"agent {run_dir.resolve().name}", parts.policy, params, game)
  return game, [agent if name == AGENT else replays.scripted_player(name, game)
                for name in arguments.play]


def _game(arguments: argparse.Namespace) -> tuple[Replay, State, pathlib.Path]:
  """The game asked for, its states, and where its page goes if nothing else is said."""
  if arguments.play is None:
    path = pathlib.Path(arguments.replay)
    replay = replays.load(path)
    try:
      return replay, replays.resimulate(replay), path.with_suffix(".html")
    except replays.ReplayError as error:
      raise replays.ReplayError(f"{path}: {error}") from error
  known = (*players.SCRIPTED, AGENT)
  for name in arguments.play:
    if name not in known:
      raise ValueError(f"player {name!r} does not exist; expected one of {', '.join(known)}")
  game, competitors = _competitors(arguments)
  replay = replays.record(
    (competitors[0], competitors[1]), arguments.seed, game=game,
    match_up=replays.make_match_up(swap_sides=arguments.swap_sides))
  path = pathlib.Path(f"{'-'.join(arguments.play)}-{arguments.seed}")
  if arguments.save is not None:
    path = replays.save(arguments.save, replay)
    print(f"replay={path} kilobytes={path.stat().st_size / 1000:.1f} steps={replay.steps}",
          flush=True)
  return replay, replays.resimulate(replay), path.with_suffix(".html")


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="python -m starleague.experiments.watch",
    description="Shows a game of Skirmish, from a replay or played for it.")
  parser.add_argument("replay", nargs="?", help="a replay, as game.npz")
  parser.add_argument("--play", nargs=2, metavar=("ONE", "TWO"),
                      help=f"play a game first: {', '.join(players.SCRIPTED)}, {AGENT}")
  parser.add_argument("--seed", type=int, default=0, help="of the game to play")
  parser.add_argument("--swap_sides", action="store_true", help="player 1 starts where player 2 does")
  parser.add_argument("--run_dir", help=f"the run whose newest weights '{AGENT}' is, as runs/mini")
  parser.add_argument("--save", help="where the played game's replay goes")
  parser.add_argument("--output", help="where the page goes; beside the replay if not given")
  parser.add_argument("--terminal", action="store_true", help="show it here, as text")
  parser.add_argument("--speed", type=float, default=4.0, help="of --terminal, times real time")
  parser.add_argument("--view", type=int, choices=(0, 1, 2), default=0,
                      help="of --terminal: what player 1 or 2 sees; 0: everything")
  return parser


def main(argv: Sequence[str] | None = None) -> None:
  """Entry point."""
  parser = _parser()
  arguments = parser.parse_args(argv)
  if (arguments.replay is None) == (arguments.play is None):
    parser.error("name a replay, or two players with --play")
  if arguments.save is not None and arguments.play is None:
    parser.error("--save is for a game that is played: use it with --play")
  if not arguments.speed > 0:
    parser.error(f"--speed must be above 0, found {arguments.speed}")
  try:
    replay, states, default = _game(arguments)
    if arguments.output is not None or not arguments.terminal:
      path = write_page(arguments.output or default, replay, states)
      print(f"page={path} kilobytes={path.stat().st_size / 1000:.1f} "
            f"result={watch_frames.result(replay)!r}", flush=True)
    if arguments.terminal:
      watch_terminal.play(replay, states, speed=arguments.speed, view=arguments.view)
  except (OSError, ValueError, checkpoints.CheckpointDamagedError,
          checkpoints.CheckpointMismatchError) as error:
    sys.exit(f"watch: {error}")


if __name__ == "__main__":
  main()
