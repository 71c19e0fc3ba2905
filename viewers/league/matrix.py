"""The payoff matrix of a league as a heat map, sortable, in plotly's JSON format."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from starleague.league import players as kinds
from starleague.league.payoff import wilson_bounds
from starleague.league.players import Player
from starleague.viewers.league.facts import Facts
from starleague.viewers.plots import FONT_SIZE, Figure

UNKNOWN = 101  # cell of a pair without games; others hold the score in percent
_MOST_GAMES = 255  # in one byte; decayed counts stay below 100
_NO_GAMES = (214, 214, 214)
# Colours of the scores 0, 25, 50, 75 and 100%: from red to blue, which the colour-blind tell apart.
_COLOURS = ((178, 24, 43), (244, 165, 130), (248, 250, 252), (146, 197, 222), (33, 102, 172))
# A transparent pixel: the page's script draws the cells, a million of them in a tenth of a second.
# Plotly's own heat map takes ten seconds, as it computes the colour of each cell.
_EMPTY = ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhf"
          "DwAChwGA60e6kgAAAABJRU5ErkJggg==")


def orders(facts: Facts) -> dict[str, np.ndarray]:
  """Returns [N] orders of the players, as indices, by what they are sorted by."""
  def by(key) -> np.ndarray:
    return np.array(sorted(range(len(facts.players)), key=key), int)

  def kind(player: Player) -> tuple[int, int]:
    order = kinds.KINDS.index(player.kind)
    return order, kinds.KINDS.index(player.parent_kind) if player.parent_kind else 0

  return {
    "rating": by(lambda i: -facts.ratings.value[i]), "age": by(lambda i: i),
    "kind": by(lambda i: (kind(facts.players[i]), facts.players[i].race, i)),
    "name": by(lambda i: facts.players[i].name)}


def palette() -> np.ndarray:
  """Returns [102, 3] uint8: the colours of scores in percent, and of UNKNOWN."""
  shares = np.arange(UNKNOWN) / 25
  known = [np.interp(shares, range(len(_COLOURS)), part) for part in zip(*_COLOURS, strict=True)]
  return np.rint(np.vstack([np.transpose(known), _NO_GAMES])).astype(np.uint8)


def heat_map(facts: Facts) -> Figure:
  """Returns the heat map of scores, row against column, the best rated players first.

  `layout.meta.pairs` has the facts of the pairs. With them the page's script draws the cells, sorts
  them, and explains the one under the pointer: names; orders; the palette; scores, decayed games
  and bounds of the scores' intervals as bytes, row by row in order of creation (percent, as is the
  score); pairs with a replay.
  """
  games, points = facts.games, facts.points
  low, high = wilson_bounds(points, games)
  scores = np.where(games > 0, 100 * points / np.where(games > 0, games, 1.0), UNKNOWN)
  names = [player.name for player in facts.players]
  found = orders(facts)
  number = len(names)
  axis = {"range": [-0.5, number - 0.5], "ticks": "", "showgrid": False, "zeroline": False,
          "automargin": True, **_ticks([names[i] for i in found["rating"]])}
  layout = {
    "height": min(240 + 24 * number, 760), "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "size": FONT_SIZE, "color": "#475569"},
    "xaxis": {**axis, "side": "top", "tickangle": -60},
    "yaxis": {**axis, "range": [number - 0.5, -0.5], "scaleanchor": False}, "dragmode": "zoom",
    "uirevision": "matrix", "meta": {"pairs": {
      "names": names, "orders": {key: order.tolist() for key, order in found.items()},
      "palette": _bytes(palette()), "scores": _bytes(scores), "games": _bytes(np.ceil(games)),
      "low": _bytes(100 * low), "high": _bytes(100 * high), "replays": _replays(facts)}}}
  image = {"type": "image", "source": _EMPTY, "hoverinfo": "none", "zsmooth": False}
  return {"data": [image], "layout": layout}


def _ticks(names: Sequence[str]) -> dict[str, Any]:
  """Returns at most 40 ticks with names."""
  step = -(-len(names) // 40)
  return {"tickvals": list(range(0, len(names), step)), "ticktext": list(names[::step])}


def _bytes(values: np.ndarray) -> str:
  """Returns values rounded to bytes, as base64: a tenth of the size of JSON's numbers."""
  return base64.b64encode(
    np.clip(np.rint(values), 0, _MOST_GAMES).astype(np.uint8).tobytes()).decode()


def _replays(facts: Facts) -> list[list[Any]]:
  """Returns [home, away, id] of each saved replay; players as indices."""
  index = {player.name: i for i, player in enumerate(facts.players)}
  return [[index[replay.home], index[replay.away], replay.id] for replay in facts.replays
          if replay.path and replay.home in index and replay.away in index]
