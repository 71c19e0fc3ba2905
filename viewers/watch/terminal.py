"""A replay as text on a terminal: the map, the figures, the build orders and the actions."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import State
from starleague.viewers.catalog import SECONDS_PER_STEP, clock, initials
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import log as watch_log
from starleague.viewers.watch import summary
from starleague.viewers.watch.frames import PLACES, SEEN, Frames
from starleague.viewers.watch.log import Line

CELLS = 24  # per side of the map, each two characters wide
_COLOURS = ("dodger_blue2", "dark_orange3")
_SHORTEST = 0.05  # seconds between two pictures
_LINES = 6  # of the log
_BUILT = 12  # entries of a build order


class Show(NamedTuple):
  """The data of all pictures of a game."""

  replay: Replay
  frames: Frames
  log: list[Line]
  builds: list[Line]


def make_show(replay: Replay, states: State) -> Show:
  """Prepares the pictures of a game; states are [steps + 1, ...]."""
  rules = watch_frames.rules_of(replay)
  derived = watch_frames.derive(rules, states)
  return Show(replay, watch_frames.make_frames(rules, states, derived),
              watch_log.action_log(replay, states, derived), watch_log.build_orders(states))


def render(show: Show, step: int, view: int = 0) -> RenderableType:
  """Returns a picture, 80 columns wide.

  Args:
    show: the game.
    step: environment steps played.
    view: 1 or 2 for that player's view; 0 for the whole map.
  """
  replay = show.replay
  title = Text.assemble((replay.players[0], f"bold {_COLOURS[0]}"), " vs ",
                        (replay.players[1], f"bold {_COLOURS[1]}"))
  at = f"{clock(step)} of {clock(replay.steps)}"
  if step >= replay.steps:
    at = summary.result(replay)
  columns = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
  columns.add_column(width=2 * CELLS + 2)
  columns.add_column(width=29)
  columns.add_row(
    Panel(_map(show, step, view), title=title, subtitle=Text(at), width=2 * CELLS + 2, padding=0,
          border_style="grey50"),
    Group(_figures(show.frames, step), Text(""), _builds(show.builds, step)))
  return Group(columns, _log(show.log, step))


class _Grid:
  """The map's cells: two characters and a style each."""

  def __init__(self) -> None:
    self.text = np.full((CELLS, CELLS), "  ", object)
    self.style = np.full((CELLS, CELLS), "", object)

  def lines(self) -> Text:
    """Returns the cells as lines of text."""
    return Text("\n", no_wrap=True).join(
      Text.assemble(*zip(self.text[row], self.style[row], strict=True)) for row in range(CELLS))


def _map(show: Show, step: int, view: int) -> Text:
  """Returns CELLS lines of two characters per cell."""
  grid = _Grid()
  _draw_ground(grid, show, step, view)
  _draw_resources(grid, show, step, view)
  _draw_structures(grid, show, step, view)
  _draw_units(grid, show, step, view)
  return grid.lines()


