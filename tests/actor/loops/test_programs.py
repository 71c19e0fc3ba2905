"""The compiled programs of actors: their sizes, the shapes of their records, hosted games."""

import jax
import numpy as np
import pytest

from starleague.actor import players
from starleague.actor.loops import programs
from starleague.common.errors import UserError
from starleague.data.z.conditioning import unconditional
from tests.actor.loops.clockwork_parts import HOSTED, PARTS
from tests.actor.loops.options import options

OPTIONS = options(actor__games=6, actor__inference_batch=4, actor__iterations=3,
                  league__places=3, league__chunk=2)


@pytest.mark.parametrize("learners, places, slots, matches, opponents", [
  (1, 3, 4, 3, 11),  # 3 matches, and 4 slots against 2 scripted players
  (4, 3, 16, 12, 44),
  (2, 4, 10, 8, 28),
  (0, 3, 1, 1, 3),  # a program has room for one match at least
])
def test_sizes_of_a_league(learners, places, slots, matches, opponents):
  sizes = programs.league_sizes(PARTS, options(league__places=places, league__chunk=2), learners)
  assert sizes == players.Sizes(slots=slots, matches=matches, scripts=2, chunk=2)
  assert sizes.opponents == opponents


@pytest.mark.parametrize("make", [
  lambda: programs.make_single(HOSTED, OPTIONS),
  lambda: programs.make_league(HOSTED, OPTIONS, programs.league_sizes(HOSTED, OPTIONS, 1)),
  lambda: programs.compiled_games(HOSTED)])
def test_hosted_games_have_no_compiled_program(make):
  with pytest.raises(UserError, match="played outside JAX; expected a run in a game"):
    make()


def test_a_program_has_the_rewards_of_its_options_and_the_grid_of_its_game():
  parts = PARTS._replace(compiled=PARTS.compiled._replace(grid_per_unit=3.0))
  chosen = options(actor__draw_reward=-0.25, actor__pseudo_scale=0.21)
  config = programs._config(parts, chosen)
  assert (config.draw, config.pseudo_scale, config.grid_per_unit) == (-0.25, 0.21, 3.0)


def shapes(program, params, opponents):
  """Returns the shapes of the state, the records and the results of a call."""
  conditioning = unconditional(len(PARTS.maps), PARTS.mmr)
  state = jax.eval_shape(program.init, jax.random.key(0), np.zeros(6, np.int32), conditioning)
  return jax.eval_shape(program.run, params, state, np.ones(opponents, np.float32), conditioning)


def test_a_program_of_one_agent_has_the_sizes_of_its_options():
  state, records, results = shapes(programs.make_single(PARTS, OPTIONS), np.float32(1), 3)
  assert state.opponent.shape == (6,)
  assert records.row.shape == (3, 4) and results.over.shape == (3, 6)


def test_a_program_of_a_league_has_weights_for_each_slot():
  sizes = programs.league_sizes(PARTS, OPTIONS, 1)
  loaded = players.stack([np.float32(slot) for slot in range(4)], np.array([[0, 1]] * 3))
  program = programs.make_league(PARTS, OPTIONS, sizes)
  state, records, results = shapes(program, loaded, sizes.opponents)
  assert state.opponent.shape == (6,)
  assert records.row.shape == (3, 4) and results.over.shape == (3, 6)
