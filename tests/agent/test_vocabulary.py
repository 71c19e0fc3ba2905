"""The vocabulary's counts, and the committed tables against the installed pysc2."""

import collections
import csv
import pathlib

import numpy as np
import pytest

from starleague.agent import vocabulary as v

DATA = pathlib.Path(v.__file__).resolve().parent / "data"


def committed(name: str) -> list[list[str]]:
  """The rows of a table below its header."""
  with (DATA / f"{name}.csv").open(newline="") as file:
    return list(csv.reader(file))[1:]


@pytest.fixture(scope="module")
def pysc2():
  """This project's reader of pysc2 and the modules that it reads."""
  pytest.importorskip("pysc2")
  from starleague.environments.sc2 import protocol
  from starleague.experiments.generate import vocabulary as reader
  return reader, protocol.tables()


def test_functions_by_type():
  assert v.NUM_FUNCTIONS == 327
  assert collections.Counter(v.FUNCTION_TYPES) == {
    "raw_cmd": 189, "raw_cmd_pt": 85, "raw_cmd_unit": 41, "raw_autocast": 10, "raw_no_op": 1,
    "raw_move_camera": 1}


def test_sizes():
  assert v.NUM_UNIT_TYPES == 256 >= len(v.UNIT_TYPES.names)
  assert v.NUM_UPGRADES == 90
  assert v.NUM_EFFECTS == 82
  assert len(v.TRAINING_FUNCTIONS) == 1 + 49 and v.TRAINING_FUNCTIONS[0] == 0


def test_functions_aimed_on_the_screen():
  # AlphaStar Unplugged counts 64 commands at points and 26 at units. One of the 64, the refinery,
  # is named after a point and takes a unit.
  aimed = collections.Counter(np.array(v.FUNCTION_TYPES)[v.ON_SCREEN].tolist())
  assert aimed == {"raw_cmd_pt": 63, "raw_cmd_unit": 27}
  for name, expected in (("Build_Refinery_pt", True), ("Effect_PsiStorm_pt", True),
                         ("Attack_unit", True), ("Attack_pt", False), ("Effect_Scan_pt", False),
                         ("Effect_InjectLarva_unit", False), ("Train_Marine_quick", False)):
    assert v.ON_SCREEN[v.FUNCTIONS.index(name)] == expected, name


def test_aliases_map_to_general_functions_of_the_same_kind():
  assert v.FUNCTIONS.lookup.shape == (564,)
  assert v.FUNCTIONS.lookup.min() == 0 and v.FUNCTIONS.lookup.max() == 326
  assert set(v.FUNCTIONS.lookup.tolist()) == set(range(327))
  # A general function is its own alias.
  np.testing.assert_array_equal(v.FUNCTIONS.lookup[v.FUNCTIONS.ids], np.arange(327))


def test_special_functions():
  assert v.FUNCTIONS.names[0] == "no_op" and v.FUNCTIONS.from_id(0) == 0
  assert "raw_move_camera" in v.FUNCTIONS.names
  assert "Attack_pt" in v.FUNCTIONS.names and "Attack_Attack_pt" not in v.FUNCTIONS.names


def test_arguments_follow_the_type_and_not_the_name():
  used = v.ARGUMENT_TABLE.astype(int)
  assert used[:, 0].all() and used[:, 1].all()  # the function itself and its delay
  # queued: commands of three kinds; repeat: quick ones; units: those and autocasts.
  assert used.sum(axis=0).tolist() == [327, 327, 189 + 85 + 41, 189, 189 + 85 + 41 + 10, 41, 85 + 1]
  refinery = v.FUNCTIONS.index("Build_Refinery_pt")
  assert v.FUNCTION_TYPES[refinery] == "raw_cmd_unit"
  assert used[refinery].tolist() == [1, 1, 1, 0, 1, 1, 0]
  assert used[0].tolist() == [1, 1, 0, 0, 0, 0, 0]
  assert used[v.FUNCTIONS.index("raw_move_camera")].tolist() == [1, 1, 0, 0, 0, 0, 1]
  assert not (used[:, 5] & used[:, 6]).any()  # none takes both targets


