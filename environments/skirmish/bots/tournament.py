"""Tournaments of scripted players: many games in one compiled program."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base, chunks
from starleague.environments.skirmish.bots import players, scripts
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS, GameConfig

STEPS_PER_CALL = 64  # environment steps of a call of the compiled program
CHUNK = 8  # games whose players decide at once
UNDER_WAY = -1  # as `winner`
OPENING = 6  # units and buildings of an opening


class Fixture(NamedTuple):
  """A game to be played; arrays of N games where several are meant."""

  players: np.ndarray  # [..., 2] int32, indices of the tier's scripted players
  races: np.ndarray  # [..., 2] int32, indices of types.RACES
  map_index: np.ndarray  # [...] int32
  swap_sides: np.ndarray  # [...] bool


class Outcomes(NamedTuple):
  """Outcomes of N games, [N] each but for openings."""

  winner: np.ndarray  # int32: 0, 1, or 2 for a draw; UNDER_WAY of games that are not over
  loops: np.ndarray  # int32: length in game loops
  openings: np.ndarray  # [N, 2, OPENING] int32: first entries of both build orders, 0 past the end


class _Program(NamedTuple):
  start: Callable  # (keys, fixtures) -> states
  run: Callable  # (states, fixtures, keys) -> (states, keys), STEPS_PER_CALL steps later
  replace: Callable  # (states, new states, which [N] bool) -> states


@functools.cache
def _program(game: GameConfig) -> _Program:
  environment = skirmish.make_skirmish(**game._asdict())
  script = players.make_scripted(**game._asdict())
  skills = [script.skill for script in scripts.scripts_of(game.tier)]
  mmr = jnp.array([skill.mmr for skill in skills], jnp.int16)
  income = jnp.array([skill.income for skill in skills], jnp.int32)

  def start(key, fixture):
    return environment.reset(key, base.make_match_up(
      fixture.races, fixture.map_index, fixture.swap_sides, mmr=mmr[fixture.players],
      income=income[fixture.players]))

  def decide(fixtures, keys, states):
    def one(fixture, key, state):
      return jax.vmap(script, (0, 0, None, 0))(
        fixture.players, jax.random.split(key, 2), state, jnp.arange(2))

    return jax.vmap(one)(fixtures, keys, states)

  def step(states, fixtures, keys):
    due = jax.vmap(environment.due)(states)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype),
                           jax.eval_shape(decide, fixtures, keys, states))
    actions = chunks.update_chosen(
      lambda game, _: decide(*jax.tree.map(lambda x: x[game], (fixtures, keys, states))),
      due.any(axis=1), nothing, CHUNK)
    return jax.vmap(environment.advance)(jax.vmap(environment.act)(states, actions, due))

  def run(states, fixtures, keys):
    def body(_, carry):
      states, keys = carry
      keys, now = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
      return step(states, fixtures, now), keys

    return jax.lax.fori_loop(0, STEPS_PER_CALL, body, (states, keys))

  def replace(states, new, which):
    return jax.tree.map(
      lambda a, b: jnp.where(which.reshape(-1, *[1] * (a.ndim - 1)), b, a), states, new)

  return _Program(jax.jit(jax.vmap(start)), jax.jit(run, donate_argnums=0),
                  jax.jit(replace, donate_argnums=0))


def nothing_played(fixtures: Fixture) -> Outcomes:
  """Returns the outcomes of games that have not begun."""
  total = len(fixtures.map_index)
  return Outcomes(np.full(total, UNDER_WAY, np.int32), np.zeros(total, np.int32),
                  np.zeros((total, 2, OPENING), np.int32))


def play(fixtures: Fixture, seed: int, *, tier: str = "default", batch: int = 48,
         played: Outcomes | None = None,
         report: Callable[[Outcomes], bool] = lambda found: True) -> Outcomes:
  """Plays games to their ends, `batch` at a time in one compiled program.

  A game that is over makes room for the next one.

  Args:
    fixtures: N games.
    seed: of the games and of the players' noise.
    tier: of the rules and the scripted players.
    batch: games played at once. Games that do not count fill up the batch.
    played: outcomes of an earlier call; only its games under way are played. None: all are.
    report: called with the outcomes so far after each call of the program; returns whether more
      games begin. Those under way are played to their ends: the games that are over first would be
      the short ones.

  Returns:
    The outcomes, in the order of the fixtures.
  """
  program, total = _program(GAME_CONFIGS[tier]), len(fixtures.map_index)
  found = nothing_played(fixtures) if played is None else Outcomes(*map(np.array, played))
  # In random order: a tournament that is stopped has played all pairs alike.
  missing = np.random.default_rng(seed).permutation(np.flatnonzero(found.winner == UNDER_WAY))
  if not len(missing):
    return found
  keys = jax.random.split(jax.random.key(seed), (2, -(-total // batch) * batch))
  playing, begun = np.resize(missing, batch), min(batch, len(missing))

  def start() -> tuple[Any, Fixture]:
    part = jax.tree.map(lambda values: jnp.asarray(values[playing]), fixtures)
    return program.start(keys[0, playing], part), part

  (states, part), noise, more = start(), keys[1, playing], True
  while (found.winner[missing[:begun]] == UNDER_WAY).any():
    states, noise = program.run(states, part, noise)
    over = np.flatnonzero(np.asarray(states.winner) != UNDER_WAY)
    found.winner[playing[over]] = np.asarray(states.winner)[over]
    found.loops[playing[over]] = np.asarray(states.loop)[over]
    found.openings[playing[over]] = np.asarray(states.executed.build_order)[over, :, :OPENING]
    more = report(found) and more
    over = over[:len(missing) - begun if more else 0]
    if len(over):
      playing[over] = missing[begun:begun + len(over)]
      begun += len(over)
      which = jnp.zeros(batch, bool).at[over].set(True)
      new, part = start()
      states = program.replace(states, new, which)
      noise = jnp.where(which, keys[1, playing], noise)
  return found


def round_robin(count: int, races: Sequence[tuple[int, int]], maps: Sequence[int],
                repeats: int) -> Fixture:
  """Returns the games of a round robin: each pair of players, in both starting positions.

  Args:
    count: number of players.
    races: pairs of indices of types.RACES, of the first and the second player.
    maps: indices of maps.
    repeats: games of each pair, pair of races, map and starting position.

  Returns:
    count * (count - 1) / 2 * len(races) * len(maps) * 2 * repeats fixtures; their players are
    numbered from 0.
  """
  def games() -> Iterator[tuple]:
    for i in range(count):
      for j in range(i + 1, count):
        for pair in races:
          for map_index in maps:
            for swap in (False, True):
              yield from [((i, j), pair, map_index, swap)] * repeats

  columns = list(zip(*games(), strict=True))
  return Fixture(np.array(columns[0], np.int32), np.array(columns[1], np.int32),
                 np.array(columns[2], np.int32), np.array(columns[3], bool))


def payoff(fixtures: Fixture, outcomes: Outcomes, count: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns points (wins plus half the draws) and games of row against column, [count, count]."""
  points, games = np.zeros((count, count)), np.zeros((count, count))
  i, j = fixtures.players[:, 0], fixtures.players[:, 1]
  score = _scores(outcomes)
  np.add.at(points, (i, j), score)
  np.add.at(points, (j, i), 1 - score)
  np.add.at(games, (i, j), 1)
  np.add.at(games, (j, i), 1)
  return points, games


