"""Plays a game of StarCraft II: agents against each other, a built-in bot or a person.

  python -m starleague.experiments.play pretrained terran:easy --game_map Flat32
  python -m starleague.experiments.play agent pretrained --run_dir runs/mini --out game.SC2Replay
  python -m starleague.experiments.play agent human --run_dir runs/mini --races terran,zerg
  python -m starleague.experiments.play pretrained human --lan_port 14380

Players are `agent` (the newest weights of --run_dir), `pretrained`, `human`, or a built-in bot as
RACE:DIFFICULTY[:BUILD]. A person gets a window of the game, in real time, or hosts the game with
pysc2 on this or another machine (--lan_port). See docs/starcraft2.md.
"""

import pathlib

from absl import flags

from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.play import choose_players, sc2_playing

for _name in ("run_dir", "seed", "races", "preset", "out"):
  flags.declare_key_flag(_name)
_MAP = flags.DEFINE_string(
  "game_map", "Simple64", "Map: a name that pysc2 knows, or a path below Maps.")
_REALTIME = flags.DEFINE_bool(
  "realtime", False, "Run by the clock, as with people, instead of waiting for the agents.")
_VERSION = flags.DEFINE_string(
  "game_version", "", "Version of the game, such as 4.10; default: the newest installed one.")
_LAN_PORT = flags.DEFINE_integer(
  "lan_port", None, "Join the game that a person hosts with pysc2.bin.play_vs_agent --human: the "
  "value of its --config_port. The host chooses the map and the clock.", lower_bound=1,
  upper_bound=65535)
ARGUMENTS = [("PLAYER_1", "PLAYER_2")]


def main(*names: str) -> None:
  """Plays the game and prints its result."""
  from starleague.environments.sc2 import environment
  from starleague.environments.sc2.client import installation, lan, setup_requests
  (first, second), named = sc2_playing.order_players(names, run_flags.RACES.value)
  choose_players.require_agent(names, run_flags.RUN_DIR.value)
  run_flags.require_file("out", run_flags.OUT.value)
  installation.find()
  players = [name for name in (first, second)
             if name in (choose_players.AGENT, choose_players.PRETRAINED)]
  agents = {player: sc2_playing.find_agent(
    name, run_flags.RUN_DIR.value, run_flags.PRESET.value or "mini")
    for player, name in enumerate(players)}
  if len({found.config for found in agents.values()}) > 1:
    raise UserError("players: both agents must have the sizes of one preset: the game makes their "
                    "observations of one size")
  races = [setup_requests.parse_race(race) for race in named]
  bot = second if len(agents) == 1 and second != sc2_playing.HUMAN else ""
  invitation = None
  if _LAN_PORT.value is not None:
    if second != sc2_playing.HUMAN:
      raise UserError(f"--lan_port: the host of the game is 'human', found {second!r}")
    print(f"waiting for a LAN game at port {_LAN_PORT.value}", flush=True)
    invitation = lan.accept(_LAN_PORT.value)
  people = (1,) if second == sc2_playing.HUMAN and invitation is None else ()
  games = environment.GameHost(
    agents[0].config, (_MAP.value,), bot, version=_VERSION.value,
    realtime=_REALTIME.value or bool(people), names=(first, second), people=people,
    invitation=invitation)
  path = pathlib.Path(run_flags.OUT.value) if run_flags.OUT.value else None
  try:
    ended = sc2_playing.play(
      games.environment(), agents, sc2_playing.make_match_up(agents, races),
      run_flags.SEED.value, path)
  finally:
    games.close()
  outcome = {1: f"{first} wins", -1: f"{second} wins", 0: "draw"}[ended.result]
  print(f"result={outcome!r} loops={ended.loops} replay={path}", flush=True)


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
