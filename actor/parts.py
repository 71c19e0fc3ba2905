"""The parts of an actor: the agent, its opponents, and the games that they play."""

from collections.abc import Callable
from typing import Any, NamedTuple

from starleague.actor import games as hosted
from starleague.actor.rollout_types import ScriptedPlayer
from starleague.agent.config import AgentConfig
from starleague.agent.policy import Policy
from starleague.environments import base


class CompiledGames(NamedTuple):
  """Games in JAX, played inside the compiled program of rollouts."""

  environment: base.Environment
  scripted: ScriptedPlayer  # takes an index of `Parts.opponents`
  grid_per_unit: float  # cells of the 256 x 256 grid per game unit
  # Percent of its workers' loads that each of `Parts.opponents` is paid; empty: 100 each.
  incomes: tuple[int, ...] = ()


class HostedGames(NamedTuple):
  """Games outside JAX, one at a time in processes of their own; see `actor.games`."""

  make_host: Callable[[], hosted.Host]  # called in each process, so it can be pickled
  bot_race: Callable[[str], int]  # of a bot by its name, an index of types.RACES
  processes: int
  inference_batch: int
  wait_s: float  # longest time that an observation waits for others in the inference service
  game_s: float  # of a whole game; one that takes longer is void
  answer_s: float  # of a wait for the inference service, which may wait for the learner
  replay_suffix: str


class Parts(NamedTuple):
  """The agent of a run, and the games that it plays."""

  config: AgentConfig
  policy: Policy
  opponents: tuple[str, ...]  # names of the scripted players
  races: tuple[int, ...]  # of the agent, indices of types.RACES
  opponent_races: tuple[int, ...]  # that opponents may have, without random ones, which get no z
  maps: tuple[tuple[str, ...], ...]  # of each map, the names by which libraries of z may know it
  mmr: int  # of the agent, as its observations show it
  compiled: CompiledGames | None = None
  hosted: HostedGames | None = None  # in place of `compiled`
  details: Any = None  # of the game; nothing but its own files reads them
