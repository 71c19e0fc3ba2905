"""An actor of a run: plays batches of games, writes trajectories, reports results.

  python -m starleague.experiments.actor --run_dir runs/mini --address localhost:7000

It may be killed at any time: only its unfinished games are lost.
"""

import pathlib
import time

import jax
from absl import flags

from starleague.common import stopping
from starleague.experiments.run.actors import (
  compiled_league,
  compiled_loop,
  compiled_single,
  hosted_league,
  hosted_loop,
  hosted_single,
)
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.parts import wiring

for _name in ("run_dir", "address", "parameters", "league", "origin"):
  flags.declare_key_flag(_name)
_INDEX = flags.DEFINE_integer("index", 0, "Index of this actor.", lower_bound=0)


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  origin = time.time() if run_flags.ORIGIN.value is None else run_flags.ORIGIN.value
  address, index = run_flags.given(run_flags.ADDRESS), _INDEX.value
  parameters = run_flags.PARAMETERS.value or address
  parts = wiring.make_parts(config)
  coordinator = run_flags.LEAGUE.value
  client = None if coordinator is None else compiled_league.connect(coordinator, index)
  if parts.sc2 is not None:
    rng = hosted_loop.generator(config, index)
    dealer: hosted_loop.Dealer = (
      hosted_single.AgentDealer(parts, config, run_dir, parameters, origin, rng)
      if client is None else hosted_league.LeagueDealer(
        parts, config, run_dir, address, client, index, origin, rng))
    hosted_loop.play(dealer, parts, config, address, jax.random.key(int(rng.integers(2**31))))
    return
  stopping.end_at_once()  # only unfinished games are lost
  games: compiled_loop.Games = (
    compiled_single.AgentGames(parts, config, run_dir, address, parameters, origin)
    if client is None else compiled_league.LeagueGames(
      parts, config, run_dir, address, client, index, origin))
  compiled_loop.play(games, config, index)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
