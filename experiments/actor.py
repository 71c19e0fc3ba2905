"""An actor of a run: plays batches of games, writes trajectories, reports results.

  python -m starleague.experiments.actor --run_dir runs/mini --address localhost:7000

It may be killed at any time: only its unfinished games are lost.
"""

import pathlib
import time

from absl import flags

from starleague.experiments.run import (
  acting,
  agent_acting,
  entry,
  league_acting,
  sc2_acting,
  settings,
  stopping,
  wiring,
)
from starleague.experiments.run import flags as run_flags

for _name in ("run_dir", "address", "parameters", "league", "origin"):
  flags.declare_key_flag(_name)
_INDEX = flags.DEFINE_integer("index", 0, "Index of this actor.", lower_bound=0)


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  origin = time.time() if run_flags.ORIGIN.value is None else run_flags.ORIGIN.value
  address = run_flags.given(run_flags.ADDRESS)
  parameters = run_flags.PARAMETERS.value or address
  parts = wiring.make_parts(config)
  if parts.sc2 is not None:
    if run_flags.LEAGUE.value is not None:
      raise settings.SettingsError("config key 'environment.name': a league plays 'skirmish'.")
    sc2_acting.play(parts, config, run_dir, address, parameters, _INDEX.value, origin)
    return
  stopping.end_at_once()  # only unfinished games are lost
  games: acting.Games
  if run_flags.LEAGUE.value is not None:
    games = league_acting.LeagueGames(
      parts, config, run_dir, address, run_flags.LEAGUE.value, _INDEX.value, origin)
  else:
    games = agent_acting.AgentGames(
      parts, config, run_dir, address, parameters, origin)
  acting.play(games, config, _INDEX.value)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
