"""One step of a recorded game, drawn with Pillow.

Pillow is an optional dependency: it is imported when a picture is drawn.
"""

import functools
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers import catalog, pages
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch.frames import PLACES, Frames

if TYPE_CHECKING:
  from PIL.Image import Image
  from PIL.ImageDraw import ImageDraw
  from PIL.ImageFont import FreeTypeFont, ImageFont

Colour = tuple[int, ...]

CAPTION = 26  # height of the line under the map, pixels
_SHARP = 2  # factor of drawing before reduction, for smooth edges
_MARGIN = 8 * _SHARP  # beside the texts of the caption
_TEAM = ((96, 165, 250), (251, 191, 36))
_GROUND, _DARK, _LIGHT, _SOFT = (39, 54, 75), (15, 23, 42), (241, 245, 249), (148, 163, 184)
_FAR = 4.0  # map units per step: a slot that moved further holds another unit
_FADE = 5  # steps for which a ring marks a death


class Scene(NamedTuple):
  """The constants of all pictures of a game."""

  replay: Replay
  rules: tables.Rules
  frames: Frames
  facing: np.ndarray  # [T, 2, n] radians
  size: int  # width of the map as drawn, pixels
  ground: "Image"
  fonts: dict[int, "FreeTypeFont | ImageFont"]  # by size in points
  view: int
  explored: np.ndarray | None  # [T, H, W] bool

  @property
  def scale(self) -> float:
    """Pixels per map unit."""
    return self.size / self.rules.tier.map_size


class Thing(NamedTuple):
  """A unit or structure; x and y in pixels, radius and reach in map units."""

  player: int
  kind: int  # local type
  x: float
  y: float
  facing: float = 0.0  # radians
  health: float = 1.0  # fraction
  shield: float | None = None  # fraction; None for types without shields
  built: float = 1.0  # fraction
  flags: int = 0  # as in `Frames.flags`


def make_scene(replay: Replay, frames: Frames, size: int, view: int) -> Scene:
  """Prepares the pictures of a game, `size` pixels wide."""
  from PIL import ImageFont
  rules, pixels = watch_frames.rules_of(replay), size * _SHARP
  explored = None
  if view:
    seen = watch_frames.visible_cells(frames.visible[:, view - 1])
    explored = np.maximum.accumulate(seen, axis=0)
  fonts = {points: ImageFont.load_default(points * _SHARP) for points in (8, 10, 13)}
  return Scene(replay, rules, frames, _facing(rules, frames), pixels, _ground(replay, pixels),
               fonts, view, explored)


@functools.cache
def _shapes() -> dict[str, list[list[float]]]:
  return json.loads(pages.SHAPES_FILE.read_text(encoding="utf-8"))


def _facing(rules: tables.Rules, frames: Frames) -> np.ndarray:
  """Computes directions of units: of their last move, at the start to the middle. [T, 2, n]."""
  x, y = frames.x.astype(np.float64), frames.y.astype(np.float64)
  facing = np.arctan2(PLACES / 2 - y, PLACES / 2 - x)
  dx, dy = np.diff(x, axis=0), np.diff(y, axis=0)
  apart = np.hypot(dx, dy) * rules.tier.map_size / PLACES
  moved = (frames.kind[1:] == frames.kind[:-1]) & (apart > 0.005) & (apart < _FAR)
  for t in range(1, len(facing)):
    facing[t] = np.where(moved[t - 1], np.arctan2(dy[t - 1], dx[t - 1]), facing[t - 1])
  return facing


def _ground(replay: Replay, size: int) -> "Image":
  """Draws the empty map: high ground, water and cliffs."""
  from PIL import Image
  image = Image.new("RGB", (size, size), _GROUND)
  table = watch_frames.terrain(replay)
  if table is None:
    return image
  high, passable = (np.array([[cell == "1" for cell in row] for row in table[name]])
                    for name in ("high", "passable"))
  g = len(high)
  padded = np.pad(high, 2)
  near = np.any([padded[dy:g + dy, dx:g + dx] for dy in range(5) for dx in range(5)], axis=0)

  def paint(mask: np.ndarray, inner: Colour, edge: Colour | None = None) -> None:
    soft = Image.fromarray((255 * mask).astype(np.uint8)).resize(
      (size, size), Image.Resampling.BILINEAR)
    depth = np.asarray(soft)
    for colour, least in ((edge, 128), (inner, 184)) if edge else ((inner, 128),):
      image.paste(colour, (0, 0), Image.fromarray((255 * (depth >= least)).astype(np.uint8)))

  paint(high, (57, 76, 104))
  paint(~passable & ~near, (17, 66, 110), (56, 116, 158))
  paint(~passable & near, _DARK, _SOFT)
  return image


