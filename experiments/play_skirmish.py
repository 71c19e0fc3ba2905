"""Play Skirmish in the browser, against a scripted player or the agent of a run.

  python -m starleague.experiments.play_skirmish
  python -m starleague.experiments.play_skirmish --opponent L8 --races zerg,protoss --map river
  python -m starleague.experiments.play_skirmish --opponent agent --run_dir runs/mini

Prints an address on this machine; open it. When the game is over its replay is saved, for
`python -m starleague.experiments.watch`. See docs/play.md.
"""

import pathlib
import signal
import sys
import threading
from collections.abc import Sequence

from absl import app, flags

from starleague.agent import types
from starleague.environments.skirmish.games import live, replays
from starleague.experiments.run import competitors
from starleague.experiments.run import flags as run_flags
from starleague.learner import checkpoints
from starleague.viewers.play import orders as play_orders
from starleague.viewers.play import server as play_server
from starleague.viewers.watch import frames as watch_frames

for _name in ("run_dir", "seed", "tier", "races", "map"):
  flags.declare_key_flag(_name)
_OPPONENT = flags.DEFINE_string(
  "opponent", "L5", f"Whom to play: L0 to L10, a strategy as macro, or {competitors.AGENT} (the "
  "newest weights of --run_dir). The first of --races is yours.")
_GAME_SPEED = flags.DEFINE_float(
  "game_speed", 1.0, "Times real time, at the start.", lower_bound=play_server.SPEEDS[0],
  upper_bound=play_server.SPEEDS[1])
_PORT = flags.DEFINE_integer(
  "page_port", 0, "Port on this machine; 0: any that is free.", lower_bound=0, upper_bound=65535)
_SAVE_REPLAY = flags.DEFINE_string(
  "save_replay", None, "Where the replay goes; play-OPPONENT-SEED.npz if not given.")
_TOLD_SECONDS = 10.0


def make_session(opponent: str, *, seed: int = 0, run_dir: str | None = None,
                 tier: str | None = None, races: Sequence[str] = ("random", "random"),
                 map_name: str = "random", speed: float = 1.0) -> play_server.Session:
  """A game against an opponent, compiled and ready to begin.

  Raises:
    ValueError, OSError: what cannot be; see `competitors`.
  """
  game, (player,) = competitors.choose((opponent,), run_dir=run_dir, tier=tier)
  setting = competitors.make_setting(game, seed, races, map_name, swap_sides=False)
  setting = setting._replace(match_up=live.seated(setting.match_up, (None, player)))
  seat = live.Seat(player, game)
  _warm_up(setting, seat)
  return play_server.Session(
    live.LiveGame(game, setting.match_up, setting.seed), seat, speed=speed)


def _warm_up(setting: competitors.Setting, seat: live.Seat) -> None:
  """Compiles all that a game runs, so that its first seconds are like the rest."""
  game = live.LiveGame(setting.game, setting.match_up, setting.seed)
  for _ in range(2):
    nothing = play_orders.to_action(
      play_server.tables.make_rules(*setting.game), live.observe(game, 0), None)
    game.step({0: nothing, **({1: seat.act(game, 1)} if game.due[1] else {})})
  seat.reset()


def _play(session: play_server.Session) -> None:
  """Plays to the end, or until the terminal or the system says stop: the game is left then."""
  numbers = (signal.SIGINT, signal.SIGTERM)
  before = [signal.signal(number, lambda *_: session.leave()) for number in numbers]
  try:
    session.run()
    session.wait_until_told(_TOLD_SECONDS)
  finally:
    for number, handler in zip(numbers, before, strict=True):
      signal.signal(number, handler)


def main(argv: Sequence[str]) -> None:
  """Entry point."""
  if len(argv) > 1:
    raise app.UsageError(f"unexpected arguments: {argv[1:]}")
  seed, opponent = run_flags.SEED.value, _OPPONENT.value
  path = pathlib.Path(_SAVE_REPLAY.value or f"play-{opponent}-{seed}.npz")
  try:
    if not path.parent.is_dir():  # before a game is lost
      raise ValueError(f"--save_replay: folder {path.parent} does not exist")
    print("compiling: this takes a minute or two", flush=True)
    session = make_session(
      opponent, seed=seed, run_dir=run_flags.RUN_DIR.value, tier=run_flags.TIER.value,
      races=run_flags.RACES.value, map_name=run_flags.MAP.value, speed=_GAME_SPEED.value)
    server = play_server.Server(session, _PORT.value)
  except (OSError, ValueError, OverflowError, checkpoints.CheckpointDamagedError,
          checkpoints.CheckpointMismatchError) as error:
    sys.exit(f"play_skirmish: {error}")
  threading.Thread(target=server.serve_forever, daemon=True).start()
  race = types.RACES[int(session.replay().match_up.races[0])]
  print(f"url={server.url} race={race} opponent={opponent}", flush=True)
  _play(session)
  replay = session.replay()
  replays.save(path, replay)
  server.shutdown()
  print(f"result={watch_frames.result(replay)!r} replay={path}", flush=True)


if __name__ == "__main__":
  app.run(main)
