"""A replay as a GIF of limited size, for READMEs."""

import io
import math
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state.state import State
from starleague.viewers.watch import frames, picture

if TYPE_CHECKING:  # Pillow is an optional dependency
  from PIL.Image import Image

MAX_BYTES = 3_000_000
MAX_PICTURES = 240
MILLISECONDS = 80  # per picture
LAST_MILLISECONDS = 3000
COLOURS = 96
_PALETTE_PICTURES = 12  # pictures from which the common palette is computed


def write(path: str | os.PathLike[str], replay: Replay, states: State, *, size: int = 400,
          view: int = 0) -> pathlib.Path:
  """Writes a game as a GIF of less than MAX_BYTES, atomically.

  Args:
    path: file to write.
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
    size: width of the map, pixels.
    view: 1 or 2 for that player's view; 0 for the whole map.

  Raises:
    UserError: Pillow is not installed.
  """
  try:
    import PIL  # noqa: F401
  except ImportError as error:
    raise UserError("a GIF needs Pillow, which is not installed: pip install 'starleague[gif]'"
                    ) from error
  rules = frames.rules_of(replay)
  made = frames.make_frames(rules, states, frames.derive(rules, states))
  scene = picture.make_scene(replay, made, size, view)
  stride = max(1, -(-replay.steps // MAX_PICTURES))
  while True:
    steps = [*range(0, replay.steps, stride), replay.steps]
    data = _encode([picture.draw(scene, step) for step in steps])
    if len(data) <= MAX_BYTES or stride >= max(1, replay.steps):
      break
    stride = math.ceil(stride * 1.05 * len(data) / MAX_BYTES)
  path = pathlib.Path(path)
  with files.replacing(path, "wb") as file:
    file.write(data)
  return path


def _encode(pictures: Sequence["Image"]) -> bytes:
  """Encodes pictures with one palette, so that unchanged pixels need no data."""
  from PIL import Image
  chosen = pictures[::max(1, len(pictures) // _PALETTE_PICTURES)]
  width, height = pictures[0].size
  sheet = Image.new("RGB", (width, height * len(chosen)))
  for i, image in enumerate(chosen):
    sheet.paste(image, (0, i * height))
  palette = sheet.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
  flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in pictures]
  file = io.BytesIO()
  durations = [MILLISECONDS] * (len(flat) - 1) + [LAST_MILLISECONDS]
  flat[0].save(file, "GIF", save_all=True, append_images=flat[1:], duration=durations, loop=0,
               optimize=False, disposal=1)
  return file.getvalue()
