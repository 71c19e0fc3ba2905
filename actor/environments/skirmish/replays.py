"""Replays of Skirmish: what both players did, from which a game is played again to the last bit.

A replay holds no states. It holds how a game began (tier, sizes, match-up, seed), the players'
actions with their steps, and a SHA-256 of the state at the start, every STEPS_PER_HASH environment
steps, and at the end:

  replay = record((scripted_player("rusher"), scripted_player("builder")), seed=3)
  save("game.npz", replay)
  states = resimulate(load("game.npz"))  # raises where the game goes another way

Two compiled programs of the same mathematics may round differently. Recording and re-simulation
therefore run one and the same compiled loop, on the CPU whatever else there is, without the fused
multiply-adds that some CPUs have and others do not. A replay says what it was recorded with.
"""

import dataclasses
import functools
import hashlib
import platform
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.actor.environments import base
from starleague.actor.environments.skirmish import players, scripts, skirmish, tables
from starleague.actor.environments.skirmish.replay_files import (
  DEFAULT_GAME,
  STEPS_PER_HASH,
  Game,
  Replay,
  ReplayError,
  hash_steps,
  load,
  save,
)
from starleague.actor.environments.skirmish.state import Array, State
from starleague.agent import types
from starleague.agent.policy import Policy

__all__ = ["DEFAULT_GAME", "Game", "Player", "Replay", "ReplayError", "load", "make_match_up",
           "policy_player", "record", "resimulate", "save", "scripted_player", "state_hash"]


# SSE4.2 is what all x86-64 CPUs of the last fifteen years have in common. With it the hashes were
# the same at every optimisation level of XLA; with AVX2 they were not, nor the same as with AVX.
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
_COMPILER_OPTIONS = {"xla_cpu_max_isa": "SSE4_2"} if _IS_X86 else {}


class Player(NamedTuple):
  """Someone who plays; make one with `scripted_player` or `policy_player`."""

  name: str
  # (params, key, state, player, memory) -> (Action, memory), unbatched.
  decide: Callable[[Any, Array, State, Array, Any], tuple[types.Action, Any]]
  params: Any = ()
  memory: Any = ()  # before the first observation


class _Program(NamedTuple):
  """The compiled engine of a Game."""

  reset: Callable[[Array, base.MatchUp], State]
  stand: Callable[[State], tuple[Array, Array]]  # -> [2] bool: who is due; [] winner
  # (track, state, actions [H, 2, ...], acts [H, 2], count) -> (track, state): plays the first
  # `count` of H = STEPS_PER_HASH steps; `track` [H, ...] takes the state after each; donated.
  run: Callable[..., tuple[State, State]]


@functools.cache
def _program(game: Game) -> _Program:
  environment = skirmish.make_skirmish(**game._asdict())

  def run(track, state, actions, acts, count):
    def body(i, carry):
      track, state = carry
      action = jax.tree.map(lambda values: values[i], actions)
      state = environment.advance(environment.act(state, action, acts[i]))
      put = functools.partial(lax.dynamic_update_index_in_dim, index=i, axis=0)
      return jax.tree.map(put, track, state), state

    # A loop of `count` steps, not a scan of H: it must be the same program for one step too.
    return lax.fori_loop(0, count, body, (track, state))

  compiled = functools.partial(jax.jit, compiler_options=_COMPILER_OPTIONS)
  return _Program(
    reset=compiled(environment.reset), run=compiled(run, donate_argnums=0),
    stand=compiled(lambda state: (environment.due(state), state.winner)))


def _on_cpu(function: Callable) -> Callable:
  """Runs a function's JAX programs on the CPU."""
  @functools.wraps(function)
  def wrapped(*args, **kwargs):
    with jax.default_device(jax.devices("cpu")[0]):
      return function(*args, **kwargs)
  return wrapped


def _track(state: State) -> State:
  return jax.tree.map(lambda x: jnp.zeros((STEPS_PER_HASH, *x.shape), x.dtype), state)


def _keys(seed: int) -> tuple[Array, Array]:
  """What the start of a game and what its players' noise are drawn from."""
  return tuple(jax.random.split(jax.random.key(seed, impl="threefry2x32")))


def state_hash(state: State) -> str:
  """SHA-256 of a state: of every array's name, dtype, shape and bytes."""
  digest = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(state):
    values = np.ascontiguousarray(leaf)
    digest.update(f"{jax.tree_util.keystr(path)} {values.dtype.str} {values.shape}\n".encode())
    digest.update(values.tobytes())
  return digest.hexdigest()


