"""Bitwise reproducible games: the compiled program that plays them, and hashes of their states.

Two compiled programs of the same mathematics may round differently. Live games and resimulated
replays therefore run this one loop. It runs on the CPU, even if there is an accelerator, and
without fused multiply-adds, which not every CPU has.
"""

import dataclasses
import functools
import hashlib
import platform
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.games.replay_format import STEPS_PER_HASH
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import (
  function_tables,
  tables,
  tiers,
  unit_tables,
)
from starleague.environments.skirmish.rules.tables.tables import GameConfig

# All x86-64 CPUs of the last fifteen years have SSE4.2. With it the hashes were equal at every
# optimisation level of XLA. With AVX2 they were not, and they differed from those with AVX.
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
_COMPILER_OPTIONS = {"xla_cpu_max_isa": "SSE4_2"} if _IS_X86 else {}
compiled = functools.partial(jax.jit, compiler_options=_COMPILER_OPTIONS)
# Renamed fields with the names that hashes contain: older replays stay valid.
_HASHED_NAMES = {"seed": "luck", "minerals_only": "at_par", "stalemate_loops": "quiet_loops",
                 "z": "statistics"}


# Fields that earlier versions lacked: hashes contain them only in tiers that use them.
_NEW_FIELDS = frozenset({
  "technology", "add_on", "upgrade", "warp_cooldown", "cloaked", "detects", "cargo_size",
  "cargo_space", "cargo_taken", "detected", "hallucination", "hallucinations", "spell_loops",
  "field_x", "field_y", "field_loops"})


class Program(NamedTuple):
  """The compiled functions of a GameConfig."""

  reset: Callable[[jax.Array, base.MatchUp], State]
  status: Callable[[State], tuple[jax.Array, jax.Array]]  # -> due [2] bool, winner []
  # (track, state, actions [H, 2, ...], acts [H, 2], count) -> (track, state): plays the first
  # `count` of H = STEPS_PER_HASH steps. `track` [H, ...] takes the state after each; it is donated.
  run: Callable[..., tuple[State, State]]


@functools.cache
def make_program(game: GameConfig) -> Program:
  """Returns the program of a GameConfig, compiled once."""
  environment = skirmish.make_skirmish(**game._asdict())

  def run(track, state, actions, acts, count):
    def body(i, carry):
      track, state = carry
      action = jax.tree.map(lambda values: values[i], actions)
      state = environment.advance(environment.act(state, action, acts[i]))
      put = functools.partial(lax.dynamic_update_index_in_dim, index=i, axis=0)
      return jax.tree.map(put, track, state), state

    # A loop of `count` steps, not a scan over H: single steps must run the same program.
    return lax.fori_loop(0, count, body, (track, state))

  return Program(
    reset=compiled(environment.reset), run=compiled(run, donate_argnums=0),
    status=compiled(lambda state: (environment.due(state), state.winner)))


def on_cpu(function: Callable) -> Callable:
  """Decorates a function so that its JAX programs run on the CPU."""
  @functools.wraps(function)
  def wrapped(*args, **kwargs):
    with jax.default_device(jax.devices("cpu")[0]):
      return function(*args, **kwargs)
  return wrapped


def make_track(state: State) -> State:
  """Returns zeros for the states after each of STEPS_PER_HASH steps."""
  return jax.tree.map(lambda x: jnp.zeros((STEPS_PER_HASH, *x.shape), x.dtype), state)


def keys_of(seed: int) -> tuple[jax.Array, jax.Array]:
  """Returns the random keys of a game's start and of its players' noise."""
  start, noise = jax.random.split(jax.random.key(seed, impl="threefry2x32"))
  return start, noise


def _hashed_name(name: str) -> str:
  return _HASHED_NAMES.get(name, name)


def state_hash(state: State) -> str:
  """Returns the SHA-256 of a state: of every array's name, dtype, shape and bytes."""
  digest = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(state):
    if path[-1].name in _NEW_FIELDS and not leaf.size:
      continue
    values = np.ascontiguousarray(leaf)
    name = "".join(f".{_hashed_name(key.name)}" for key in path)
    digest.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
    digest.update(values.tobytes())
  return digest.hexdigest()


def _hashed_fields(part: Any) -> Iterator[tuple[str, Any]]:
  """The fields of a dataclass that hashes contain."""
  for field in dataclasses.fields(part):
    value = getattr(part, field.name)
    if field.name not in _NEW_FIELDS or np.any(value):
      yield field.name, value


def _hashed_text(tier: tiers.Tier) -> str:
  """A tier's `repr` under the names of its fields that hashes contain."""
  values = _hashed_fields(tier)
  return f"Tier({', '.join(f'{_hashed_name(name)}={value!r}' for name, value in values)})"


@functools.cache
def rules_digest(tier: str) -> str:
  """Returns 16 hex digits that identify a tier's sizes, pace, statistics and functions."""
  sizes = tiers.TIERS[tier]
  digest = hashlib.sha256(_hashed_text(sizes).encode())
  types_ = unit_tables.make_types(sizes)
  products = function_tables.make_products(sizes, types_)
  functions = function_tables.make_functions(sizes, types_, products)
  upgrades = unit_tables.make_upgrades(sizes, types_)
  parts: list[Any] = [types_, types_.ground, types_.air, functions, products, upgrades]
  terrain = tables.make_terrain(sizes)
  if terrain is not None:
    parts.append(terrain)
  for part in parts:
    for _, value in _hashed_fields(part):
      if isinstance(value, np.ndarray):
        digest.update(value.tobytes())
      elif not dataclasses.is_dataclass(value):
        digest.update(repr(value).encode())
  if terrain is not None:
    digest.update(terrain.fields.tobytes())
  return digest.hexdigest()[:16]


def recorded_with() -> str:
  """Returns the version of JAX and the kind of CPU of this process, as stated in replays."""
  return f"jax {jax.__version__} on {platform.machine()}"


def no_actions(game: GameConfig, steps: int) -> tuple[types.Action, np.ndarray]:
  """Returns zero actions [steps, 2, ...] and False for each player's acting [steps, 2]."""
  actions = jax.tree.map(lambda spec: np.zeros((steps, 2, *spec.shape), spec.dtype),
                         types.action_spec(game.max_selected))
  return actions, np.zeros((steps, 2), bool)
