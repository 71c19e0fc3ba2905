"""The z of training games from a library."""

import numpy as np
import pytest

from starleague.agent import types
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import z_source
from tests.experiments.run.libraries import TERRAN, save_library


def run_config(**changes):
  return settings.complete({}, changes)


def test_the_source_of_z_follows_the_config(tmp_path):
  assert z_source.library_path(run_config(), tmp_path) == tmp_path / run_files.LIBRARY
  assert z_source.library_path(run_config(init="random"), tmp_path) is None
  config = run_config(**{"init": "random", "actor.library": "humans.npz"})
  assert str(z_source.library_path(config, tmp_path)) == "humans.npz"


def test_conditions_have_the_run_s_probabilities_and_mmr(tmp_path):
  config = run_config(**{"actor.pseudo_probability": 0.25, "environment.mmr": 5500})
  save_library(tmp_path / "z.npz")
  found = z_source.from_library(registry.make_parts(config), config, tmp_path / "z.npz")
  np.testing.assert_array_equal(found.active, [0.25, 0.25, 0.0, 0.0])
  assert found.mmr == 5500 and found.rows.shape[-1] == z_source.PER_MATCH_UP
  assert (found.rows[0, TERRAN, TERRAN] > 0).all()


@pytest.mark.parametrize("name, stored", [
  ("AbyssalReef", "Abyssal Reef LE"), ("AbyssalReef", "AbyssalReef"),
  ("Abyssal Reef LE", "AbyssalReef")])
def test_maps_of_starcraft_are_found_by_either_name(tmp_path, name, stored):
  """Bots of random race get no z; those of a race need that match-up alone."""
  config = run_config(**{
    "environment.name": "sc2", "sc2.maps": name, "sc2.races": "terran",
    "environment.opponents": "terran:easy,random:hard", "actor.library": "z.npz",
    "actor.pseudo_probability": 0.25})
  save_library(tmp_path / "z.npz", map_name=stored)
  found = z_source.from_library(registry.make_parts(config), config, tmp_path / "z.npz")
  assert (found.rows[0, TERRAN, TERRAN] > 0).all()
  assert not found.rows[0, TERRAN, types.RACES.index("random")].any()


@pytest.mark.parametrize("damage, message", [
  (lambda path: save_library(path, sides=(0,)), "z.npz: No z for map .*terran, side 1"),
  (lambda path: save_library(path, map_name="Cyber Forest"), "z.npz: No z for map .*Cyber Forest"),
  (lambda path: path.write_bytes(b"PK\3\4 no archive"),
   "z.npz: expected an .npz file, found 15 bytes"),
  (lambda path: None, "z.npz"),
])
def test_a_library_that_does_not_fit_is_refused_in_one_line(tmp_path, damage, message):
  config = run_config()
  damage(tmp_path / "z.npz")
  with pytest.raises(UserError, match=message) as error:
    z_source.from_library(registry.make_parts(config), config, tmp_path / "z.npz")
  assert "\n" not in str(error.value)
