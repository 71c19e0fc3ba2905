"""Options of a learner process, and its place in a run."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starleague.agent.config import AgentConfig
from starleague.agent.policy import Policy
from starleague.common.errors import UserError
from starleague.learner import offline, supervised
from starleague.learner.evolution import Range
from starleague.learner.weights import RLWeights

# Methods of offline reinforcement learning.
CLONING, WINNERS, ACTOR_CRITIC, EMPHATIC = OFFLINE_METHODS = (
  "cloning", "winners", "actor_critic", "emphatic")


class LearningAgent(NamedTuple):
  """The agent that learns."""

  config: AgentConfig
  policy: Policy
  initial_params: Callable[[], Any]  # host parameters that training starts from


class LearnerProcess(NamedTuple):
  """The place of a learner in a run."""

  run_dir: pathlib.Path
  address: str  # host:port of this host's data server
  origin: float  # start of the run, in Unix seconds


@dataclasses.dataclass(frozen=True)
class PopulationOptions:
  """Options of population-based training of a league's players.

  Attributes:
    ranges: of the hyperparameters, by name: those of `league_population.NAMES`.
    nominal: their values in the compiled update.
    steps: agent steps of a player between two decisions.
  """

  ranges: Mapping[str, Range]
  nominal: Mapping[str, float]
  steps: float


@dataclasses.dataclass(frozen=True)
class ReinforcementOptions:
  """Options of reinforcement learning, of one agent or of a league's players.

  Attributes:
    weights: costs of the objective's terms.
    seed: of the run.
    seconds: of training, counted from the first update.
    league_seconds: the same of a league.
    unroll_length: T of the trajectories.
    timeout_s: of waits for the data server.
    batch_size: trajectories in a batch, over all hosts.
    accumulate: parts of a device's share of a batch, processed in turn.
    learning_rate: at the start.
    final_rate: over `learning_rate`, at the end of a linear decay; a league's rate is constant.
    stages: equal parts of the training. Each has a decay of its own, and its teacher is the agent
      at its start. A league has one.
    b1, b2, eps: of Adam.
    max_norm: of gradients; 0: no clipping.
    opponent_values: whether the value functions observe the opponent.
    updates: most updates, over all players of a league; 0: no limit.
    main_updates: of each main agent. A league ends when all have them; 0: no limit.
    value_warm_up: updates in which only the value functions learn.
    publish_interval_s: between two publications of the parameters.
    checkpoint_interval_s: between two checkpoints.
    log_interval_s: between two records of metrics.
    wandb: project of Weights & Biases that gets the metrics too; empty: none.
    keep_last: number of newest checkpoints that are kept.
    keep_every: checkpoints of each multiple of this many updates are kept as well; 0: no others.
    max_skipped: non-finite updates in a row that stop the run.
    population: of a league's players; None: their hyperparameters stay constant.
  """

  weights: RLWeights
  seed: int
  seconds: float
  league_seconds: float
  unroll_length: int
  timeout_s: float
  batch_size: int
  accumulate: int
  learning_rate: float
  final_rate: float
  stages: int
  b1: float
  b2: float
  eps: float
  max_norm: float
  opponent_values: bool
  updates: int
  main_updates: int
  value_warm_up: int
  publish_interval_s: float
  checkpoint_interval_s: float
  log_interval_s: float
  wandb: str
  keep_last: int
  keep_every: int
  max_skipped: int
  population: PopulationOptions | None = None

  @property
  def steps_per_update(self) -> int:
    """Agent steps in a batch."""
    return self.batch_size * self.unroll_length


@dataclasses.dataclass(frozen=True)
class ImitationOptions:
  """Options of imitation.

  Attributes:
    objective: options of the supervised objective.
    preset: of the agent, which the recorded games must have.
    tier: of the recorded games.
    environment: name of the run's environment; games of a tier of that name are accepted too.
    seed: of the run.
    timeout_s: of waits for the next batch.
    names: of the players that are imitated, separated by commas; empty: all.
    batch_size: slots, each a chunk of a game.
    unroll_length: T of the chunks.
    accumulate: parts of a device's share of a batch, processed in turn.
    learning_rate: after the warm-up.
    warm_up: share of a phase in which the learning rate rises from 0.
    final_rate: over the phase's learning rate, at the end of half a cosine.
    b1, b2, eps: of Adam.
    max_norm: of gradients; 0: no clipping.
    seconds, epochs: limits of the main phase; 0: no limit. The first one reached ends it.
    labels_learning_rate: as `learning_rate`, of the phase after the student's games are labelled.
    labels_seconds, labels_epochs: limits of this phase.
    fine_tune_mmr: lowest MMR of the winners that fine-tuning imitates, and that give z.
    fine_tune_learning_rate: as `learning_rate`.
    fine_tune_seconds, fine_tune_epochs: limits of the fine-tuning; both 0: no fine-tuning.
    held_out: share of games that measure and are not learnt.
    evaluate_interval_s: between two evaluations on held-out games.
    checkpoint_interval_s: between two checkpoints.
    log_interval_s: between two records of metrics.
    wandb: project of Weights & Biases that gets the metrics too; empty: none.
    keep_last: number of newest checkpoints that are kept.
    max_skipped: non-finite updates in a row that stop the run.

  Raises:
    UserError: the main phase has no limit.
  """

  objective: supervised.Options
  preset: str
  tier: str
  environment: str
  seed: int
  timeout_s: float
  names: str
  batch_size: int
  unroll_length: int
  accumulate: int
  learning_rate: float
  warm_up: float
  final_rate: float
  b1: float
  b2: float
  eps: float
  max_norm: float
  seconds: float
  epochs: int
  labels_learning_rate: float
  labels_seconds: float
  labels_epochs: int
  fine_tune_mmr: int
  fine_tune_learning_rate: float
  fine_tune_seconds: float
  fine_tune_epochs: int
  held_out: float
  evaluate_interval_s: float
  checkpoint_interval_s: float
  log_interval_s: float
  wandb: str
  keep_last: int
  max_skipped: int

  def __post_init__(self) -> None:
    if not self.seconds and not self.epochs:
      raise UserError("ImitationOptions: seconds and epochs must not both be 0: imitation would "
                      "never end.")

  @property
  def steps_per_update(self) -> int:
    """Agent steps in a batch."""
    return self.batch_size * self.unroll_length


@dataclasses.dataclass(frozen=True)
class OfflineOptions:
  """Options of offline reinforcement learning.

  Attributes:
    objective: options of the offline objective.
    imitation: batches, optimizer, the learning rate's course and intervals are those of imitation.
    winners: only players that won with at least `imitation.fine_tune_mmr` are learnt.
    learning_rate: after the warm-up.
    updates: of the run.
  """

  objective: offline.Options
  imitation: ImitationOptions
  winners: bool
  learning_rate: float
  updates: int
