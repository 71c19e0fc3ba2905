"""Kept programs: loaded without tracing, replaced if damaged or made from other sources."""

import numpy as np
import pytest

from starleague.environments.sc2.server.game import engine, exported, game
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.skirmish.games import exact


@pytest.fixture
def folder(tmp_path):
  exported.keep_in(tmp_path / "programs")
  yield tmp_path / "programs"
  exported.keep_in(None)


def cubes(made, name="cubes"):
  """A program, as a process makes it; `made` counts the times that its function is built."""
  def make():
    made.append(1)
    return lambda orders: orders._replace(x=orders.x ** 3)
  return exported.Exported(name, make)


def orders():
  values = np.arange(3, dtype=np.float32)
  return exported.state.Orders(values, values, values, values, values)


def test_a_later_process_loads_a_program_without_making_it(folder):
  made = []
  for _ in range(2):
    found = cubes(made)(orders())
    assert type(found).__name__ == "Orders" and found.x.tolist() == [0, 1, 8]
  assert len(made) == 1
  assert [path.suffix for path in folder.iterdir()] == [".stablehlo"]


def test_without_a_folder_every_process_makes_its_programs(tmp_path):
  made = []
  for _ in range(2):
    assert cubes(made)(orders()).x.tolist() == [0, 1, 8]
  assert len(made) == 2 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:100],
                                    lambda data: data[:40] + b"~~~~~~~~" + data[48:]])
def test_a_damaged_file_is_replaced(folder, damage):
  made = []
  cubes(made)(orders())
  path = next(folder.iterdir())
  whole = path.read_bytes()
  path.write_bytes(damage(whole))
  assert cubes(made)(orders()).x.tolist() == [0, 1, 8]
  assert len(made) == 2 and len(path.read_bytes()) == len(whole)
  assert cubes(made)(orders()).x.tolist() == [0, 1, 8] and len(made) == 2


def test_other_sources_make_other_programs(folder, monkeypatch):
  made = []
  cubes(made)(orders())
  monkeypatch.setattr(exported, "sources_digest", lambda: "0" * 16)
  cubes(made)(orders())
  assert len(made) == 2
  assert [path.name for path in folder.iterdir()] == [f"cubes-{'0' * 16}.stablehlo"]


@pytest.mark.parametrize("name", ["rules.py", "units.csv"])
def test_code_and_tables_are_sources(name, tmp_path, monkeypatch):
  monkeypatch.setattr(exported.starleague, "__file__", str(tmp_path / "__init__.py"))
  (tmp_path / "environments").mkdir()
  found = set()
  for text in ("Marine,45", "Marine,55"):
    (tmp_path / "environments" / name).write_text(text)
    found.add(exported.sources_digest.__wrapped__())
  assert len(found) == 2


def test_a_program_whose_name_begins_another_ones_leaves_it(folder):
  """As `large-advance` begins `large-advance-scripted`."""
  made = []
  for name in ("cubes-scripted", "cubes", "cubes-scripted"):
    cubes(made, name)(orders())
  assert len(made) == 2
  assert sorted(path.name.rpartition("-")[0] for path in folder.iterdir()) == [
    "cubes", "cubes-scripted"]


def test_a_kept_program_plays_the_same_game(folder):
  engine.make_programs.cache_clear()
  engine.make_advance.cache_clear()
  try:
    states = []
    for _ in range(2):  # the second one is loaded
      engine.make_advance.cache_clear()
      engine.make_programs.cache_clear()
      played = game.Game(Battlefield("mini"), (1, 1), 2)
      assert sum(len(changes.loops) for changes in played.play(40)) == 40
      states.append(exact.state_hash(played.state))
    kept = sorted(path.name.rpartition("-")[0] for path in folder.iterdir())
    assert states[0] == states[1] and kept == ["mini-advance", "mini-reset"]
  finally:
    engine.make_programs.cache_clear()
    engine.make_advance.cache_clear()
  exported.keep_in(None)
  traced = game.Game(Battlefield("mini"), (1, 1), 2)
  list(traced.play(40))
  assert exact.state_hash(traced.state) == states[0]