def race_payoff(fixtures: Fixture, outcomes: Outcomes, count: int,
                races: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
  """Returns points and games as `payoff`, of the row with one race and the column with another."""
  points, games = np.zeros((count, count)), np.zeros((count, count))
  score = _scores(outcomes)
  for first, values in ((0, score), (1, 1 - score)):
    played = (fixtures.races[:, (first, 1 - first)] == races).all(axis=1)
    pairs = tuple(fixtures.players[played][:, (first, 1 - first)].T)
    np.add.at(points, pairs, values[played])
    np.add.at(games, pairs, 1)
  return points, games


def _scores(outcomes: Outcomes) -> np.ndarray:
  """Returns the points of the first player in each game: 1, 0, or 0.5 for a draw."""
  return np.where(outcomes.winner == 0, 1.0, np.where(outcomes.winner == 1, 0.0, 0.5))


def race_pairs(tier: str, *, mirrors: bool) -> list[tuple[int, int]]:
  """Returns pairs of a tier's races as indices of types.RACES: equal races, or different ones."""
  rules = tables.make_rules(**GAME_CONFIGS[tier]._asdict())
  races = [types.RACES.index(constants.RACES[race].lower()) for race in rules.races]
  return [(a, b) for a in races for b in races if (a == b) == mirrors]
