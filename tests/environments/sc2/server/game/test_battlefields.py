"""Map files: what is written is read; everything else is refused or stands for a map."""

import numpy as np
import pytest

from starleague.environments.sc2.server.game import battlefields, engine, world
from starleague.environments.sc2.server.game.battlefields import Battlefield, MapError


@pytest.mark.parametrize("battlefield", [
  Battlefield(), Battlefield("mini", "open", False), Battlefield("default", "river"),
  Battlefield("mini", marines=8)])
def test_a_map_file_is_read_as_it_was_written(battlefield):
  assert battlefields.decode(battlefields.encode(battlefield)) == battlefield


@pytest.mark.parametrize("data", [
  b"", b"MPQ\x1a", b"[]", b'{"skirmish": 3}', b'{"skirmish": {"tier": "mini", "map": "open"}}',
  b'{"skirmish": {"tier": "mini", "map": "open", "realistic": 1, "marines": 0}}', b"[" * 4000,
  b" " * 9999])
def test_other_bytes_are_refused(data):
  with pytest.raises(MapError, match="map: expected JSON"):
    battlefields.decode(data)


def test_unknown_tiers_and_maps_are_refused():
  with pytest.raises(MapError, match="tier 'huge': expected one of mini, default, large"):
    Battlefield("huge")
  with pytest.raises(MapError, match="'ramps': expected one of open in tier mini"):
    Battlefield("mini", "ramps")
  with pytest.raises(MapError, match="marines 99: expected 0 to 12"):
    Battlefield("mini", marines=99)


def test_own_maps_are_all_maps_as_they_are():
  own = battlefields.own_maps()
  assert len(own) == 1 + 3 + 3 and not any(field.realistic for field in own.values())
  assert own["Skirmish/SkirmishDefaultRamps.SC2Map"] == Battlefield("default", "ramps", False)
  assert own["Skirmish/SkirmishDefaultRamps.SC2Map"].map_index == 1


def test_maps_are_found_by_name_bytes_or_file(tmp_path):
  written = battlefields.encode(Battlefield("default", "river"))
  (tmp_path / "Any.SC2Map").write_bytes(written)
  (tmp_path / "Real.SC2Map").write_bytes(b"MPQ\x1a")
  assert battlefields.find("Any.SC2Map", b"", tmp_path).map == "river"
  assert battlefields.find("Any", b"", tmp_path).map == "river"
  assert battlefields.find("Absent.SC2Map", written, tmp_path).tier == "default"
  assert battlefields.find("Real.SC2Map", b"", tmp_path) == battlefields.stand_in("real")
  assert battlefields.find("Melee/Simple64.SC2Map", b"", None) == Battlefield("large", "ramps")
  for name in ("Absent.SC2Map", "", ".", "/", "a" * 300):  # the last one is too long for a file
    with pytest.raises(FileNotFoundError, match="no such file"):
      battlefields.find(name, b"", tmp_path)
  with pytest.raises(MapError, match="found neither"):
    battlefields.find("", b"", None)


@pytest.mark.parametrize("values, message", [
  ('{"tier": "huge", "map": "open", "realistic": true, "marines": 0}',
   "map: tier 'huge': expected one of mini, default, large"),
  ('{"tier": "mini", "map": "ramps", "realistic": true, "marines": 0}',
   "map: 'ramps': expected one of open in tier mini"),
  ('{"tier": "mini", "map": "open", "realistic": true, "marines": 99}',
   "map: marines 99: expected 0 to 12"),
  ("3", 'map: expected JSON {"skirmish": {tier, map, realistic, marines}}, found '
        """b'{"skirmish": 3}': write it with the layout command""")])
def test_a_map_file_with_a_wrong_value_is_no_other_map(tmp_path, values, message):
  data = b'{"skirmish": %s}' % values.encode()
  (tmp_path / "Mine.SC2Map").write_bytes(data)
  for name, sent, folder in (("Mine", b"", tmp_path), ("Mine", data, None), ("", data, None)):
    with pytest.raises(MapError) as found:
      battlefields.find(name, sent, folder)
    assert str(found.value) == message


