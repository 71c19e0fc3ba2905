"""Plays Skirmish in the browser against a scripted player or the agent of a run.

  python -m starleague.experiments.play_skirmish
  python -m starleague.experiments.play_skirmish --opponent L8 --races zerg,protoss --map river
  python -m starleague.experiments.play_skirmish --opponent agent --run_dir runs/mini

Prints an address on this machine to open in a browser. When the game ends, its replay is saved for
`python -m starleague.experiments.watch`. See docs/play.md.
"""

import itertools
import pathlib
import signal
import threading

from absl import flags

from starleague.agent import types
from starleague.environments.skirmish.games import replays
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.play import choose_players
from starleague.viewers.play import server, session
from starleague.viewers.watch import summary

for _name in ("run_dir", "seed", "tier", "races", "map", "page_port"):
  flags.declare_key_flag(_name)
_OPPONENT = flags.DEFINE_string(
  "opponent", "L5", "Opponent: L0 to L10, a strategy such as macro, "
  f"{choose_players.PRETRAINED} (the pretrained weights of the tier), {choose_players.AGENT} "
  "(the newest weights of --run_dir), or a player of its league. The first of --races is yours.")
_GAME_SPEED = flags.DEFINE_float(
  "game_speed", 1.0, "Speed at the start, a factor of real time, 0.25 to 8.")
flags.register_validator(
  _GAME_SPEED, lambda value: session.SPEEDS[0] <= value <= session.SPEEDS[1],
  f"expected {session.SPEEDS[0]} to {session.SPEEDS[1]}")
_SAVE_REPLAY = flags.DEFINE_string(
  "save_replay", None, "Path for the replay. Default: play-OPPONENT-SEED.npz, or with a "
  "number where a file has that name.")
_DELIVERY_SECONDS = 10.0  # limit of the wait for the page to receive the last frame


def make_session() -> session.Session:
  """Returns the game that the flags describe, ready to begin; see `choose_players` for errors."""
  game, (opponent,) = choose_players.choose(
    (_OPPONENT.value,), run_dir=run_flags.RUN_DIR.value, tier=run_flags.TIER.value)
  races = choose_players.own_races(
    ("you", _OPPONENT.value), run_flags.RACES.value, run_flags.RUN_DIR.value)
  setting = choose_players.make_setting(
    game, run_flags.SEED.value, races, run_flags.MAP.value, swap_sides=False)
  print("compiling: this takes a minute or two", flush=True)
  return session.make_session(
    game, setting.match_up, setting.seed, opponent, speed=_GAME_SPEED.value)


def replay_name() -> str:
  """Returns the path for the replay: --save_replay, or the first name that is not in use."""
  if _SAVE_REPLAY.value is not None:
    return _SAVE_REPLAY.value
  stem = f"play-{_OPPONENT.value}-{run_flags.SEED.value}"
  names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
  return next(f"{name}.npz" for name in names if not pathlib.Path(f"{name}.npz").exists())


def _play(played: session.Session) -> None:
  """Plays to the end; SIGINT and SIGTERM end the game early."""
  numbers = (signal.SIGINT, signal.SIGTERM)
  before = [signal.signal(number, lambda *_: played.leave()) for number in numbers]
  try:
    played.run()
    played.wait_until_delivered(_DELIVERY_SECONDS)
  finally:
    for number, handler in zip(numbers, before, strict=True):
      signal.signal(number, handler)


def main() -> None:
  """Serves the page, plays the game, saves the replay."""
  run_flags.require_file(_SAVE_REPLAY.name, replay_name())
  run_flags.require_page_port()  # before the programs are compiled
  played = make_session()
  page = server.Server(played, run_flags.PAGE_PORT.value)
  threading.Thread(target=page.serve_forever, daemon=True).start()
  race = types.RACES[int(played.replay().match_up.races[0])]
  print(f"url={page.url} race={race} opponent={_OPPONENT.value}", flush=True)
  try:
    _play(played)
  finally:  # an error keeps the game so far
    replay = played.replay()
    path = replays.save(replay_name(), replay)
  page.shutdown()
  print(f"result={summary.result(replay)!r} replay={path}", flush=True)


if __name__ == "__main__":
  entry.run(main)
