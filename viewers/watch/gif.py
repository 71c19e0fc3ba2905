"""A replay as a moving picture for a README: a GIF, drawn from the frames that the page shows."""

import functools
import json
import math
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.common import files
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.constants import SCAN_RADIUS
from starleague.environments.skirmish.rules.queries import is_geyser
from starleague.environments.skirmish.rules.state import State
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch.frames import PLACES, Frames

MOST_BYTES = 3_000_000
MOST_PICTURES = 240
MILLISECONDS = 80  # a picture
LAST_MILLISECONDS = 3000
COLOURS = 96
_SHARP = 2  # drawn so many times larger, then reduced: smooth edges
_CAPTION = 26  # pixels under the map
_TEAM = ((96, 165, 250), (251, 191, 36))
_GROUND, _DARK, _LIGHT = (39, 54, 75), (15, 23, 42), (241, 245, 249)
_FAR = 4.0  # map units in a step: a slot that moved further holds another unit
_FADE = 5  # steps that a ring shows where somebody died


class _Scene(NamedTuple):
  """What stays the same from picture to picture."""

  replay: Replay
  rules: tables.Rules
  frames: Frames
  facing: np.ndarray  # [T, 2, n] radians
  size: int  # of the map as it is drawn, pixels
  ground: Any  # an image
  fonts: dict[int, Any]
  view: int
  explored: np.ndarray | None  # [T, H, W] bool


