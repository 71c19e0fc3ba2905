"""StarCraft II in a run: processes of games, and the inference service that acts for them."""

import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np

from starleague.actor import game_processes, games, rollouts
from starleague.actor.inference import Batcher, Listener, Model, Service
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.data.records import Records
from starleague.data.z.conditioning import Conditioning
from starleague.experiments.run.parts import wiring

_GROWTH = 4  # factor between static sizes of a batch
_POLL_S = 0.05  # between looks at the games' ends
SLOTS = 2  # of a process: both players of its game


def run(connection: Connection, address: str, config: AgentConfig, told: games.Told,
        sc2: wiring.Sc2) -> None:
  """Plays games until the connection ends: the main function of a process."""
  jax.config.update("jax_platforms", "cpu")  # the accelerator is the inference service's
  from starleague.environments.sc2.environment import Games
  games.serve(
    connection, lambda: Games(config, sc2.maps, version=sc2.version, deadline_s=sc2.deadline_s,
                              camera=sc2.camera), address, told, config, sc2.answer_s)


def batch_sizes(largest: int) -> list[int]:
  """Returns the static sizes of a batch: 1, 4, 16, ..., and the largest."""
  sizes = [1]
  while sizes[-1] * _GROWTH < largest:
    sizes.append(sizes[-1] * _GROWTH)
  return sorted({*sizes, largest})


class Hosting:
  """Processes that play games, and the service of their inference."""

  def __init__(self, parts: wiring.Parts, key: jax.Array, params: Mapping[int, Any],
               next_order: Callable[[], games.Order | None], given: Conditioning,
               on_records: Callable[[Records, np.ndarray], object] | None = None):
    """Compiles the service's programs and starts the processes.

    Args:
      parts: of a run in StarCraft II.
      key: of the noise of all actions.
      params: by player, as the orders number them. Others may follow by `model.set_params`, before
        the service gets requests of their games.
      next_order: returns the next game, or None: there is no other.
      given: z that the orders name, and the MMR.
      on_records: takes the agents' steps, a row is a slot, and their players.
    """
    assert parts.sc2 is not None
    slots = SLOTS * parts.sc2.processes
    sizes = batch_sizes(min(parts.sc2.inference_batch, slots))
    self.listener = Listener(parts.config, slots)
    template = jax.eval_shape(parts.policy.init, jax.random.key(0))
    self.model = Model(parts.policy, parts.config, slots, sizes, template, key)
    for player, found in params.items():
      self.model.set_params(player, found)
    self.service = Service(self.model, Batcher(sizes, parts.sc2.wait_s), self.listener,
                           parts.config, on_records)
    told = games.Told(int(given.mmr), given.statistics, parts.sc2.pseudo_scale)
    self.processes = game_processes.GameProcesses(
      parts.sc2.processes, run, (self.listener.address, parts.config, told, parts.sc2), next_order,
      parts.sc2.game_s)
    self._polled = time.monotonic()

  def run_once(self) -> list[game_processes.Finished]:
    """Serves the next requests; returns the games that have ended.

    Raises:
      GamesError: games cannot be played at all, or many in a row are void.
    """
    self.service.run_once()
    if time.monotonic() - self._polled < _POLL_S:
      return []
    self._polled = time.monotonic()
    return self.processes.poll()

  def close(self) -> None:
    """Ends the games and the service."""
    self.listener.close()
    self.processes.close()
    self.service.close()


def draw_order(parts: wiring.Parts, rng: np.random.Generator, bot: str, given: Conditioning,
               races: Sequence[int] | None = None) -> games.Order:
  """Returns a game with map, sides, seed and z drawn.

  Args:
    parts: of a run in StarCraft II.
    rng: changed.
    bot: the built-in bot that plays player 1; empty: an agent.
    given: z and the probabilities that its parts are active.
    races: of both players, indices of types.RACES; None: drawn.
  """
  home, away = map(int, rng.choice(parts.races, 2) if races is None else races)
  order = games.Order(
    opponent=bot, seed=int(rng.integers(2**30)), races=(home, away),
    map_index=int(rng.integers(parts.maps)), swap_sides=bool(rng.integers(2)))
  against = _opponent_race(order)
  targets = [_draw_targets(given, rng, order.map_index, *pair)
             for pair in ((home, against), (against, home))]
  active = rng.random((2, len(types.PSEUDO_REWARDS))) < given.active
  active[1] &= not order.opponent  # a bot has no z
  mine, other = (tuple(map(bool, row)) for row in active)
  return order._replace(targets=(targets[0], targets[1]), active=(mine, other))


def _opponent_race(order: games.Order) -> int:
  """Returns the race of player 1, an index of types.RACES."""
  from starleague.environments.sc2 import matches  # only those who play it need pysc2
  return matches.parse_bot(order.opponent).race if order.opponent else order.races[1]


def _draw_targets(given: Conditioning, rng: np.random.Generator, map_index: int, home: int,
                  away: int) -> tuple[int, int]:
  """Returns a row of z for each starting side."""
  rows = np.asarray(given.rows)[map_index, home, away]
  first, second = (int(side[rng.integers(rows.shape[-1])]) for side in rows)
  return first, second


def results_of(parts: wiring.Parts, finished: list[game_processes.Finished]) -> rollouts.Results:
  """Returns the results of games that are not void, [1, n, ...], as of a rollout program."""
  counted = [(order, report.result) for order, report in finished if report.result is not None]
  opponents = [parts.opponents.index(order.opponent) + 1 if order.opponent else rollouts.SELF_PLAY
               for order, _ in counted]
  none = types.zeros(types.statistics_spec())
  reward = np.array([[result, -result] for _, result in counted], np.float32).reshape(1, -1, 2)
  return rollouts.Results(
    over=np.ones((1, len(counted)), bool), opponent=np.array([opponents], np.int32), reward=reward,
    executed=none, target=none, race=np.array([[order.races for order, _ in counted]]),
    side=np.array([[[order.swap_sides, not order.swap_sides] for order, _ in counted]], np.int32),
    map_index=np.array([[order.map_index for order, _ in counted]], np.int32))