def draw(scene: Scene, step: int) -> "Image":
  """Draws the picture of a step, with the caption under the map."""
  from PIL import Image, ImageDraw
  size = scene.size
  image = Image.new("RGB", (size, size + CAPTION * _SHARP), _DARK)
  image.paste(scene.ground, (0, 0))
  things = _things(scene, step)
  structures = [thing for thing in things if scene.rules.types.structure[thing.kind]]
  units = [thing for thing in things if not scene.rules.types.structure[thing.kind]]
  _creep(scene, image, structures)
  canvas = ImageDraw.Draw(image)
  _resources(scene, canvas, step)
  _fog(scene, image, step)
  for thing in [*_remembered(scene, step), *structures]:
    _structure(scene, canvas, thing)
  for thing in sorted(units, key=lambda thing: bool(scene.rules.types.flying[thing.kind])):
    _unit(scene, canvas, thing)
  _shots(scene, canvas, things)
  _deaths(scene, canvas, step)
  _scans(scene, canvas, step)
  for thing in things:
    _bars(scene, canvas, thing)
  canvas.rectangle((0, size, size, size + CAPTION * _SHARP), fill=_DARK)
  _caption(scene, canvas, step)
  return image.resize((size // _SHARP, size // _SHARP + CAPTION), Image.Resampling.LANCZOS)


def _things(scene: Scene, step: int) -> list[Thing]:
  """Returns the structures and units that the view shows."""
  frames, found = scene.frames, []
  s, of, size = scene.rules.tier.structures, scene.rules.types, scene.size
  for player, slot in np.argwhere(frames.kind[step] > 0):
    at = step, player, slot
    flags, kind = int(frames.flags[at]), int(frames.kind[at])
    if scene.view and scene.view - 1 != player and not flags & watch_frames.SEEN:
      continue
    found.append(Thing(
      player=int(player), kind=kind, x=frames.x[at] / PLACES * size,
      y=frames.y[at] / PLACES * size, facing=float(scene.facing[at]),
      health=frames.health[at] / max(1, of.health[kind]),
      shield=frames.shield[at] / of.shield[kind] if of.shield[kind] else None,
      built=frames.built[at] / 100 if slot < s else 1.0, flags=flags))
  return found


def _remembered(scene: Scene, step: int) -> list[Thing]:
  """Returns the enemy structures that the view's player remembers and does not see."""
  if not scene.view:
    return []
  me, frames, found = scene.view - 1, scene.frames, []
  for slot in np.flatnonzero(frames.known_kind[step, me]):
    if not frames.flags[step, 1 - me, slot] & watch_frames.SEEN:
      at = step, me, slot
      found.append(Thing(
        player=1 - me, kind=int(frames.known_kind[at]), built=0.0,
        x=frames.known_x[at] / PLACES * scene.size, y=frames.known_y[at] / PLACES * scene.size))
  return found


def _mix(colour: Colour, other: Colour, share: float) -> Colour:
  return tuple(round(a * share + b * (1 - share)) for a, b in zip(colour, other, strict=True))


def _box(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
  return x - radius, y - radius, x + radius, y + radius


def _ring(canvas: "ImageDraw", x: float, y: float, radius: float, colour: Colour) -> None:
  canvas.ellipse(_box(x, y, radius), outline=colour, width=_SHARP)


def _creep(scene: Scene, image: "Image", structures: Sequence[Thing]) -> None:
  from PIL import Image, ImageDraw
  mask = Image.new("L", image.size, 0)
  canvas = ImageDraw.Draw(mask)
  for thing in structures:
    if scene.rules.types.larvae[thing.kind] and thing.built >= 1:
      canvas.ellipse(_box(thing.x, thing.y, constants.CREEP_RADIUS * scene.scale), fill=66)
  image.paste((126, 58, 138), (0, 0), mask)


def _resources(scene: Scene, canvas: "ImageDraw", step: int) -> None:
  """Draws geysers, and mineral patches with fewer crystals as they are mined."""
  places, own = watch_frames.patch_places(scene.replay)
  left, scale = scene.frames.patches[step], scene.scale
  if scene.view:
    places, left = own[scene.view - 1], scene.frames.known_patches[step, scene.view - 1]
  for (x, y), amount, gas in zip(places * scene.size, left, is_geyser(scene.rules), strict=True):
    if not amount:
      continue
    if gas:
      canvas.ellipse(_box(x, y, scale), fill=(51, 75, 61), outline=(107, 143, 113), width=_SHARP)
      canvas.ellipse(_box(x, y, 0.5 * scale), fill=(68, 190, 112))
      continue
    share = amount / scene.rules.tier.patch_minerals
    for dx, dy, part, least in ((-0.38, 0.2, 0.38, 0), (0.38, 0.24, 0.34, 1 / 3),
                                (0.02, -0.18, 0.46, 2 / 3)):
      if share > least:
        cx, cy, r = x + dx * scale, y + dy * scale, part * scale
        canvas.polygon([(cx, cy - r), (cx + 0.62 * r, cy), (cx, cy + r), (cx - 0.62 * r, cy)],
                       fill=(45, 190, 172), outline=(19, 78, 74))


def _fog(scene: Scene, image: "Image", step: int) -> None:
  if scene.explored is None:
    return
  from PIL import Image
  seen = watch_frames.visible_cells(scene.frames.visible[step, scene.view - 1])
  alpha = np.where(seen, 0, np.where(scene.explored[step], 130, 214)).astype(np.uint8)
  mask = Image.fromarray(alpha).resize((scene.size,) * 2, Image.Resampling.BILINEAR)
  image.paste((2, 6, 23), (0, 0, scene.size, scene.size), mask)


def _structure_outline(race: int, x: float, y: float, half: float) -> list[tuple[float, float]]:
  """Returns a race's outline of structures: rounded squares, cut corners or blobs."""
  if race > 1:
    angles = np.arange(36) * np.pi / 18
    far = half * (1.02 + 0.09 * np.cos(6 * angles))
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(far, angles, strict=True)]
  cut = 0.55 if race else 0.8
  corners = ((-1, -cut), (-cut, -1), (cut, -1), (1, -cut), (1, cut), (cut, 1), (-cut, 1), (-1, cut))
  return [(x + a * half, y + b * half) for a, b in corners]


def _structure(scene: Scene, canvas: "ImageDraw", thing: Thing) -> None:
  """Draws a structure, filled by its construction progress, with its initials."""
  of, colour = scene.rules.types, _TEAM[thing.player]
  half = float(of.radius[thing.kind]) * scene.scale * 0.86
  canvas.polygon(_structure_outline(int(of.race[thing.kind]), thing.x, thing.y, half),
                 fill=_mix(colour, _DARK, 0.42 * thing.built), outline=colour, width=_SHARP)
  canvas.text((thing.x, thing.y), catalog.initials(of.names[thing.kind]), fill=_LIGHT,
              anchor="mm", font=scene.fonts[10 if half > 14 * _SHARP else 8])


def _unit(scene: Scene, canvas: "ImageDraw", thing: Thing) -> None:
  """Draws a unit in its direction, with a white edge when hit and a dot for its cargo."""
  of = scene.rules.types
  radius = max(3.4 * _SHARP, float(of.radius[thing.kind]) * scene.scale)
  cos, sin = math.cos(thing.facing) * radius, math.sin(thing.facing) * radius
  canvas.polygon(
    [(thing.x + a * cos - b * sin, thing.y + a * sin + b * cos)
     for a, b in _shapes()[of.names[thing.kind]]],
    fill=_TEAM[thing.player], width=_SHARP,
    outline=(255, 255, 255) if thing.flags & watch_frames.HURT else _DARK)
  minerals = thing.flags & watch_frames.MINERALS
  if minerals or thing.flags & watch_frames.VESPENE:
    canvas.ellipse(_box(thing.x + cos, thing.y + sin, 0.5 * radius),
                   fill=(94, 234, 212) if minerals else (134, 239, 172))


def _shots(scene: Scene, canvas: "ImageDraw", things: Sequence[Thing]) -> None:
  """Draws lines from firing units to the nearest enemy within reach that was hit."""
  of = scene.rules.types
  hit = [thing for thing in things if thing.flags & watch_frames.HURT]
  for one in things:
    if not one.flags & watch_frames.FIRED:
      continue
    near = [(math.hypot(other.x - one.x, other.y - one.y) / scene.scale
             - of.radius[other.kind] - of.radius[one.kind], i)
            for i, other in enumerate(hit) if other.player != one.player]
    if near and min(near)[0] < max(of.ground.range[one.kind], of.air.range[one.kind]) + 1:
      other = hit[min(near)[1]]
      canvas.line((one.x, one.y, other.x, other.y), width=_SHARP,
                  fill=_mix(_TEAM[one.player], _LIGHT, 0.5))
      canvas.ellipse(_box(other.x, other.y, 2 * _SHARP), fill=_LIGHT)


def _deaths(scene: Scene, canvas: "ImageDraw", step: int) -> None:
  frames = scene.frames
  for age in range(1, min(_FADE, step + 1)):
    before, after = step - age, step - age + 1
    gone = (frames.kind[before] > 0) & (frames.kind[after] == 0)
    for player, slot in np.argwhere(gone):
      at = before, player, slot
      if scene.view and scene.view - 1 != player and not frames.flags[at] & watch_frames.SEEN:
        continue
      radius = float(scene.rules.types.radius[frames.kind[at]]) * scene.scale
      _ring(canvas, frames.x[at] / PLACES * scene.size, frames.y[at] / PLACES * scene.size,
            radius * (0.8 + age / _FADE), _mix(_TEAM[player], _GROUND, 1 - age / _FADE))


def _scans(scene: Scene, canvas: "ImageDraw", step: int) -> None:
  radius = constants.SCAN_RADIUS * scene.rules.tier.sight_scale * scene.scale
  for player in range(2):
    x, y, left = scene.frames.scan[step, player]
    if left and scene.view in (0, player + 1):
      _ring(canvas, x / PLACES * scene.size, y / PLACES * scene.size, radius, _TEAM[player])


def _bars(scene: Scene, canvas: "ImageDraw", thing: Thing) -> None:
  """Draws health and shields of damaged or unfinished things."""
  shield = 1.0 if thing.shield is None else thing.shield
  if min(thing.health, shield) >= 1 and thing.built >= 1:
    return
  radius = float(scene.rules.types.radius[thing.kind]) * scene.scale
  width, top = max(10 * _SHARP, radius * 1.6), thing.y - radius - 6 * _SHARP
  rows = [(thing.health, (74, 222, 128) if thing.health > 0.6 else
           (250, 204, 21) if thing.health > 0.3 else (248, 113, 113))]
  if thing.shield is not None:
    rows.append((shield, (125, 211, 252)))
  for i, (share, colour) in enumerate(rows):
    y, left = top - 3 * _SHARP * i, thing.x - width / 2
    canvas.rectangle((left - 1, y - 1, left + width + 1, y + 2 * _SHARP), fill=(2, 6, 23))
    canvas.rectangle((left, y, left + width * min(1.0, share), y + 2 * _SHARP - 1), fill=colour)


def _caption(scene: Scene, canvas: "ImageDraw", step: int) -> None:
  """Writes the players at the left, the time and at the end the result at the right.

  In the largest font in which both have room; names for which the smallest is too large are cut.
  """
  longest = max(map(len, scene.replay.players))
  for points, length in (*((points, longest) for points in sorted(scene.fonts, reverse=True)),
                         *((min(scene.fonts), length) for length in range(longest - 1, 0, -1))):
    font = scene.fonts[points]
    parts = _caption_parts(scene.replay, step, length)
    widths = [canvas.textlength(text, font=font) for text, _ in parts]
    if sum(widths) <= scene.size - 3 * _MARGIN:
      break
  middle = scene.size + CAPTION * _SHARP / 2
  starts = [_MARGIN, _MARGIN + widths[0], _MARGIN + sum(widths[:2])]
  for (text, colour), x in zip(parts, [*starts, scene.size - _MARGIN - widths[3]], strict=True):
    canvas.text((x, middle), text, fill=colour, anchor="lm", font=font)


def _caption_parts(replay: Replay, step: int, length: int) -> list[tuple[str, Colour]]:
  """Returns the first player, a word, the second player, and the time; names have a length."""
  names = [name if len(name) <= length else f"{name[:length]}..." for name in replay.players]
  races = [types.RACES[int(race)].capitalize() for race in replay.match_up.races]
  one, other = (f"{name} ({race})" if race in constants.RACES else name
                for name, race in zip(names, races, strict=True))
  text = catalog.clock(step)
  if step >= replay.steps:
    won = replay.winner in (0, 1)
    ended = f"{names[replay.winner]} won" if won else (
      "draw" if replay.winner == 2 else "unfinished")
    text = f"{ended}, {text}"
  return [(one, _TEAM[0]), ("  vs  ", _SOFT), (other, _TEAM[1]), (text, _LIGHT)]