def rules_digest(tier: str) -> str:
  """16 hex digits that tell apart the numbers of a tier: sizes, pace, statistics, functions."""
  digest = hashlib.sha256(repr(tables.TIERS[tier]).encode())
  types_ = tables.make_types(tables.TIERS[tier])
  functions, products = tables.make_functions(tables.TIERS[tier], types_)
  upgrades = tables.make_upgrades(tables.TIERS[tier], types_)
  parts = [types_, types_.ground, types_.air, functions, products, upgrades]
  if tables.TIERS[tier].field_block:
    parts.append(tables.terrain_of(tables.TIERS[tier]))
  for part in parts:
    for field in dataclasses.fields(part):
      value = getattr(part, field.name)
      if isinstance(value, np.ndarray):
        digest.update(value.tobytes())
      elif not dataclasses.is_dataclass(value):
        digest.update(repr(value).encode())
  return digest.hexdigest()[:16]


def _here() -> str:
  return f"jax {jax.__version__} on {platform.machine()}"


def make_match_up(races: tuple[int, int] = (1, 1), map_index: int = 0,
                  swap_sides: bool = False) -> base.MatchUp:
  """A match-up without targets (z), of numpy arrays.

  Args:
    races: indices of types.RACES.
    map_index: one of the environment's maps.
    swap_sides: player 0 starts in the second place.
  """
  return base.MatchUp(
    races=np.array(races, np.int32), map_index=np.int32(map_index), swap_sides=np.bool_(swap_sides),
    statistics=jax.tree.map(
      lambda spec: np.zeros((2, *spec.shape), spec.dtype), types.statistics_spec()))


@functools.cache
def _scripted_decide(game: Game):
  script = players.make_scripted(**game._asdict())

  def decide(params, key, state, player, memory):
    return script(params, key, state, player), memory

  return decide


def scripted_player(name: str, game: Game = DEFAULT_GAME) -> Player:
  """A scripted player.

  Raises:
    ValueError: there is none of that name.
  """
  known = scripts.names_of(game.tier)
  if name not in known:
    raise ValueError(f"player {name!r} does not exist; expected one of {', '.join(known)}")
  return Player(name, _scripted_decide(game), np.int32(known.index(name)))


def policy_player(name: str, policy: Policy, params: Any, game: Game = DEFAULT_GAME) -> Player:
  """An agent, which samples its actions.

  Args:
    name: what it is called in the replay.
    policy: of the sizes of `game`.
    params: its weights.
    game: the arguments of the environment.
  """
  environment = skirmish.make_skirmish(**game._asdict())

  def decide(params, key, state, player, memory):
    observation, _ = environment.observe(state, player)
    output = policy.step(params, key, observation, memory)
    return output.action, output.state

  return Player(name, decide, params, policy.initial_state())


@functools.lru_cache(maxsize=8)
def _decisions(one: Callable, other: Callable, max_selected: int) -> Callable:
  """(params, key, state, memories, due [2]) -> (actions [2, ...], memories), compiled."""
  spec = types.action_spec(max_selected)

  @jax.jit
  def decide(params, key, state, memories, due):
    actions, kept = [], []
    for player, function in enumerate((one, other)):
      action, memory = function(params[player], jax.random.fold_in(key, player), state,
                                jnp.int32(player), memories[player])
      actions.append(jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), action, spec))
      kept.append(jax.tree.map(
        lambda new, old, i=player: jnp.where(due[i], new, old), memory, memories[player]))
    return jax.tree.map(lambda *values: jnp.stack(values), *actions), tuple(kept)

  return decide


@_on_cpu
def record(competitors: tuple[Player, Player], seed: int, *, game: Game = DEFAULT_GAME,
           match_up: base.MatchUp | None = None, max_steps: int | None = None) -> Replay:
  """Plays a game and notes what was done.

  Args:
    competitors: player 0 and player 1, made for `game`.
    seed: of the game and of its players' noise; 0 to 2^31 - 1. The same one gives the same game.
    game: the arguments of the environment.
    match_up: of numpy arrays; `make_match_up()` if not given.
    max_steps: where to break off; the tier's own limit if not given.

  Raises:
    ValueError: a seed out of range, or what `make_skirmish` refuses.
  """
  if not 0 <= seed < 2 ** 31:
    raise ValueError(f"seed must be in 0..2147483647, found {seed}")
  program = _program(game)
  match_up = make_match_up() if match_up is None else match_up
  start, noise = _keys(seed)
  state = program.reset(start, match_up)
  track = _track(state)
  decide = _decisions(competitors[0].decide, competitors[1].decide, game.max_selected)
  params, memories = (tuple(values) for values in zip(
    *((player.params, player.memory) for player in competitors), strict=True))
  limit = tables.TIERS[game.tier].loop_limit // tables.LOOPS_PER_STEP + 1
  limit = limit if max_steps is None else min(max_steps, limit)
  actions, acts = _nothing(game, STEPS_PER_HASH)
  taken, hashes, steps = [], [state_hash(state)], 0
  due, winner = (np.asarray(x) for x in program.stand(state))
  while winner < 0 and steps < limit:
    acts[0] = due
    if due.any():
      found, memories = decide(params, jax.random.fold_in(noise, steps), state, memories, due)
      for values, value in zip(actions, found, strict=True):
        values[0] = value
      taken += [(steps, player, *(values[0, player].copy() for values in actions))
                for player in np.flatnonzero(due)]
    track, state = program.run(track, state, actions, acts, 1)
    steps += 1
    due, winner = (np.asarray(x) for x in program.stand(state))
    if steps % STEPS_PER_HASH == 0 or winner >= 0 or steps == limit:
      hashes.append(state_hash(state))
  step, player, *done = zip(*taken, strict=True) if taken else [()] * (2 + len(actions))
  done = (np.array(values, like.dtype).reshape(-1, *like.shape[2:])
          for values, like in zip(done, actions, strict=True))
  return Replay(
    game=game, match_up=jax.tree.map(np.asarray, match_up), seed=seed,
    players=(competitors[0].name, competitors[1].name), steps=steps, winner=int(winner),
    step=np.array(step, np.int32), player=np.array(player, np.uint8), actions=types.Action(*done),
    hashes=tuple(hashes), rules=rules_digest(game.tier), recorded_with=_here())


