"""Pictures of a recorded game: places, colours, fog, the caption, directions of units."""

import itertools
import re

import numpy as np
import pytest

from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import picture
from tests.viewers.games import KIND

Image, ImageDraw = (pytest.importorskip(f"PIL.{name}") for name in ("Image", "ImageDraw"))
SIZE = 120  # pixels


@pytest.fixture(scope="module")
def made(replay, states):
  rules = watch_frames.rules_of(replay)
  return watch_frames.make_frames(rules, states, watch_frames.derive(rules, states))


@pytest.fixture(scope="module")
def scene(replay, made):
  return picture.make_scene(replay, made, SIZE, view=0)


def pixels(scene, step):
  """Returns a picture as [height, width, 3] integers."""
  return np.asarray(picture.draw(scene, step), int)


def near(shown, colour, tolerance=40):
  """Returns where a picture has about a colour, [height, width] bool."""
  return np.abs(shown - colour).max(axis=-1) < tolerance


def test_a_picture_is_a_map_with_a_caption(scene):
  assert pixels(scene, 0).shape == (SIZE + picture.CAPTION, SIZE, 3)
  assert scene.size == 2 * SIZE and scene.scale == 2 * SIZE / 24


def test_the_players_start_in_opposite_corners(scene, made):
  """The pixels of each player's colour are about its town hall, mirrored at the middle."""
  shown = pixels(scene, 0)[:SIZE]
  centres = []
  for player in range(2):
    y, x = np.nonzero(near(shown, picture._TEAM[player]))
    assert len(x) > 20
    centres.append((x.mean(), y.mean()))
  hall = np.argwhere(made.kind[0, 0] == KIND["CommandCenter"])[0, 0]
  place = np.array([made.x[0, 0, hall], made.y[0, 0, hall]]) / watch_frames.PLACES * SIZE
  np.testing.assert_allclose(centres[0], place, atol=12)
  np.testing.assert_allclose(np.add(*centres), (SIZE, SIZE), atol=6)


def test_things_are_those_of_their_step(replay, scene, made):
  """Kinds, places and construction of the last step, by player and slot."""
  step, found = replay.steps, picture._things(scene, replay.steps)
  at = tuple(np.argwhere(made.kind[step] > 0).T)
  assert len(found) == len(at[0]) > (made.kind[0] > 0).sum()
  assert [(thing.player, thing.kind) for thing in found] == [
    *zip(at[0], made.kind[step][at], strict=True)]
  np.testing.assert_allclose([(thing.x, thing.y) for thing in found], np.stack(
    [made.x[step][at], made.y[step][at]], axis=1) / watch_frames.PLACES * scene.size)
  begun = np.argwhere((made.built > 0) & (made.built < 100))[0]
  building = [thing.built for thing in picture._things(scene, int(begun[0]))]
  assert min(building) == made.built[tuple(begun)] / 100


@pytest.mark.parametrize("view", [1, 2])
def test_a_view_hides_the_opponent(replay, made, view):
  """At the start no player sees the other: its things and its corner's ground are dark."""
  shown = pixels(picture.make_scene(replay, made, SIZE, view), 0)[:SIZE]
  own, other = picture._TEAM[view - 1], picture._TEAM[2 - view]
  assert near(shown, own).sum() > 20 and not near(shown, other).any()
  dark = shown.sum(axis=-1) < 3 * 30
  corners = [dark[:20, :20].mean(), dark[-20:, -20:].mean()]
  assert sorted(corners)[0] < 0.5 < sorted(corners)[1]


def test_the_caption_names_the_end(replay, scene):
  """The last picture has the result at the right; before there is the time alone."""
  def lit(step):
    return near(pixels(scene, step)[SIZE:], picture._LIGHT, 90).sum()

  assert lit(replay.steps - 1) > 0 and lit(replay.steps) > 1.5 * lit(replay.steps - 1)


@pytest.mark.parametrize("names, points, shown", [
  (("one", "two"), 13, "one [(]Terran[)]"), (("rusher", "zerg-main-0"), 10, "rusher [(]Terran[)]"),
  (("terran-league_exploiter-0",) * 2, 8, "terran-l.*[.]{3} [(]Terran[)]")])
def test_long_names_leave_room_for_the_time(replay, made, names, points, shown):
  """In a smaller font, or cut."""
  scene = picture.make_scene(replay._replace(players=names), made, 240, view=0)
  canvas, texts = ImageDraw.Draw(Image.new("RGB", (480, 532))), []

  def write(at, text, fill, anchor, font):
    assert anchor == "lm"
    texts.append((text, at[0], at[0] + canvas.textlength(text, font=font), font.size))

  canvas.text = write
  picture._caption(scene, canvas, 0)
  assert re.fullmatch(shown, texts[0][0]) and texts[3][0] == "0:00"
  assert {size for *_, size in texts} == {points * picture._SHARP}
  assert texts[0][1] == 16 and texts[3][2] == 480 - 16
  for (_, _, end, _), (_, begin, _, _) in itertools.pairwise(texts[:3]):
    assert begin == pytest.approx(end)
  assert texts[2][2] + 16 <= texts[3][1]


def test_units_face_the_middle_at_first_and_then_the_way_they_move(replay, made):
  facing = picture._facing(watch_frames.rules_of(replay), made)
  middle = watch_frames.PLACES / 2
  alive = made.kind[0] > 0
  at = middle - made.x[0].astype(float), middle - made.y[0].astype(float)
  np.testing.assert_allclose(facing[0][alive], np.arctan2(at[1], at[0])[alive])
  dx, dy = (np.diff(values.astype(float), axis=0) for values in (made.x, made.y))
  far = np.hypot(dx, dy) * 24 / watch_frames.PLACES
  moved = (made.kind[1:] == made.kind[:-1]) & (made.kind[1:] > 0) & (far > 0.1) & (far < 4)
  assert moved.sum() > 500
  np.testing.assert_allclose(facing[1:][moved], np.arctan2(dy, dx)[moved])


def test_the_ground_of_mini_is_flat(scene):
  ground = np.asarray(scene.ground)
  assert ground.shape == (2 * SIZE, 2 * SIZE, 3)
  assert (ground == picture._GROUND).all()


@pytest.mark.parametrize("colour, other, share, mixed", [
  ((100, 0, 50), (0, 200, 50), 0.25, (25, 150, 50)), ((9, 9, 9), (1, 1, 1), 1.0, (9, 9, 9))])
def test_colours_are_mixed(colour, other, share, mixed):
  assert picture._mix(colour, other, share) == mixed