@pytest.mark.parametrize("data", [
  b"MPQ\x1a", b"[]", b'{"map": 1}', b"[" * 4000, b'{"skirmish": 3}' + b" " * 4096])
def test_bytes_that_are_no_map_file_stand_for_the_map_of_their_name(data):
  assert not battlefields.is_own(data)
  assert battlefields.find("Simple64", data, None) == Battlefield("large", "ramps")


def test_paths_are_those_of_the_installation(tmp_path):
  assert "mini_games/MoveToBeacon.SC2Map" in battlefields.paths(None)
  for name in ("Mine.SC2Map", "Melee/Simple64.SC2Map", "notes.txt"):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"")
  assert battlefields.paths(tmp_path) == ["Melee/Simple64.SC2Map", "Mine.SC2Map"]


def test_stand_ins_depend_on_the_name_alone():
  maps = {battlefields.stand_in(f"Map{i}LE").map for i in range(30)}
  assert maps == {"open", "ramps", "river"}
  assert battlefields.stand_in("a/AcropolisLE.SC2Map") == battlefields.stand_in("acropolisle")


@pytest.mark.parametrize("spellings", [
  ("(2)CatalystLE", "Catalyst LE", "Catalyst", "Ladder2018Season2/CatalystLE.SC2Map",
   "catalystle.sc2map", "Ladder2018Season2\\CatalystLE.SC2Map"),
  ("Bel'Shir Vestige LE", "BelShirVestigeLE", "BelShirVestige"),
  ("16-BitLE", "16Bit", "16-Bit LE"), ("Newkirk Precinct TE", "NewkirkPrecinct"),
  ("Para Site LE", "ParaSite", "ParaSiteLE"), ("Simple64", "Melee/Simple64.SC2Map", "simple 64"),
  ("SkirmishMiniOpen", "Skirmish/SkirmishMiniOpen.SC2Map", "skirmish mini open")])
def test_one_name_is_one_map_in_any_folder_and_spelling(spellings):
  assert len({battlefields.stand_in(name) for name in spellings}) == 1
  assert len({battlefields.find(name, b"", None) for name in spellings}) == 1


@pytest.mark.parametrize("name, expected", [
  ("AcropolisLE", "open"), ("ThunderbirdLE", "ramps"), ("AutomatonLE", "river")])
def test_ladder_maps_keep_their_battlefield(name, expected):
  assert battlefields.stand_in(name) == Battlefield("large", expected)


@pytest.mark.parametrize("name, tier", [
  ("Marine Split Challenge", "large"), ("MarineSplitChallenge.SC2Map", "large"),
  ("Marine Split Challenge-LOTV", "large"), ("mini_games/MoveToBeacon", "mini")])
def test_arcade_maps_have_one_participant_with_marines(name, tier):
  assert battlefields.stand_in(name) == Battlefield(tier, "open", marines=8)


def test_python_sc2_finds_bases_inside_an_arcade_map():
  battlefield = battlefields.stand_in("Marine Split Challenge")
  rules = engine.rules_of(battlefield.tier)
  places = world.shown_resources(rules, battlefield.realistic) + rules.tier.map_size / 2
  homes = np.array(rules.tier.homes).T + rules.tier.map_size / 2
  base = np.argmin(np.hypot(*(places[:, :, None] - homes[:, None])), axis=1)
  for index in range(homes.shape[1]):
    middle = np.trunc(places[:, base == index].mean(axis=1)) + 0.5
    # `_find_expansion_location` of burnysc2 7.3.0 looks at the placement grid up to 7 cells away.
    assert (middle - 7 >= 0).all() and (middle + 7 < rules.tier.map_size).all()


def test_names_of_other_scripts_are_maps_too():
  names = ("\u4e00", "\u4e8c", "\u4e09", "\u56db", "le")
  maps = {battlefields.stand_in(name).map for name in names}
  assert len(maps) > 1