def _draw_ground(grid: _Grid, show: Show, step: int, view: int) -> None:
  """Draws fog of war and cliffs."""
  if view:
    cells = _visible_cells(show.frames.visible[:step + 1, view - 1])
    grid.text[:], grid.style[:] = np.where(cells[-1], "  ", "··"), "grey37"
    grid.text[~cells.any(axis=0)] = "░░"
  ground = watch_frames.terrain(show.replay)
  if ground is None:
    return
  for row, column in np.ndindex(CELLS, CELLS):
    passable = ground["passable"][row * len(ground["passable"]) // CELLS]
    if passable[column * len(passable) // CELLS] == "0":
      grid.text[row, column], grid.style[row, column] = "▒▒", "grey50"


def _draw_resources(grid: _Grid, show: Show, step: int, view: int) -> None:
  places, own_places = watch_frames.patch_places(show.replay)
  contents = show.frames.known_patches[step, view - 1] if view else show.frames.patches[step]
  gas = is_geyser(watch_frames.rules_of(show.replay))
  for i, (x, y) in enumerate(own_places[view - 1] if view else places):
    if contents[i]:
      at = int(y * CELLS), int(x * CELLS)
      grid.text[at], grid.style[at] = ("●●", "green") if gas[i] else ("◆◆", "cyan")


def _cell(value: int) -> int:
  """Returns the cell of a position in 1 / PLACES of the map's side."""
  return int(value) * CELLS // (PLACES + 1)


def _is_shown(frames: Frames, view: int, at: tuple[int, int, int]) -> bool:
  """Whether a view shows the thing at (step, player, slot)."""
  return not view or view - 1 == at[1] or bool(frames.flags[at] & SEEN)


def _draw_structures(grid: _Grid, show: Show, step: int, view: int) -> None:
  """Draws structures in sight, and remembered ones in black."""
  frames, rules = show.frames, watch_frames.rules_of(show.replay)

  def block(player: int, kind: int, x: int, y: int, how: str) -> None:
    radius = int(rules.types.radius[kind] * CELLS / rules.tier.map_size)
    part = (slice(max(0, y - radius), y + radius + 1), slice(max(0, x - radius), x + radius + 1))
    grid.text[part], grid.style[part] = "  ", f"{how} on {_COLOURS[player]}"
    grid.text[y, x] = initials(rules.types.names[kind])[:2]

  for player in range(2):
    for slot in range(rules.tier.structures):
      at = step, player, slot
      known = step, view - 1, slot
      if frames.kind[at] and _is_shown(frames, view, at):
        block(player, frames.kind[at], _cell(frames.x[at]), _cell(frames.y[at]), "bold white")
      elif view and view - 1 != player and frames.known_kind[known]:
        block(player, frames.known_kind[known], _cell(frames.known_x[known]),
              _cell(frames.known_y[known]), "black")


def _draw_units(grid: _Grid, show: Show, step: int, view: int) -> None:
  """Draws the first letter of a unit in each cell, with the number of units up to 9."""
  frames, rules = show.frames, watch_frames.rules_of(show.replay)
  crowds: dict[tuple[int, int, int], list[str]] = {}
  for player, slot in np.argwhere(frames.kind[step] > 0):
    at = step, int(player), int(slot)
    if slot >= rules.tier.structures and _is_shown(frames, view, at):
      crowds.setdefault((_cell(frames.y[at]), _cell(frames.x[at]), int(player)), []).append(
        rules.types.names[frames.kind[at]][0])
  for (y, x, player), letters in crowds.items():
    grid.text[y, x] = letters[0] + (str(min(9, len(letters))) if len(letters) > 1 else " ")
    grid.style[y, x] = f"bold {_COLOURS[player]}"


def _visible_cells(visible: np.ndarray) -> np.ndarray:
  """Samples `Frames.visible` [t, H, W / 32] uint32 at the middles of cells: [t, CELLS, CELLS]."""
  cells = watch_frames.visible_cells(visible)
  at = (np.arange(CELLS) * 2 + 1) * cells.shape[1] // (2 * CELLS)
  return cells[:, at][:, :, at]


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


def _builds(builds: Sequence[Line], step: int) -> Table:
  """Returns the newest entries of both build orders."""
  table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
  for player in range(2):
    table.add_column(f"build order {player + 1}", header_style=_COLOURS[player], width=13,
                     no_wrap=True, overflow="ellipsis")
  made = [[f"{clock(line.step)} {line.what}" for line in builds
           if line.player == player and line.step <= step][-_BUILT:] for player in range(2)]
  for row in range(_BUILT):
    table.add_row(*(Text(column[row] if row < len(column) else "") for column in made))
  return table


def _log(log: Sequence[Line], step: int) -> Text:
  made = [line for line in log if line.step <= step][-_LINES:]
  lines = [Text.assemble((f" {clock(line.step):>5} ", "grey50"),
                         (line.what, f"bold {_COLOURS[line.player]}"), f" {line.detail}",
                         overflow="ellipsis", no_wrap=True) for line in made]
  return Text("\n").join([*lines, *[Text("")] * (_LINES - len(lines))])


def play(replay: Replay, states: State, *, speed: float = 4.0, view: int = 0,
         console: Console | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
  """Plays a game on a terminal; prints its last picture where the output is no terminal.

  Args:
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
    speed: factor of real time.
    view: as for `render`.
    console: standard output by default.
    sleep: waits for a number of seconds.
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
    except KeyboardInterrupt:
      pass  # Ctrl-C ends the view
