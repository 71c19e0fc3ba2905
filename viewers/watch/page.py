"""The page of a replay: the whole game in one HTML file that needs no network."""

import base64
import html
import os
import pathlib
import zlib
from typing import Any

import numpy as np

from starleague.agent import types
from starleague.common import files
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants
from starleague.viewers import catalog, pages
from starleague.viewers.watch import frames, log, predictions, summary, z

TEMPLATE = pathlib.Path(__file__).with_name("watch.html")


def write_page(path: str | os.PathLike[str], replay: Replay, states: State) -> pathlib.Path:
  """Writes the page of a replay atomically.

  Args:
    path: file to write.
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
  """
  path = pathlib.Path(path)
  page = render_page(replay, states)
  with files.replacing(path) as file:
    file.write(page)
  return path


def render_page(replay: Replay, states: State) -> str:
  """Returns the page of a replay as HTML."""
  return pages.fill(TEMPLATE, {
    "TITLE": html.escape(" vs ".join(replay.players)), "HEADER": _header(replay),
    "GAME": pages.json_element(page_data(replay, states))})


def _header(replay: Replay) -> str:
  one, two = (html.escape(name) for name in replay.players)
  races = "-".join(types.RACES[race] for race in replay.match_up.races)
  facts = {"tier": replay.game.tier, "map": summary.map_name(replay), "races": races,
           "seed": str(replay.seed), "steps": str(replay.steps),
           "result": summary.result(replay)}
  spans = " ".join(f"<span><b>{name}</b> {html.escape(value)}</span>"
                   for name, value in facts.items())
  return (f"<header><h1>{one} <span>vs</span> {two}</h1>"
          f"<p class='brief'>{spans}</p></header>")


def page_data(replay: Replay, states: State) -> dict[str, Any]:
  """Returns all data of the page's script, as JSON types."""
  rules = frames.rules_of(replay)
  derived = frames.derive(rules, states)
  places, own_places = frames.patch_places(replay)
  lines = {"upgrades": log.researched(rules, states), "builds": log.build_orders(states),
           "log": log.action_log(replay, states, derived)}
  arrays = frames.make_frames(rules, states, derived)._asdict()
  return {
    "players": replay.players, "outcome": summary.outcome(replay), "winner": replay.winner,
    "steps": replay.steps, "secondsPerStep": catalog.SECONDS_PER_STEP,
    "mapSize": rules.tier.map_size, "figures": frames.FIGURES,
    "races": [types.RACES[race] for race in replay.match_up.races],
    "types": catalog.unit_types(rules), "products": catalog.product_names(rules),
    "patches": places.tolist(), "knownPatches": own_places.tolist(),
    "geysers": is_geyser(rules).tolist(), "patchMinerals": rules.tier.patch_minerals,
    "geyserVespene": rules.tier.geyser_vespene, "terrain": frames.terrain(replay),
    "scanRadius": constants.SCAN_RADIUS * rules.tier.sight_scale,
    "creepRadius": constants.CREEP_RADIUS,
    "z": z.z_entries(replay, states),
    "predictions": predictions.page_predictions(replay, derived, pack),
    **{name: [list(line) for line in found] for name, found in lines.items()},
    "arrays": {name: pack(values) for name, values in arrays.items()}}


def pack(array: np.ndarray) -> dict[str, Any]:
  """Packs an array [T, ...] of unsigned integers for JSON.

  The data are differences between consecutive steps, modulo the type's size, with time as the last
  axis: from step to step most values stay the same, so they compress well.

  Returns:
    The dtype's name, the shape, and the little-endian bytes in zlib's format as base64.
  """
  late = np.moveaxis(array, 0, -1)
  growth = late.copy()
  growth[..., 1:] -= late[..., :-1]
  little = np.ascontiguousarray(growth, array.dtype.newbyteorder("<"))
  return {"type": array.dtype.name, "shape": list(array.shape),
          "data": base64.b64encode(zlib.compress(little.tobytes(), 9)).decode()}