def test_argument_mask_is_the_table():
  functions = np.array([[0, 1], [2, 326]])
  mask = v.argument_mask(functions)
  np.testing.assert_array_equal(np.stack(mask, axis=-1), v.ARGUMENT_TABLE[functions])
  assert bool(v.argument_mask(np.int16(0)).delay) and not bool(v.argument_mask(0).units)


@pytest.mark.parametrize("function, capable", (
  ("Train_Marine_quick", {"Barracks"}), ("Build_Barracks_pt", {"SCV"}),
  ("Train_Zergling_quick", {"Larva", "Hatchery"}), ("Train_Marauder_quick", {"Barracks"}),
  ("Research_Stimpack_quick", {"Barracks", "TechLab", "BarracksTechLab"}),
  ("Effect_Stim_quick", {"Marine", "Marauder"}),
  ("Harvest_Gather_unit", {"SCV", "MULE", "Probe", "Drone"}), ("Train_Probe_quick", {"Nexus"})))
def test_executors_of_known_functions(function, capable):
  types = np.flatnonzero(v.CAPABLE[v.FUNCTIONS.index(function)])
  assert {v.UNIT_TYPES.names[i] for i in types} == capable


def test_every_construction_has_a_cancel_function():
  for name in ("Cancel_quick", "Cancel_Last_quick"):
    assert v.CAPABLE[v.FUNCTIONS.index(name)].all()


def test_every_function_has_an_executor():
  assert v.CAPABLE.shape == (327, 256) and v.CAPABLE.any(axis=1).all()


def test_game_ids():
  marine = v.UNIT_TYPES.index("Marine")
  assert v.UNIT_TYPES.ids[marine] == 48 and v.UNIT_TYPES.from_id(48) == marine
  assert v.UNIT_TYPES.from_id(-1) == v.UNIT_TYPES.from_id(10**6) == 0
  assert v.UPGRADES.names[0] == v.BUFFS.names[0] == v.UNIT_TYPES.names[0] == "Unknown"
  with pytest.raises(KeyError, match="Firebat"):
    v.UNIT_TYPES.index("Firebat")


def test_names_are_unique():
  for table in (v.FUNCTIONS, v.UNIT_TYPES, v.UPGRADES, v.BUFFS):
    assert len(set(table.names)) == len(table.names)


def test_digest_changes_with_the_data(tmp_path, monkeypatch):
  for path in DATA.glob("*.csv"):
    (tmp_path / path.name).write_bytes(path.read_bytes())
  monkeypatch.setattr(v, "_DATA", tmp_path)
  assert v.digest.__wrapped__() == v.digest()
  with (tmp_path / "buffs.csv").open("a") as file:
    file.write(" ")
  assert v.digest.__wrapped__() != v.digest()


def as_text(rows) -> list[list[str]]:
  return [[str(cell) for cell in row] for row in rows]


def test_committed_tables_are_pysc2s(pysc2):
  reader, (actions, units, upgrades, buffs) = pysc2
  functions, aliases = reader.function_rows(actions)
  assert as_text(functions) == committed("functions")
  assert as_text(aliases) == committed("aliases")
  assert as_text(reader.unit_rows(units)) == committed("unit_types")
  assert as_text(reader.id_rows(upgrades.Upgrades)) == committed("upgrades")
  assert as_text(reader.id_rows(buffs.Buffs)) == committed("buffs")


def test_committed_arguments_are_pysc2s(pysc2):
  _, (actions, *_) = pysc2
  ours = {"queued": "queued", "unit_tags": "units", "target_unit_tag": "target_unit",
          "world": "location"}
  for function in actions.RAW_FUNCTIONS:
    taken = {ours[argument.name] for argument in function.args}
    used = v.ARGUMENT_TABLE[v.FUNCTIONS.from_id(int(function.id))]
    found = {field for field, use in zip(v.Arguments._fields, used, strict=True) if use}
    # pysc2 takes the delay apart from the function, and repeats a command by calling it again.
    assert found - {"function", "delay", "repeat"} == taken, function.name
