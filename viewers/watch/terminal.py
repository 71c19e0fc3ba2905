"""A replay as text: the map and the figures, played on a terminal."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from starleague.agent import types
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules import constants
from starleague.environments.skirmish.rules.queries import is_geyser
from starleague.environments.skirmish.rules.state import State
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch.frames import PLACES, SEEN, Frames, Line

CELLS = 24  # of the map's side; each is two characters wide
SECONDS_PER_STEP = constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND
_COLOURS = ("dodger_blue2", "dark_orange3")
_SHORTEST = 0.05  # seconds between two pictures
_LINES = 6  # of the log
_BUILT = 12  # of a build order


class Show(NamedTuple):
  """A game, ready to be drawn."""

  replay: Replay
  frames: Frames
  log: list[Line]
  builds: list[Line]


def make_show(replay: Replay, states: State) -> Show:
  """What `render` draws from."""
  return Show(replay, watch_frames.make_frames(replay, states),
              watch_frames.action_log(replay, states), watch_frames.build_orders(states))


def render(show: Show, step: int, view: int = 0) -> RenderableType:
  """A picture, 80 columns wide. Pure.

  Args:
    show: the game.
    step: environment steps played.
    view: 1 or 2: what that player sees; 0: everything.
  """
  replay = show.replay
  title = Text.assemble((replay.players[0], f"bold {_COLOURS[0]}"), " vs ",
                        (replay.players[1], f"bold {_COLOURS[1]}"))
  at = f"{watch_frames.clock(step)} of {watch_frames.clock(replay.steps)}"
  if step >= replay.steps:
    at = watch_frames.result(replay)
  beside = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
  beside.add_column(width=2 * CELLS + 2)
  beside.add_column(width=29)
  beside.add_row(
    Panel(_map(show, step, view), title=title, subtitle=at, width=2 * CELLS + 2, padding=0,
          border_style="grey50"),
    Group(_figures(show.frames, step), Text(""), _builds(show.builds, step)))
  return Group(beside, _log(show.log, step))


def _map(show: Show, step: int, view: int) -> Text:
  """CELLS lines of two characters a cell."""
  frames, rules = show.frames, watch_frames.rules_of(show.replay)
  text = np.full((CELLS, CELLS), "  ", object)
  style = np.full((CELLS, CELLS), "", object)
  if view:
    cells = _cells(frames.visible[:step + 1, view - 1])
    text[:], style[:] = np.where(cells[-1], "  ", "··"), "grey37"
    text[~cells.any(axis=0)] = "░░"
  ground = watch_frames.terrain(show.replay)
  for row, column in np.ndindex(CELLS, CELLS) if ground else ():
    cliff = ground["passable"][row * len(ground["passable"]) // CELLS]
    if cliff[column * len(cliff) // CELLS] == "0":
      text[row, column], style[row, column] = "▒▒", "grey50"
  middles, own_middles = watch_frames.patch_middles(show.replay)
  contents = frames.known_patches[step, view - 1] if view else frames.patches[step]
  for (x, y), left, gas in zip(own_middles[view - 1] if view else middles, contents,
                               is_geyser(rules), strict=True):
    if left:
      at = int(y * CELLS), int(x * CELLS)
      text[at], style[at] = ("●●", "green") if gas else ("◆◆", "cyan")

  def block(player, kind, x, y, how):
    radius = int(rules.types.radius[kind] * CELLS / rules.tier.map_size)
    part = (slice(max(0, y - radius), y + radius + 1), slice(max(0, x - radius), x + radius + 1))
    text[part], style[part] = "  ", f"{how} on {_COLOURS[player]}"
    parts = watch_frames.words(rules.types.names[kind]).split()
    text[y, x] = "".join(p[0] for p in parts)[:2] if len(parts) > 1 else parts[0][:2]

  def cell(values):
    return int(values) * CELLS // (PLACES + 1)

  s, crowds = rules.tier.structures, {}
  for player in range(2):
    hidden = bool(view) and view - 1 != player
    for slot, kind in enumerate(frames.kind[step, player]):
      seen = not hidden or frames.flags[step, player, slot] & SEEN
      x, y = cell(frames.x[step, player, slot]), cell(frames.y[step, player, slot])
      if kind and seen and slot >= s:
        crowds.setdefault((y, x, player), []).append(rules.types.names[kind][0])
      elif kind and seen:
        block(player, kind, x, y, "bold white")
      elif hidden and slot < s and frames.known_kind[step, view - 1, slot]:
        block(player, frames.known_kind[step, view - 1, slot],
              cell(frames.known_x[step, view - 1, slot]),
              cell(frames.known_y[step, view - 1, slot]), "black")
  for (y, x, player), letters in crowds.items():  # over the structures
    text[y, x] = letters[0] + (str(min(9, len(letters))) if len(letters) > 1 else " ")
    style[y, x] = f"bold {_COLOURS[player]}"
  return Text("\n", no_wrap=True).join(
    Text.assemble(*zip(text[row], style[row], strict=True)) for row in range(CELLS))


def _cells(visible: np.ndarray) -> np.ndarray:
  """[t, H, W / 32] uint32 to [t, CELLS, CELLS] bool."""
  bits = np.unpackbits(np.ascontiguousarray(visible, "<u4").view(np.uint8), axis=-1,
                       bitorder="little")
  size = bits.shape[1]
  at = (np.arange(CELLS) * 2 + 1) * size // (2 * CELLS)
  return bits[:, at][:, :, at] > 0


def _figures(frames: Frames, step: int) -> Table:
  table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
  table.add_column("", min_width=len("destroyed"))
  for player in range(2):
    table.add_column(f"player {player + 1}", justify="right", header_style=_COLOURS[player])
  values = [dict(zip(watch_frames.FIGURES, map(int, row), strict=True))
            for row in frames.figures[step]]
  vespene = ("vespene",) if frames.figures[..., 1].any() else ()
  for name in ("minerals", *vespene, "supply", "workers", "army", "mined", "destroyed"):
    table.add_row(name, *(f"{row['food_used']}/{row['food_cap']}" if name == "supply"
                          else str(row[name]) for row in values))
  return table


def _builds(builds: list[Line], step: int) -> Table:
  """The newest entries of both build orders."""
  table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
  for player in range(2):
    table.add_column(f"build order {player + 1}", header_style=_COLOURS[player], width=13,
                     no_wrap=True, overflow="ellipsis")
  made = [[f"{watch_frames.clock(line.step)} {line.what}" for line in builds
           if line.player == player and line.step <= step][-_BUILT:] for player in range(2)]
  for row in range(_BUILT):
    table.add_row(*(Text(column[row] if row < len(column) else "") for column in made))
  return table


def _log(log: list[Line], step: int) -> Text:
  made = [line for line in log if line.step <= step][-_LINES:]
  lines = [Text.assemble((f" {watch_frames.clock(line.step):>5} ", "grey50"),
                         (line.what, f"bold {_COLOURS[line.player]}"), f" {line.detail}",
                         overflow="ellipsis", no_wrap=True) for line in made]
  return Text("\n").join([*lines, *[Text("")] * (_LINES - len(lines))])


def play(replay: Replay, states: State, *, speed: float = 4.0, view: int = 0,
         console: Console | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
  """Plays a game; where the output is no terminal, prints its last picture.

  Args:
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
    speed: times real time.
    view: as for `render`.
    console: standard output's if not given.
    sleep: waits for so many seconds.
  """
  console = Console() if console is None else console
  show = make_show(replay, states)
  if not console.is_terminal:
    console.print(render(show, replay.steps, view))
    return
  stride = max(1, round(_SHORTEST * speed / SECONDS_PER_STEP))
  with Live(console=console, auto_refresh=False) as live:
    try:
      for step in range(0, replay.steps, stride):
        live.update(render(show, step, view), refresh=True)
        sleep(stride * SECONDS_PER_STEP / speed)
      live.update(render(show, replay.steps, view), refresh=True)
    except KeyboardInterrupt:  # seen enough
      pass