def write(path: str | os.PathLike[str], replay: Replay, states: State, *, size: int = 400,
          view: int = 0) -> pathlib.Path:
  """Writes a game as a GIF of less than MOST_BYTES, at once.

  Args:
    path: where to.
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
    size: of the map, pixels.
    view: 1 or 2: what that player sees; 0: everything.

  Raises:
    ValueError: Pillow is not installed: says how to mend it.
  """
  path = pathlib.Path(path)
  scene = _scene(replay, watch_frames.make_frames(replay, states), size, view)
  stride = max(1, -(-replay.steps // MOST_PICTURES))
  while True:
    pictures = [_picture(scene, step) for step in [*range(0, replay.steps, stride), replay.steps]]
    data = _encode(pictures)
    if len(data) <= MOST_BYTES or stride >= max(1, replay.steps):
      break
    stride = math.ceil(stride * 1.05 * len(data) / MOST_BYTES)
  with files.replacing(path, "wb") as file:
    file.write(data)
  return path


def _encode(pictures: list) -> bytes:
  """One palette for all: what does not change from picture to picture then costs nothing."""
  import io

  from PIL import Image
  chosen = pictures[::max(1, len(pictures) // 12)]
  width, height = pictures[0].size
  sheet = Image.new("RGB", (width, height * len(chosen)))
  for i, picture in enumerate(chosen):
    sheet.paste(picture, (0, i * height))
  palette = sheet.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
  flat = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
  file = io.BytesIO()
  durations = [MILLISECONDS] * (len(flat) - 1) + [LAST_MILLISECONDS]
  flat[0].save(file, "GIF", save_all=True, append_images=flat[1:], duration=durations, loop=0,
               optimize=False, disposal=1)
  return file.getvalue()


@functools.cache
def _shapes() -> dict[str, list[list[float]]]:
  path = pathlib.Path(__file__).with_name("watch_shapes.json")
  return json.loads(path.read_text(encoding="utf-8"))


def _scene(replay: Replay, frames: Frames, size: int, view: int) -> _Scene:
  try:
    from PIL import ImageFont
  except ImportError as error:
    raise ValueError("a GIF needs Pillow: install it with pip install 'starleague[gif]'") from error
  rules, pixels = watch_frames.rules_of(replay), size * _SHARP
  explored = None
  if view:
    bits = np.unpackbits(np.ascontiguousarray(frames.visible[:, view - 1], "<u4").view(np.uint8),
                         axis=-1, bitorder="little")
    explored = np.maximum.accumulate(bits, axis=0) > 0
  fonts = {points: ImageFont.load_default(points * _SHARP) for points in (8, 10, 13)}
  return _Scene(replay, rules, frames, _facing(rules, frames), pixels, _ground(replay, pixels),
                fonts, view, explored)


def _facing(rules: tables.Rules, frames: Frames) -> np.ndarray:
  """Where units look: where they went last; at the start to the middle."""
  x, y = frames.x.astype(np.float64), frames.y.astype(np.float64)
  facing = np.arctan2(PLACES / 2 - y, PLACES / 2 - x)
  dx, dy = np.diff(x, axis=0), np.diff(y, axis=0)
  apart = np.hypot(dx, dy) * rules.tier.map_size / PLACES
  moved = (frames.kind[1:] == frames.kind[:-1]) & (apart > 0.005) & (apart < _FAR)
  for t in range(1, len(facing)):
    facing[t] = np.where(moved[t - 1], np.arctan2(dy[t - 1], dx[t - 1]), facing[t - 1])
  return facing


def _ground(replay: Replay, size: int):
  """The map without anything on it."""
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

  def paint(mask, inner, edge=None):
    soft = Image.fromarray((255 * mask).astype(np.uint8)).resize(
      (size, size), Image.Resampling.BILINEAR)
    depth = np.asarray(soft)
    for colour, least in ((edge, 128), (inner, 184)) if edge else ((inner, 128),):
      image.paste(colour, (0, 0), Image.fromarray((255 * (depth >= least)).astype(np.uint8)))

  paint(high, (57, 76, 104))
  paint(~passable & ~near, (17, 66, 110), (56, 116, 158))
  paint(~passable & near, _DARK, (148, 163, 184))
  return image


def _mix(colour: tuple, other: tuple, share: float) -> tuple:
  return tuple(round(a * share + b * (1 - share)) for a, b in zip(colour, other, strict=True))


def _picture(scene: _Scene, step: int):
  """One picture, as an RGB image."""
  from PIL import Image, ImageDraw
  size, frames, tier = scene.size, scene.frames, scene.rules.tier
  image = Image.new("RGB", (size, size + _CAPTION * _SHARP), _DARK)
  image.paste(scene.ground, (0, 0))
  scale, things = size / tier.map_size, _things(scene, step)
  _creep(scene, image, things, scale)
  draw = ImageDraw.Draw(image)
  _resources(scene, draw, step, scale)
  if scene.view:
    _fog(scene, image, step)
  _ghosts(scene, draw, step, scale)
  structures = [thing for thing in things if thing["structure"]]
  units = [thing for thing in things if not thing["structure"]]
  for thing in structures:
    _structure(scene, draw, thing, scale)
  for thing in sorted(units, key=lambda thing: thing["flying"]):
    radius = max(3.4 * _SHARP, thing["radius"] * scale)
    _polygon(draw, _shapes()[thing["name"]], thing, radius, _TEAM[thing["player"]],
             (255, 255, 255) if thing["hurt"] else _DARK)
    if thing["minerals"] or thing["vespene"]:
      x = thing["x"] + math.cos(thing["facing"]) * radius
      y = thing["y"] + math.sin(thing["facing"]) * radius
      draw.ellipse(_box(x, y, 0.5 * radius),
                   fill=(94, 234, 212) if thing["minerals"] else (134, 239, 172))
  _shots(draw, things, tier.map_size, size)
  _deaths(scene, draw, step, scale)
  for player in range(2):
    x, y, left = frames.scan[step, player]
    if left and scene.view in (0, player + 1):
      _ring(draw, x / PLACES * size, y / PLACES * size,
            SCAN_RADIUS * tier.sight_scale * scale, _TEAM[player])
  for thing in things:
    _bars(draw, thing, scale)
  draw.rectangle((0, size, size, size + _CAPTION * _SHARP), fill=_DARK)
  _caption(scene, draw, step)
  return image.resize((size // _SHARP, size // _SHARP + _CAPTION), Image.Resampling.LANCZOS)


def _things(scene: _Scene, step: int) -> list[dict[str, Any]]:
  """Structures and units that the view shows."""
  frames, rules, found = scene.frames, scene.rules, []
  s, types_, size = rules.tier.structures, rules.types, scene.size
  for player, slot in np.argwhere(frames.kind[step] > 0):
    flags, kind = int(frames.flags[step, player, slot]), int(frames.kind[step, player, slot])
    if scene.view and scene.view - 1 != player and not flags & watch_frames.SEEN:
      continue
    found.append({
      "player": int(player), "kind": kind, "name": rules.types.names[kind],
      "x": frames.x[step, player, slot] / PLACES * size,
      "y": frames.y[step, player, slot] / PLACES * size, "radius": float(types_.radius[kind]),
      "structure": bool(types_.structure[kind]), "flying": bool(types_.flying[kind]),
      "reach": float(max(types_.ground.range[kind], types_.air.range[kind])),
      "race": int(types_.race[kind]), "facing": float(scene.facing[step, player, slot]),
      "minerals": flags & watch_frames.MINERALS, "vespene": flags & watch_frames.VESPENE,
      "hurt": flags & watch_frames.HURT, "fired": flags & watch_frames.FIRED,
      "health": frames.health[step, player, slot] / max(1, types_.health[kind]),
      "shield": frames.shield[step, player, slot] / types_.shield[kind]
                if types_.shield[kind] else None,
      "built": frames.built[step, player, slot] / 100 if slot < s else 1.0})
  return found


def _creep(scene: _Scene, image, things: list, scale: float) -> None:
  from PIL import Image, ImageDraw
  mask = Image.new("L", image.size, 0)
  draw = ImageDraw.Draw(mask)
  for thing in things:
    if scene.rules.types.larvae[thing["kind"]] and thing["built"] >= 1:
      draw.ellipse(_box(thing["x"], thing["y"], constants.CREEP_RADIUS * scale), fill=66)
  image.paste((126, 58, 138), (0, 0), mask)


def _box(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
  return x - radius, y - radius, x + radius, y + radius


def _ring(draw, x: float, y: float, radius: float, colour: tuple) -> None:
  draw.ellipse(_box(x, y, radius), outline=colour, width=_SHARP)


def _resources(scene: _Scene, draw, step: int, scale: float) -> None:
  places, own = watch_frames.patch_middles(scene.replay)
  left, tier = scene.frames.patches[step], scene.rules.tier
  if scene.view:
    places, left = own[scene.view - 1], scene.frames.known_patches[step, scene.view - 1]
  for (x, y), amount, gas in zip(places * scene.size, left, is_geyser(scene.rules), strict=True):
    if not amount:
      continue
    if gas:
      draw.ellipse(_box(x, y, scale), fill=(51, 75, 61), outline=(107, 143, 113), width=_SHARP)
      draw.ellipse(_box(x, y, 0.5 * scale), fill=(68, 190, 112))
      continue
    share = amount / tier.patch_minerals
    for dx, dy, part, least in ((-0.38, 0.2, 0.38, 0), (0.38, 0.24, 0.34, 1 / 3),
                                (0.02, -0.18, 0.46, 2 / 3)):
      if share > least:
        cx, cy, r = x + dx * scale, y + dy * scale, part * scale
        draw.polygon([(cx, cy - r), (cx + 0.62 * r, cy), (cx, cy + r), (cx - 0.62 * r, cy)],
                     fill=(45, 190, 172), outline=(19, 78, 74))


def _fog(scene: _Scene, image, step: int) -> None:
  from PIL import Image
  words = np.ascontiguousarray(scene.frames.visible[step, scene.view - 1], "<u4")
  seen = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little") > 0
  alpha = np.where(seen, 0, np.where(scene.explored[step], 130, 214)).astype(np.uint8)
  mask = Image.fromarray(alpha).resize((scene.size,) * 2, Image.Resampling.BILINEAR)
  image.paste((2, 6, 23), (0, 0, scene.size, scene.size), mask)


def _ghosts(scene: _Scene, draw, step: int, scale: float) -> None:
  """The enemy's structures that the chosen player remembers."""
  if not scene.view:
    return
  me, frames = scene.view - 1, scene.frames
  for slot in np.flatnonzero(frames.known_kind[step, me]):
    if frames.flags[step, 1 - me, slot] & watch_frames.SEEN:
      continue
    kind = int(frames.known_kind[step, me, slot])
    _structure(scene, draw, {
      "name": scene.rules.types.names[kind], "race": int(scene.rules.types.race[kind]),
      "x": frames.known_x[step, me, slot] / PLACES * scene.size,
      "y": frames.known_y[step, me, slot] / PLACES * scene.size,
      "radius": float(scene.rules.types.radius[kind]), "player": 1 - me, "built": 0.0}, scale)


def _structure(scene: _Scene, draw, thing: dict, scale: float) -> None:
  """In its race's style, filled up to the part of it that is built."""
  half, x, y = thing["radius"] * scale * 0.86, thing["x"], thing["y"]
  colour = _TEAM[thing["player"]]
  if thing["race"] == 0:
    outline = [(x + a * half, y + b * half) for a, b in (
      (-1, -0.8), (-0.8, -1), (0.8, -1), (1, -0.8), (1, 0.8), (0.8, 1), (-0.8, 1), (-1, 0.8))]
  elif thing["race"] == 1:
    outline = [(x + a * half, y + b * half) for a, b in (
      (-1, -0.55), (-0.55, -1), (0.55, -1), (1, -0.55), (1, 0.55), (0.55, 1), (-0.55, 1),
      (-1, 0.55))]
  else:
    angles = np.arange(36) * np.pi / 18
    far = half * (1.02 + 0.09 * np.cos(6 * angles))
    outline = [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(far, angles, strict=True)]
  fill = _mix(colour, _DARK, 0.42 * thing["built"])
  draw.polygon(outline, fill=fill, outline=colour, width=_SHARP)
  parts = watch_frames.words(thing["name"]).split()
  text = "".join(part[0] for part in parts) if len(parts) > 1 else parts[0][:2]
  draw.text((x, y), text, fill=_LIGHT, anchor="mm",
            font=scene.fonts[10 if half > 14 * _SHARP else 8])


def _polygon(draw, shape: list, thing: dict, radius: float, fill: tuple, line: tuple) -> None:
  cos, sin = math.cos(thing["facing"]) * radius, math.sin(thing["facing"]) * radius
  draw.polygon([(thing["x"] + a * cos - b * sin, thing["y"] + a * sin + b * cos)
                for a, b in shape], fill=fill, outline=line, width=_SHARP)


def _shots(draw, things: list, map_size: float, size: int) -> None:
  """From whoever fired to the nearest enemy that was hit and is within reach."""
  hit = [thing for thing in things if thing["hurt"]]
  for one in things:
    if not one["fired"]:
      continue
    near = [(math.hypot(other["x"] - one["x"], other["y"] - one["y"]) * map_size / size
             - other["radius"] - one["radius"], i)
            for i, other in enumerate(hit) if other["player"] != one["player"]]
    if near and min(near)[0] < one["reach"] + 1:
      other = hit[min(near)[1]]
      draw.line((one["x"], one["y"], other["x"], other["y"]), width=_SHARP,
                fill=_mix(_TEAM[one["player"]], _LIGHT, 0.5))
      draw.ellipse(_box(other["x"], other["y"], 2 * _SHARP), fill=_LIGHT)


def _deaths(scene: _Scene, draw, step: int, scale: float) -> None:
  frames = scene.frames
  for age in range(1, min(_FADE, step + 1)):
    before, after = step - age, step - age + 1
    gone = (frames.kind[before] > 0) & (frames.kind[after] == 0)
    for player, slot in np.argwhere(gone):
      if scene.view and scene.view - 1 != player and not (
          frames.flags[before, player, slot] & watch_frames.SEEN):
        continue
      radius = float(scene.rules.types.radius[frames.kind[before, player, slot]]) * scale
      _ring(draw, frames.x[before, player, slot] / PLACES * scene.size,
            frames.y[before, player, slot] / PLACES * scene.size, radius * (0.8 + age / _FADE),
            _mix(_TEAM[player], _GROUND, 1 - age / _FADE))


def _bars(draw, thing: dict, scale: float) -> None:
  """Health and shields of whoever lacks some."""
  shield = 1.0 if thing["shield"] is None else thing["shield"]
  if min(thing["health"], shield) >= 1 and thing["built"] >= 1:
    return
  radius = thing["radius"] * scale
  width, top = max(10 * _SHARP, radius * 1.6), thing["y"] - radius - 6 * _SHARP
  rows = [(thing["health"], (74, 222, 128) if thing["health"] > 0.6 else
           (250, 204, 21) if thing["health"] > 0.3 else (248, 113, 113))]
  if thing["shield"] is not None:
    rows.append((shield, (125, 211, 252)))
  for i, (share, colour) in enumerate(rows):
    y, left = top - 3 * _SHARP * i, thing["x"] - width / 2
    draw.rectangle((left - 1, y - 1, left + width + 1, y + 2 * _SHARP), fill=(2, 6, 23))
    draw.rectangle((left, y, left + width * min(1.0, share), y + 2 * _SHARP - 1), fill=colour)


def _caption(scene: _Scene, draw, step: int) -> None:
  replay, middle = scene.replay, scene.size + _CAPTION * _SHARP / 2
  font = scene.fonts[13]
  x = 8 * _SHARP
  for player, name in enumerate(replay.players):
    race = types.RACES[int(replay.match_up.races[player])].capitalize()
    text = f"{name} ({race})" if race in constants.RACES else name
    draw.text((x, middle), text, fill=_TEAM[player], anchor="lm", font=font)
    x += draw.textlength(text, font=font)
    if player == 0:
      draw.text((x, middle), "  vs  ", fill=(148, 163, 184), anchor="lm", font=font)
      x += draw.textlength("  vs  ", font=font)
  text = watch_frames.clock(step)
  if step >= replay.steps:
    ended = "a draw" if replay.winner == 2 else "broken off"
    text = f"{replay.players[replay.winner]} won, {text}" if replay.winner in (0, 1) else (
      f"{ended}, {text}")
  draw.text((scene.size - 8 * _SHARP, middle), text, fill=_LIGHT, anchor="rm", font=font)
