"""The entry of a game: all that a run needs to play it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ml_collections
import numpy as np

from starleague.actor.loops.engines import Engine
from starleague.actor.loops.league_evaluator import Arena
from starleague.actor.parts import Parts
from starleague.agent.config import AgentConfig
from starleague.common.ranges import Range


class Game(NamedTuple):
  """A game that runs play."""

  name: str  # the value of the config key `environment.name`
  engine: Engine  # the loop of its actors, and its evaluation games
  make_parts: Callable[[ml_collections.ConfigDict, AgentConfig], Parts]
  # (config, agent config); raises SettingsError where the config does not fit the game.
  check: Callable[[ml_collections.ConfigDict, AgentConfig], None]
  make_arena: Callable[[Parts, np.random.Generator], Arena]  # of a league's evaluator
  # The config key that decides the races of agents, and their names in lower case.
  races: Callable[[ml_collections.ConfigDict], tuple[str, Sequence[str]]]
  # Names of the scripted players that `evaluate` can meet; None: the run's own opponents.
  scripted: Callable[[ml_collections.ConfigDict], Sequence[str]] | None = None
  default_init: str = "imitation"  # the value of the config key `init`
  changes: Mapping[str, Any] = {}  # values of the config that suit the game, nested
  options: Mapping[str, Any] = {}  # the game's own config group, which has its name
  ranges: Mapping[str, Range] = {}  # of the numbers among them, by key of the config
  # The tier at which the demonstrations of a preset are recorded; none: of no preset.
  recorded: Mapping[str, str] = {}
