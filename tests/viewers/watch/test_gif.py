"""A recorded game as a GIF."""

import sys

import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.viewers.watch import gif


@pytest.mark.parametrize("view", [0, 2])
def test_gif_shows_the_whole_game(replay, states, view, tmp_path, monkeypatch):
  image = pytest.importorskip("PIL.Image")
  monkeypatch.setattr(gif, "MAX_PICTURES", 10)
  path = gif.write(tmp_path / "game.gif", replay, states, size=96, view=view)
  assert path.stat().st_size < gif.MAX_BYTES
  with image.open(path) as shown:
    assert shown.size == (96, 96 + 26) and 2 <= shown.n_frames <= 11 and "loop" in shown.info
    first = np.asarray(shown.convert("RGB"), int)
    shown.seek(shown.n_frames - 1)
    last = np.asarray(shown.convert("RGB"), int)
    assert shown.info["duration"] == gif.LAST_MILLISECONDS
  assert np.abs(last - first).max() > 60
  # Player 1's colour, at the top left, hidden from player 2.
  blue = (first[:96, :, 2] > 190) & (first[:96, :, 0] < 180)
  assert blue[:48, :48].any() == (view == 0)


def test_gif_respects_its_size_limit(replay, states, tmp_path, monkeypatch):
  pytest.importorskip("PIL.Image")
  path = gif.write(tmp_path / "game.gif", replay, states, size=64)
  before = path.stat().st_size
  monkeypatch.setattr(gif, "MAX_BYTES", before // 2)
  assert gif.write(path, replay, states, size=64).stat().st_size <= before // 2


def test_gif_without_pillow_names_the_package(replay, states, tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "PIL", None)
  with pytest.raises(UserError, match="needs Pillow, which is not installed: pip install"):
    gif.write(tmp_path / "game.gif", replay, states)
  assert list(tmp_path.iterdir()) == []
