"""The arrays of a recorded game equal its states."""

import jax
import numpy as np

from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.rules.tables import constants
from starleague.viewers.watch import frames as watch_frames
from tests.environments.skirmish import technology as tech
from tests.viewers.games import KIND, RULES, STRUCTURES


def test_frames_equal_the_states(replay, states, frames):
  assert len(frames.kind) == replay.steps + 1
  np.testing.assert_array_equal(frames.kind, states.kind)
  np.testing.assert_array_equal(frames.health, np.ceil(states.health))
  grain = RULES.tier.map_size / watch_frames.PLACES
  for shown, real in ((frames.x, states.x), (frames.y, states.y)):
    np.testing.assert_allclose(shown * grain - RULES.half, real, atol=0.51 * grain)
  np.testing.assert_array_equal(
    frames.flags & watch_frames.HURT > 0, states.hurt & (states.kind > 0))
  for player in range(2):
    np.testing.assert_array_equal(
      frames.flags[:, 1 - player] & watch_frames.SEEN > 0, states.memory.seen[:, player])
  np.testing.assert_array_equal(
    frames.flags[..., STRUCTURES:] & watch_frames.MINERALS > 0, states.cargo > 0)
  assert (states.cargo > 0).any()
  np.testing.assert_array_equal(frames.visible, states.memory.visible)
  np.testing.assert_array_equal(frames.known_kind, states.memory.kind)
  np.testing.assert_array_equal(frames.known_patches, states.memory.patches)
  half = RULES.tier.resources // 2
  np.testing.assert_array_equal(frames.patches[:, :half], states.patches[:, 0])
  np.testing.assert_array_equal(frames.patches[:, half:], states.patches[:, 1])


def test_construction_and_training_progress_is_in_percent(states, frames):
  barracks = states.kind[..., :STRUCTURES] == KIND["Barracks"]
  loops = RULES.products.loops[KIND["Barracks"]]
  assert barracks.any()
  np.testing.assert_array_equal(
    frames.built[barracks], np.floor(100 - 100 * states.unfinished[barracks] / loops))
  assert np.all(frames.built[states.kind[..., :STRUCTURES] == 0] == 0)
  assert frames.built[0, :, 0].tolist() == [100, 100]  # the town hall is finished at the start
  np.testing.assert_array_equal(frames.product, states.queue[..., 0])
  assert frames.trained.max() > 80 and np.all(frames.trained[frames.product == 0] == 0)


def test_figures_equal_the_states(states, frames):
  shown = dict(zip(watch_frames.FIGURES, np.moveaxis(frames.figures, -1, 0), strict=True))
  np.testing.assert_array_equal(shown["minerals"], states.minerals)
  np.testing.assert_array_equal(shown["mined"], states.score.collected)
  np.testing.assert_array_equal(
    shown["workers"], np.sum(states.kind == KIND["SCV"], axis=-1))
  fighters = [KIND[name] for name in ("Marine", "Marauder", "Hellion")]
  np.testing.assert_array_equal(
    shown["army"], np.sum(np.isin(states.kind, fighters), axis=-1))
  assert shown["food_used"][0].tolist() == [4, 4] and shown["food_cap"][0].tolist() == [18, 18]


def test_patches_are_shown_at_their_positions(replay):
  places, own = watch_frames.patch_places(replay)
  size = RULES.tier.map_size
  x, y = RULES.tier.patches[0]
  np.testing.assert_allclose(places[0], [x / size + 0.5, y / size + 0.5])
  np.testing.assert_allclose(own[1], 1 - own[0])
  swapped = replay._replace(match_up=replays.make_match_up(swap_sides=True))
  np.testing.assert_allclose(watch_frames.patch_places(swapped)[0], 1 - places)


def test_passengers_are_drawn_with_their_transport():
  state = tech.start(tech.TERRAN, {})
  for slot, name, place in ((tech.S + 20, "Medivac", 7.0), (tech.S + 21, "Marine", 1e3)):
    tech.put(state, 1, slot, name, place, -place)
  state.orders.verb[1, 21], state.orders.target[1, 21] = constants.ABOARD, tech.S + 20
  x, y = watch_frames._shown(tech.RULES, jax.tree.map(lambda values: values[None], state))
  assert x[0, 1, tech.S + 20:tech.S + 22].tolist() == [7, 7]
  assert y[0, 1, tech.S + 20:tech.S + 22].tolist() == [-7, -7]
  np.testing.assert_array_equal(x[0, 0], state.x[0])