def _nothing(game: Game, steps: int) -> tuple[types.Action, np.ndarray]:
  """Actions [steps, 2, ...] of nobody, and who acts, [steps, 2] bool."""
  actions = jax.tree.map(lambda spec: np.zeros((steps, 2, *spec.shape), spec.dtype),
                         types.action_spec(game.max_selected))
  return actions, np.zeros((steps, 2), bool)


@_on_cpu
def resimulate(replay: Replay) -> State:
  """Plays a replay again, and checks every hash on the way.

  Returns:
    The states [steps + 1, ...], numpy: the first is the start, the last the end.

  Raises:
    ReplayError: the game's rules are others, or the game goes another way: names the first step
      whose hash differs, the hash expected and the one found; or who acts out of turn.
  """
  found = rules_digest(replay.game.tier)
  if found != replay.rules:
    raise ReplayError(
      f"rules of tier {replay.game.tier!r}: expected {replay.rules}, found {found}; the game has "
      "changed since this was recorded: record it again")
  program = _program(replay.game)
  state = program.reset(_keys(replay.seed)[0], replay.match_up)
  points = dict(zip(hash_steps(replay.steps), replay.hashes, strict=True))
  _compare(replay, points, 0, state)
  track = _track(state)
  length = -(-replay.steps // STEPS_PER_HASH) * STEPS_PER_HASH
  actions, acts = _nothing(replay.game, length)
  acts[replay.step, replay.player] = True
  for values, taken in zip(actions, replay.actions, strict=True):
    values[replay.step, replay.player] = taken
  states = [jax.tree.map(lambda x: np.array(x)[None], state)]
  for first in range(0, replay.steps, STEPS_PER_HASH):
    count = min(STEPS_PER_HASH, replay.steps - first)
    part = slice(first, first + STEPS_PER_HASH)
    part_actions = types.Action(*(values[part] for values in actions))
    track, state = program.run(track, state, part_actions, acts[part], count)
    _compare(replay, points, first + count, state)
    # Copied: the next call writes into `track` itself.
    states.append(jax.tree.map(lambda x, count=count: np.array(x)[:count], track))
  if int(state.winner) != replay.winner:
    raise ReplayError(f"winner: expected {replay.winner}, found {int(state.winner)}")
  found = jax.tree.map(lambda *values: np.concatenate(values), *states)
  _check_turns(found, acts[:replay.steps])
  return found


def _check_turns(states: State, acts: np.ndarray) -> None:
  """Whether just those players act who are due: a delay that was changed shows in no hash else."""
  due = np.asarray(jax.vmap(skirmish.due)(states))[:len(acts)]
  for step, player in np.argwhere(due != acts)[:1]:
    does, is_due = (("does not act", "is") if due[step, player] else ("acts", "is not"))
    raise ReplayError(f"step {step}: player {player + 1} {does}, but by the delay of its action "
                      f"before it {is_due} due: the replay was changed")


def _compare(replay: Replay, points: dict[int, str], step: int, state: State) -> None:
  expected, found = points[step], state_hash(state)
  if expected == found:
    return
  before = [point for point in points if point < step]
  agreed = f"they agree up to step {before[-1]}" if before else "they differ from the start"
  here = _here()
  reason = ("the replay was changed, or the game's code was" if here == replay.recorded_with else
            f"it was recorded with {replay.recorded_with}, this is {here}, which may round "
            "differently")
  raise ReplayError(f"step {step}: the game is not the one recorded: expected the state's hash "
                    f"{expected[:16]}, found {found[:16]}; {agreed}: {reason}")
