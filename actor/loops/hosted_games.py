"""Games outside JAX: their processes, and the inference service that acts for them."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np

from starleague.actor import game_processes, games, rollouts
from starleague.actor.inference import Batcher, Listener, Model, Service
from starleague.actor.parts import HostedGames, Parts
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.data.records import Records
from starleague.data.z.conditioning import Conditioning

_GROWTH = 4  # factor between static sizes of a batch
_POLL_S = 0.05  # between looks at the games' ends
SLOTS = 2  # of a process: both players of its game


def run(connection: Connection, address: str, config: AgentConfig,
        conditioning: games.GameConditioning, hosted: HostedGames) -> None:
  """Plays games until the connection ends: the main function of a process."""
  jax.config.update("jax_platforms", "cpu")  # the accelerator is the inference service's
  games.serve(connection, hosted.make_host, address, conditioning, config, hosted.answer_s)


def batch_sizes(largest: int) -> list[int]:
  """Returns the static sizes of a batch: 1, 4, 16, ..., and the largest."""
  sizes = [1]
  while sizes[-1] * _GROWTH < largest:
    sizes.append(sizes[-1] * _GROWTH)
  return sorted({*sizes, largest})


def hosted_games(parts: Parts) -> HostedGames:
  """Returns the games of parts that are played in processes of their own."""
  assert parts.hosted is not None, "these games are played inside the compiled program"
  return parts.hosted


class Hosting:
  """Processes that play games, and the service of their inference."""

  def __init__(self, parts: Parts, key: jax.Array, params: Mapping[int, Any],
               next_request: Callable[[], games.GameRequest | None], conditioning: Conditioning,
               pseudo_scale: float = 1.0, draw: float = 0.0,
               on_records: Callable[[Records, np.ndarray], object] | None = None):
    """Compiles the service's programs and starts the processes.

    Args:
      parts: the agent and its games.
      key: of the noise of all actions.
      params: by player, as the requests number them. Others may follow by `model.set_params`,
        before the service gets requests of their games.
      next_request: returns the next game, or None: there is no other.
      conditioning: z that the requests name, and the MMR.
      pseudo_scale: pseudo-reward per unit of distance to z.
      draw: reward of a draw.
      on_records: takes the agents' steps, a row is a slot, and their players.
    """
    hosted = hosted_games(parts)
    slots = SLOTS * hosted.processes
    sizes = batch_sizes(min(hosted.inference_batch, slots))
    shown = games.GameConditioning(
      int(conditioning.mmr), conditioning.z, pseudo_scale, draw)
    template = jax.eval_shape(parts.policy.init, jax.random.key(0))
    with contextlib.ExitStack() as opened:
      self.listener = opened.enter_context(contextlib.closing(Listener(parts.config, slots)))
      self.model = Model(parts.policy, parts.config, slots, sizes, template, key)
      for player, found in params.items():
        self.model.set_params(player, found)
      self.service = opened.enter_context(contextlib.closing(Service(
        self.model, Batcher(sizes, hosted.wait_s), self.listener, parts.config, on_records)))
      self.processes = game_processes.GameProcesses(
        hosted.processes, run, (self.listener.address, parts.config, shown, hosted), next_request,
        hosted.game_s)
      opened.pop_all()
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
    """Ends the service and the games."""
    self.service.close()  # first: the end of a batch wakes the listener
    self.listener.close()
    self.processes.close()


def draw_request(parts: Parts, rng: np.random.Generator, bot: str, conditioning: Conditioning,
                 races: Sequence[int] | None = None) -> games.GameRequest:
  """Returns a game with map, sides, seed and z drawn.

  Args:
    parts: the agent and its games.
    rng: changed.
    bot: the game's bot that plays player 1; empty: an agent.
    conditioning: z and the probabilities that its parts are active.
    races: of both players, indices of types.RACES; None: drawn.
  """
  home, away = map(int, rng.choice(parts.races, 2) if races is None else races)
  request = games.GameRequest(
    opponent=bot, seed=int(rng.integers(2**30)), races=(home, away),
    map_index=int(rng.integers(len(parts.maps))), swap_sides=bool(rng.integers(2)))
  against = hosted_games(parts).bot_race(bot) if bot else away
  rows = [_draw_rows(conditioning, rng, request.map_index, *pair)
          for pair in ((home, against), (against, home))]
  active = rng.random((2, len(types.PSEUDO_REWARDS))) < conditioning.active
  active[1] &= not bot  # a bot has no z
  mine, other = (tuple(map(bool, row)) for row in active)
  return request._replace(z_rows=(rows[0], rows[1]), active=(mine, other))


def _draw_rows(conditioning: Conditioning, rng: np.random.Generator, map_index: int, home: int,
               away: int) -> tuple[int, int]:
  """Returns a row of z for each starting side."""
  rows = np.asarray(conditioning.rows)[map_index, home, away]
  first, second = (int(side[rng.integers(rows.shape[-1])]) for side in rows)
  return first, second


def results_of(parts: Parts, finished: list[game_processes.Finished]) -> rollouts.Results:
  """Returns the results of games that are not void, [1, n, ...], as of a rollout program."""
  counted = [(request, report.result) for request, report in finished if report.result is not None]
  opponents = [
    parts.opponents.index(request.opponent) + 1 if request.opponent else rollouts.SELF_PLAY
    for request, _ in counted]
  none = jax.tree.map(
    lambda x: np.zeros((1, len(counted), 2, *x.shape), x.dtype), types.statistics_spec())

  def of_players(values: list[tuple[float, float]], dtype: type) -> np.ndarray:
    return np.array(values, dtype).reshape(1, len(counted), 2)  # also without games

  return rollouts.Results(
    over=np.ones((1, len(counted)), bool), opponent=np.array([opponents], np.int32),
    reward=of_players([(result, -result) for _, result in counted], np.float32),
    executed=none, z=none,
    race=of_players([request.races for request, _ in counted], np.int32),
    side=of_players([(request.swap_sides, not request.swap_sides) for request, _ in counted],
                    np.int32),
    map_index=np.array([[request.map_index for request, _ in counted]], np.int32))
