"""The page of a replay: the whole game in one HTML file that needs no network."""

import html
import json
import os
import pathlib
import re

from starleague.agent import types
from starleague.common import files
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state import State
from starleague.viewers.watch import frames


def render_page(replay: Replay, states: State) -> str:
  """The page as HTML. Pure."""
  data = pathlib.Path(__file__).parent
  game = json.dumps(frames.page_data(replay, states), ensure_ascii=False)
  parts = {
    "TITLE": html.escape(" vs ".join(replay.players)), "HEADER": _header(replay),
    "SHAPES": (data / "watch_shapes.json").read_text(encoding="utf-8").replace("\n", ""),
    "MAP": (data / "watch_map.js").read_text(encoding="utf-8"),
    "SCRIPT": (data / "watch.js").read_text(encoding="utf-8"),
    # Inside a script element nothing but "</" could end the data.
    "GAME": game.replace("<", "\\u003c")}
  # In one pass: a player's name may itself look like a place.
  return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]],
                (data / "watch.html").read_text(encoding="utf-8"))


def _header(replay: Replay) -> str:
  one, two = (html.escape(name) for name in replay.players)
  match_up = replay.match_up
  races = "-".join(types.RACES[race] for race in match_up.races)
  brief = {"tier": replay.game.tier, "map": frames.map_name(replay), "races": races,
           "seed": str(replay.seed), "steps": str(replay.steps),
           "result": frames.result(replay)}
  spans = " ".join(f"<span><b>{name}</b> {html.escape(value)}</span>"
                  for name, value in brief.items())
  return (f"<header><h1>{one} <span>vs</span> {two}</h1>"
          f"<p class='brief'>{spans}</p></header>")


def write_page(path: str | os.PathLike[str], replay: Replay, states: State) -> pathlib.Path:
  """Writes the page of a replay whose states were played again, at once."""
  path = pathlib.Path(path)
  page = render_page(replay, states)
  with files.replacing(path) as file:
    file.write(page)
  return path
