"""The tables of replays: their rules by hand, and the committed ones."""

import csv
import pathlib
import types

import pytest

from starleague.agent import vocabulary as v
from starleague.data import replays
from starleague.experiments.generate import replay_tables

TABLES = pathlib.Path(replays.__file__).parent
TREE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "techtree"


def rows(name):
  with (TABLES / name).open(newline="") as file:
    return list(csv.DictReader(file))


def test_gaps_are_filled_where_the_neighbours_agree():
  """Build 2 lacks b, which lies between a and c at a distance of 2 in build 1 too, and lacks e:
  between c and f build 2 has one more link than build 1, so nothing is known there."""
  tables = {1: {10: "a", 11: "b", 12: "c", 13: "e", 14: "f"}, 2: {20: "a", 22: "c", 25: "f"}}
  assert replay_tables.fill_gaps(tables) == {
    1: tables[1], 2: {20: "a", 21: "b", 22: "c", 25: "f"}}


def test_lists_of_products_are_left_out(tmp_path):
  (tmp_path / "base_abilities.csv").write_text("1,move\n2,Zealot\n2,Stalker\n3,Unknown\n")
  assert replay_tables.read_links(tmp_path, {"move", "Zealot", "Stalker"}) == {34784: {1: "move"}}
  with pytest.raises(replay_tables.GameDataError, match="expected files"):
    replay_tables.read_links(tmp_path / "none", set())


@pytest.mark.parametrize("name, text", [
  ("new_abilities.csv", "1,move\n"), ("base_abilities.csv", "move,1\n"),
  ("base_abilities.csv", "1\n"), ("base_abilities.csv", '1,"' + 200_000 * "a" + '"\n')])
def test_a_file_that_is_no_list_of_links_is_named(tmp_path, name, text):
  (tmp_path / name).write_text(text)
  with pytest.raises(replay_tables.GameDataError, match=(
      f"^{tmp_path / name}: expected the lines LINK,NAME of a build, found: ")):
    replay_tables.read_links(tmp_path, {"move"})


def test_game_data_that_is_none(tmp_path):
  (tmp_path / "a.pb").write_bytes(b"\xff\xff")
  with pytest.raises(replay_tables.GameDataError, match="expected a serialised ResponseData"):
    replay_tables.read_game_data(tmp_path / "a.pb")
  for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "c", "No such file or directory")):
    with pytest.raises(replay_tables.GameDataError, match=(
        f"^{path}: expected a serialised ResponseData, found no file that can be read: {reason}$")):
      replay_tables.read_game_data(path)
  (tmp_path / "b.pb").write_bytes(b"")
  with pytest.raises(replay_tables.GameDataError, match="expected abilities"):
    replay_tables.read_game_data(tmp_path / "b.pb")


def test_abilities_and_names_of_game_data():
  ability = types.SimpleNamespace
  marine = int(v.UNIT_TYPES.ids[v.UNIT_TYPES.index("Marine")])
  hellbat = int(v.UNIT_TYPES.ids[v.UNIT_TYPES.index("Hellbat")])
  blink = int(v.UPGRADES.ids[v.UPGRADES.index("Blink")])
  data = types.SimpleNamespace(
    abilities=[ability(link_name="attack", link_index=0, ability_id=23, remaps_to_ability_id=3674),
               ability(link_name="move", link_index=7, ability_id=999999, remaps_to_ability_id=0),
               ability(link_name="other", link_index=0, ability_id=23, remaps_to_ability_id=3674)],
    units=[types.SimpleNamespace(unit_id=marine, name="Marine"),
           types.SimpleNamespace(unit_id=hellbat, name="HellionTank")],
    upgrades=[types.SimpleNamespace(upgrade_id=blink, name="BlinkTech")])
  assert replay_tables.ability_rows([data], {"attack", "move"}) == [["attack", 0, 3674]]
  assert replay_tables.alias_rows([data]) == [
    ["unit", "HellionTank", "Hellbat"], ["upgrade", "BlinkTech", "Blink"]]


def test_committed_tables_are_of_this_vocabulary():
  assert len(rows("links.csv")) > 350 and len(rows("abilities.csv")) > 700
  assert {int(row["ability"]) for row in rows("abilities.csv")} <= v.ABILITIES.keys()
  for row in rows("names.csv"):
    table = {"unit": v.UNIT_TYPES, "upgrade": v.UPGRADES}[row["kind"]]
    assert row["vocabulary"] in table.names and row["game"] not in table.names


@pytest.mark.skipif(not TREE.is_dir(), reason=f"needs the lists in {TREE}")
@pytest.mark.parametrize("listed, build", [("70154", "70154"), ("76114", "76114"),
                                           ("77379", "77379"), ("80949", "80949"),
                                           ("89720", "80949")])
def test_committed_links_agree_with_the_lists_of_their_build(listed, build):
  """The last list moved nothing that is in the tables."""
  with (TREE / f"{listed}_abilities.csv").open(newline="") as file:
    names = {int(row[0]): row[1] for row in csv.reader(file) if row}
  links = {row["name"]: int(row[build]) for row in rows("links.csv") if row[build]}
  compared = [name for name in links if name in names.values()]
  assert len(compared) > 200
  assert [name for name in compared if names.get(links[name]) != name] == []
