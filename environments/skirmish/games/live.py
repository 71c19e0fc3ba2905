"""A game that is played one step at a time from Python, by whoever: a person, a script, an agent.

What is played is a replay at any moment: the engine is the same compiled program that plays
replays again, so that `replays.resimulate` comes to the same states, to the last bit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.games.replay_format import (
  STEPS_PER_HASH,
  Replay,
  hash_steps,
)
from starleague.environments.skirmish.rules import constants, observation, tables, tiers
from starleague.environments.skirmish.rules.config import DEFAULT_GAME_CONFIG, GameConfig
from starleague.environments.skirmish.rules.state import Array, State


class Controller(NamedTuple):
  """Someone who plays; make one with `replays.scripted_player` or `replays.policy_player`."""

  name: str
  # (params, key, state, player, memory) -> (Action, memory), unbatched.
  decide: Callable[[Any, Array, State, Array, Any], tuple[types.Action, Any]]
  params: Any = ()
  memory: Any = ()  # before the first observation
  mmr: int = base.AGENT_MMR
  income: int = 100  # percent of what its workers bring


def seated(match_up: base.MatchUp, players: Sequence[Controller | None]) -> base.MatchUp:
  """A match-up with what its two players are to be told and given; None: as an agent."""
  agent = base.make_match_up()
  mmr, income = (np.array([getattr(player, name) if player else like[i]
                           for i, player in enumerate(players)], like.dtype)
                 for name, like in (("mmr", agent.mmr), ("income", agent.income)))
  return match_up._replace(mmr=mmr, income=income)


class LiveGame:
  """One game. Its functions are compiled once a `Game`, whatever the races, maps and seeds."""

  def __init__(self, game: GameConfig, match_up: base.MatchUp, seed: int):
    """Begins a game.

    Args:
      game: the arguments of the environment.
      match_up: of numpy arrays; see `base.make_match_up`.
      seed: of where units stand at the start, and of the players' noise; 0 to 2^31 - 1.

    Raises:
      ValueError: a seed out of range, or what `make_skirmish` refuses.
    """
    if not 0 <= seed < 2 ** 31:
      raise ValueError(f"seed must be in 0..{2 ** 31 - 1}, found {seed}")
    self.game, self.match_up, self.seed, self.steps = game, match_up, seed, 0
    self._cpu = jax.devices("cpu")[0]
    with jax.default_device(self._cpu):
      self._program = exact.make_program(game)
      start, self._noise = exact.keys_of(seed)
      self.state: State = self._program.reset(start, match_up)
      self._track = exact.make_track(self.state)
      self._stand()
    self._actions, self._acts = exact.nothing_done(game, STEPS_PER_HASH)
    self._taken: list[tuple] = []
    self._hashes = [exact.state_hash(self.state)]

  def _stand(self) -> None:
    self.due, winner = (np.asarray(x) for x in self._program.stand(self.state))
    self.winner = int(winner)  # 0 or 1, 2 for a draw, -1 while it goes on

  def key(self, player: int) -> Array:
    """What a player's noise at this step is drawn from."""
    return jax.random.fold_in(jax.random.fold_in(self._noise, self.steps), player)

  def step(self, actions: Mapping[int, types.Action]) -> None:
    """Plays one environment step.

    Args:
      actions: by player; of all who are due and of nobody else.

    Raises:
      ValueError: the game is over, or others act than those who are due.
    """
    if self.winner >= 0:
      raise ValueError("the game is over: begin another one")
    due = {int(player) for player in np.flatnonzero(self.due)}
    if set(actions) != due:
      raise ValueError(f"actions: expected those of players {sorted(due)}, found {sorted(actions)}")
    self._acts[0] = self.due
    for player in sorted(actions):
      for values, value in zip(self._actions, actions[player], strict=True):
        values[0, player] = value
      self._taken.append((self.steps, player, *(v[0, player].copy() for v in self._actions)))
    with jax.default_device(self._cpu):
      self._track, self.state = self._program.run(
        self._track, self.state, self._actions, self._acts, 1)
      self._stand()
    self.steps += 1
    if self.steps % STEPS_PER_HASH == 0:
      self._hashes.append(exact.state_hash(self.state))

  def replay(self, names: tuple[str, str]) -> Replay:
    """The game up to now.

    Args:
      names: of player 0 and player 1.
    """
    step, player, *done = (
      zip(*self._taken, strict=True) if self._taken else [()] * (2 + len(self._actions)))
    actions = (np.array(values, like.dtype).reshape(-1, *like.shape[2:])
               for values, like in zip(done, self._actions, strict=True))
    hashes = list(self._hashes)
    if len(hashes) < len(hash_steps(self.steps)):  # step 0 is the start and the end
      hashes.append(exact.state_hash(self.state))
    return Replay(
      game=self.game, match_up=jax.tree.map(np.asarray, self.match_up), seed=self.seed,
      players=names, steps=self.steps, winner=self.winner, step=np.array(step, np.int32),
      player=np.array(player, np.uint8), actions=types.Action(*actions), hashes=tuple(hashes),
      rules=exact.rules_digest(self.game.tier), recorded_with=exact.recorded_with())


