"""The behaviour of players in their games: opening, army, first attack.

A `Track` follows a player through its observations, `describe` gives its behaviour at the end. The
archive of a league (`league.ratings.archive`) counts behaviours.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import build_order, types
from starleague.league.ratings.archive import NEVER, Behaviour

ENTRIES = 10  # of a build order that make an opening
_FOOD, _COUNT = (types.PLAYER_COLUMNS.index(name) for name in ("food_army", "army_count"))
_KILLED = [types.SCORE_COLUMNS.index(name)
           for name in ("killed_value_units", "killed_value_structures")]


class Track(NamedTuple):
  """What a player's observations have shown so far of its behaviour, [...] int32."""

  supply: types.Leaf  # of its largest army
  units: types.Leaf  # number of that army's units
  attack: types.Leaf  # game loop of the first observation after its first kill; NEVER before


def start(shape: tuple[int, ...] = ()) -> Track:
  """Returns the track of players without observations, [shape] int32."""
  none = jnp.zeros(shape, jnp.int32)
  return Track(none, none, jnp.full(shape, NEVER, jnp.int32))


@jax.jit
def follow(track: Track, player: types.Array, score: types.Array, loop: types.Array) -> Track:
  """Follows a player to its next observation.

  Args:
    track: [...].
    player: [..., 10] int32, PLAYER_COLUMNS.
    score: [..., 13] int32, SCORE_COLUMNS.
    loop: [...] int32.
  """
  supply, units = player[..., _FOOD], player[..., _COUNT]
  larger = supply > track.supply
  kills = (score[..., _KILLED[0]] + score[..., _KILLED[1]]) > 0
  return Track(
    jnp.where(larger, supply, track.supply), jnp.where(larger, units, track.units),
    jnp.where((track.attack == NEVER) & kills, loop, track.attack))


def describe(orders: np.ndarray, tracks: Track) -> tuple[Behaviour, ...]:
  """Returns the behaviours of P players in their game.

  Args:
    orders: [P, 20], the build orders that they have executed, 0 past the end.
    tracks: [P], at the end of the game.
  """
  found = []
  for order, supply, units, attack in zip(orders, *map(np.asarray, tracks), strict=True):
    entries = order[order != 0][:ENTRIES]
    opening = float(build_order.STRUCTURES[entries].mean()) if len(entries) else 0.0
    found.append(Behaviour(opening, float(supply / units) if units else 0.0, int(attack)))
  return tuple(found)


def of_results(results: Any) -> list[tuple[Behaviour, ...]]:
  """Returns the behaviours of both players of each finished game of `rollouts.Results`, in order.

  Scripted players are described too, as of the last observation of their opponents.
  """
  over = np.asarray(results.over)
  orders = np.asarray(results.executed.build_order)[over]
  tracks = (np.asarray(values)[over] for values in results.track)
  return [describe(order, Track(*track)) for order, *track in zip(orders, *tracks, strict=True)]
