"""The variety of agents whose games are known."""

import jax
import numpy as np
import pytest

from starleague.actor import behaviour, evaluation
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.ablation import behaviours
from starleague.league.ratings import archive
from tests.actor import builders


def test_a_cell_is_held_by_the_best_agent_with_enough_games():
  few = archive.FEWEST_GAMES - 1
  agents = {
    "one": {"score": 0.25, "cells": [[0, 0, 7, 9], [1, 2, 3, archive.FEWEST_GAMES]]},
    "two": {"score": 0.75, "cells": [[0, 0, 7, 9], [4, 4, 0, few]]}}
  found = behaviours.measure(agents)
  assert found == pytest.approx((2 / np.prod(archive.SHAPE), 0.25 + 0.75))
  # Another agent can only add to it.
  more = behaviours.measure({**agents, "three": {"score": 0.0, "cells": [[4, 4, 0, few + 1]]}})
  assert more == pytest.approx((3 / np.prod(archive.SHAPE), 1.0))
  assert behaviours.measure({}) == (0.0, 0.0)


def test_an_agents_games_are_counted_by_cell():
  """Without z nothing is built: all games are in one cell, without an army or a kill."""
  evaluator = evaluation.make_evaluator(
    builders.building(), builders.make_policy(follows_z=False), builders.scripted, [0, 1], 4)
  played = evaluation.play(evaluator, np.int32(2), jax.random.key(0), unconditional(1, 3000))
  found = behaviours.describe(played)
  scores = [evaluated.wins + evaluated.draws / 2 for evaluated in evaluation.count(played).values()]
  assert found["score"] == pytest.approx(np.sum(scores) / 8)
  empty = archive.cell(archive.Behaviour(0.0, 0.0, archive.NEVER))
  assert found["cells"] == [[*empty, 8]]


def test_cells_are_those_of_the_agent_not_of_its_opponent(monkeypatch):
  """Player 0 attacks early, its opponent never."""
  evaluator = evaluation.make_evaluator(
    builders.building(), builders.make_policy(follows_z=False), builders.scripted, [0], 2)
  played = evaluation.play(evaluator, np.int32(2), jax.random.key(0), unconditional(1, 3000))
  own, other = archive.Behaviour(0.4, 1.2, 1000), archive.Behaviour(0.0, 0.0, archive.NEVER)
  monkeypatch.setattr(behaviour, "of_results", lambda results: [(own, other)] * 2)
  assert behaviours.describe(played)["cells"] == [[*archive.cell(own), 2]]