class Seat:
  """A `Controller` in a live game: what it does when it is due, and its memory."""

  def __init__(self, player: Controller, game: GameConfig):
    self.name, self._player, self._memory = player.name, player, player.memory
    self._decide = _compiled(player.decide, game.max_selected)

  def reset(self) -> None:
    """Forgets the game before."""
    self._memory = self._player.memory

  def act(self, live: LiveGame, player: int) -> types.Action:
    """Its action; it must be due.

    Args:
      live: the game.
      player: which one it plays, 0 or 1.
    """
    with jax.default_device(live._cpu):
      action, self._memory = self._decide(
        self._player.params, live.key(player), live.state, jnp.int32(player), self._memory)
    return jax.tree.map(np.asarray, action)


_DECISIONS: dict[Any, Any] = {}


def _compiled(decide, max_selected: int):
  """(params, key, state, player, memory) -> (Action, memory), compiled once."""
  if (decide, max_selected) not in _DECISIONS:
    spec = types.action_spec(max_selected)

    def cast(*arguments):
      action, memory = decide(*arguments)
      return jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), action, spec), memory

    _DECISIONS[decide, max_selected] = jax.jit(cast)
  return _DECISIONS[decide, max_selected]


def record(competitors: tuple[Controller, Controller], seed: int, *, game: GameConfig = DEFAULT_GAME_CONFIG,
           match_up: base.MatchUp | None = None, max_steps: int | None = None) -> Replay:
  """Plays a game and notes what was done.

  Args:
    competitors: player 0 and player 1, made for `game`.
    seed: of the game and of its players' noise; 0 to 2^31 - 1. The same one gives the same game.
    game: the arguments of the environment.
    match_up: of numpy arrays; `base.make_match_up()` if not given. Its MMR and income are the
      competitors'.
    max_steps: where to break off; the tier's own limit if not given.

  Raises:
    ValueError: a seed out of range, or what `make_skirmish` refuses.
  """
  match_up = base.make_match_up() if match_up is None else match_up
  live = LiveGame(game, seated(match_up, competitors), seed)
  seats = [Seat(player, game) for player in competitors]
  limit = tiers.TIERS[game.tier].loop_limit // constants.LOOPS_PER_STEP + 1
  limit = limit if max_steps is None else min(max_steps, limit)
  while live.winner < 0 and live.steps < limit:
    live.step({player: seats[player].act(live, player)
               for player in np.flatnonzero(live.due).tolist()})
  return live.replay((competitors[0].name, competitors[1].name))


_OBSERVERS: dict[GameConfig, Any] = {}


def observe(live: LiveGame, player: int) -> types.Observation:
  """What a player sees, of numpy arrays. Compiled once a `Game`."""
  if live.game not in _OBSERVERS:
    rules = tables.make_rules(*live.game)
    _OBSERVERS[live.game] = jax.jit(
      lambda state, player: observation.observe(rules, state, player)[0])
  with jax.default_device(live._cpu):
    return jax.tree.map(np.asarray, _OBSERVERS[live.game](live.state, np.int32(player)))
