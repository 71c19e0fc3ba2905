"""Shows a game of Skirmish: a replay, or a game played for the purpose.

  python -m starleague.experiments.watch game.npz
  python -m starleague.experiments.watch --play L7 macro --races protoss,zerg --map ramps --seed 3
  python -m starleague.experiments.watch --play agent rusher --run_dir runs/mini --terminal
  python -m starleague.experiments.watch game.npz --gif game.gif

Writes a page that holds the whole game and needs no network, or a GIF, or plays the game as text on
the terminal. A replay whose states differ from the recorded hashes is refused.
"""

import pathlib

from absl import flags

from starleague.common.errors import UserError
from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.rules.state.state import State
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.play import choose_players
from starleague.viewers.watch import gif, page, summary, terminal

ARGUMENTS = [("REPLAY",), ("PLAYER_1", "PLAYER_2")]

for _name in ("run_dir", "seed", "tier", "races", "map", "z", "predictions"):
  flags.declare_key_flag(_name)
_PLAY = flags.DEFINE_bool(
  "play", False, "Play a game first. The two arguments are then the players: scripted ones such as "
  f"L7 or macro, {choose_players.PRETRAINED} (the pretrained weights of the tier), "
  f"{choose_players.AGENT} (the newest weights of --run_dir), or a player of its league, such as "
  "zerg-main-0. Without it the argument is a replay, such as game.npz.")
_SWAP_SIDES = flags.DEFINE_bool("swap_sides", False, "Swaps the players' starting positions.")
_SAVE = flags.DEFINE_string("save", None, "Path for the replay of the played game.")
_OUTPUT = flags.DEFINE_string("output", None, "Path for the page. Default: beside the replay.")
_GIF = flags.DEFINE_string("gif", None, "Path for a GIF of the game, such as game.gif.")
_GIF_VIEW = flags.DEFINE_integer(
  "gif_view", 0, "View of --gif: 1 or 2 for that player's, 0 for the whole map.", lower_bound=0,
  upper_bound=2)
_TERMINAL = flags.DEFINE_bool("terminal", False, "Plays the game as text on the terminal.")
_SPEED = flags.DEFINE_float("speed", 4.0, "Factor of real time of --terminal, 0.01 to 1000.")
flags.register_validator(_SPEED, lambda value: 0.01 <= value <= 1000, "expected 0.01 to 1000")
_VIEW = flags.DEFINE_integer(
  "view", 0, "View of --terminal, as --gif_view.", lower_bound=0, upper_bound=2)


def _load(path: pathlib.Path) -> tuple[replays.Replay, State]:
  """Loads a replay and computes its states; refuses flags of a played game."""
  own = (run_flags.RACES, run_flags.MAP, run_flags.TIER, run_flags.RUN_DIR, run_flags.SEED,
         run_flags.Z, run_flags.PREDICTIONS, _SAVE, _SWAP_SIDES)
  run_flags.only_with(_PLAY, *own, because=f": {path} is a recorded game")
  replay = replays.load(path)
  try:
    return replay, replays.resimulate(replay)
  except replays.ReplayError as error:
    raise UserError(f"{path}: {error}") from error


def _play(names: tuple[str, str]) -> tuple[replays.Replay, State]:
  """Plays the game that the flags describe, and saves it with --save."""
  replay = choose_players.play(
    names, seed=run_flags.SEED.value, run_dir=run_flags.RUN_DIR.value, tier=run_flags.TIER.value,
    races=run_flags.RACES.value, map_name=run_flags.MAP.value, swap_sides=_SWAP_SIDES.value,
    library=run_flags.Z.value, predictions=run_flags.PREDICTIONS.value)
  if _SAVE.value is not None:
    path = replays.save(_SAVE.value, replay)
    print(f"replay={path} kilobytes={path.stat().st_size / 1000:.1f} steps={replay.steps}",
          flush=True)
  return replay, replays.resimulate(replay)


def main(*names: str) -> None:
  """Shows a replay (one name) or a game of two players (two names)."""
  if len(names) != (2 if _PLAY.value else 1):
    found = " ".join(names) + (" with --play" if _PLAY.value else "")
    raise UserError(f"expected a replay, or --play and two players; found {found}")
  run_flags.only_with(_GIF, _GIF_VIEW)
  run_flags.only_with(_TERMINAL, _SPEED, _VIEW)
  for flag in (_SAVE, _OUTPUT, _GIF):
    run_flags.require_file(flag.name, flag.value)
  if _PLAY.value:
    replay, states = _play((names[0], names[1]))
    default = _SAVE.value or f"{'-'.join(names)}-{run_flags.SEED.value}"
  else:
    (replay, states), default = _load(pathlib.Path(names[0])), names[0]
  if _GIF.value is not None:
    path = gif.write(_GIF.value, replay, states, view=_GIF_VIEW.value)
    print(f"gif={path} kilobytes={path.stat().st_size / 1000:.1f}", flush=True)
  if _OUTPUT.value is not None or not (_TERMINAL.value or _GIF.value):
    path = page.write_page(_OUTPUT.value or pathlib.Path(default).with_suffix(".html"), replay,
                           states)
    print(f"page={path} kilobytes={path.stat().st_size / 1000:.1f} "
          f"result={summary.result(replay)!r}", flush=True)
  if _TERMINAL.value:
    terminal.play(replay, states, speed=_SPEED.value, view=_VIEW.value)


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
