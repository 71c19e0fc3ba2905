"""Options of an actor process."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class ActorProcess(NamedTuple):
  """The place of an actor in a run."""

  run_dir: pathlib.Path
  address: str  # host:port of the data server that gets the trajectories
  parameters: str  # host:port of the data server that has the newest parameters
  origin: float  # start of the run, in Unix seconds
  number: int  # of the actor among the run's


@dataclasses.dataclass(frozen=True)
class ActorOptions:
  """Sizes and choices of an actor.

  Attributes:
    seed: of the run.
    unroll_length: T of the trajectories.
    niceness: 0 to 19, priority of actors against all other programs of the machine.
    games: concurrent games of the process.
    inference_batch: rows inferred at once.
    iterations: inference batches in one call of the compiled program.
    parameter_interval_s: between two looks for newer parameters.
    timeout_s: of waits for the learner and the data server.
    self_play: share of games against the current agent.
    uniform: share of the other games that is split evenly between the scripted players, and as
      large a share of their games between the match-ups of races.
    matchmaking: weighting of scripted players; see `starleague.league.pfsp`.
    race_matchmaking: weighting of the match-ups against each scripted player, as `matchmaking`.
    draw_reward: reward of a draw, in [-1, 1].
    objective: [2, types] float32, rewards of the one agent of a run for each unit that it built,
      and that its opponent lost.
    demonstrators: indices of opponents whose won games give z, where no library does.
    active: [4] float32, probability that each pseudo-reward is active in a game; see
      `learner.weights` for what it multiplies.
    pseudo_scale: pseudo-reward for one unit of distance to z.
    league_places: matches of two policies that there is room for, by learning player.
    league_games: of an assignment.
    league_chunk: rows inferred at once with the parameters of one player.
    exploiter_minimax: factor of exploiters' reward for a fall of the opponent's win-loss value.
    exploiter_goals: whether exploiters play for z, drawn by the scores of similar z.
    objectives: rewards for units of a league's players, by name; see `Conditioning.objectives`.
    snapshots_z: whether snapshots of a league's main agents always play with z.
    lease_s: of an assignment.
    evaluation_games: of an evaluator's assignment.
    evaluator_niceness: 0 to 19.
  """

  seed: int
  unroll_length: int
  niceness: int
  games: int
  inference_batch: int
  iterations: int
  parameter_interval_s: float
  timeout_s: float
  self_play: float
  uniform: float
  matchmaking: str
  race_matchmaking: str
  draw_reward: float
  objective: np.ndarray
  demonstrators: tuple[int, ...]
  active: np.ndarray
  pseudo_scale: float
  league_places: int
  league_games: int
  league_chunk: int
  exploiter_minimax: float
  exploiter_goals: bool
  objectives: Mapping[str, np.ndarray]
  snapshots_z: bool
  lease_s: float
  evaluation_games: int
  evaluator_niceness: int
