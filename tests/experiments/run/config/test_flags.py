"""Flags that launch files share."""

import types as modules

import pytest

from starleague.common.errors import UserError
from starleague.experiments.run.config import flags


@pytest.mark.parametrize("text", [
  None, "localhost:1", "10.0.0.1:65535", "host-1.example:7000", "[::1]:80"])
def test_addresses(text):
  assert flags.is_address(text)


@pytest.mark.parametrize("text", [
  "", "localhost", ":80", "host:0", "host:65536", "host:port", "a b:1", "::1:80", "host:1:2",
  "host:-1", "host:123456"])
def test_other_texts_are_no_addresses(text):
  assert not flags.is_address(text)


def test_a_required_flag_has_a_value():
  assert flags.given(modules.SimpleNamespace(value="runs/mini", name="run_dir")) == "runs/mini"
  with pytest.raises(AssertionError, match="--run_dir is not among the required flags"):
    flags.given(modules.SimpleNamespace(value=None, name="run_dir"))


@pytest.mark.parametrize(
  "value, refused", [(None, True), (False, True), (True, False), ("", False)])
def test_a_flag_without_effect_is_refused(value, refused):
  needed = modules.SimpleNamespace(name="play", value=value)
  absent, present = (modules.SimpleNamespace(name=name, present=name == "save")
                     for name in ("map", "save"))
  flags.only_with(needed, absent)
  if not refused:
    return flags.only_with(needed, absent, present)
  with pytest.raises(UserError, match="^--save needs --play: a is recorded$"):
    flags.only_with(needed, absent, present, because=": a is recorded")


def test_the_folder_of_an_output_file_is_made(tmp_path, monkeypatch):
  def out(path):
    return modules.SimpleNamespace(name="out", value=None if path is None else str(path))

  flags.make_parent(out(None))
  flags.make_parent(out(tmp_path / "new" / "z.json"))
  assert [path.name for path in tmp_path.rglob("*")] == ["new"]
  flags.make_parent(out(tmp_path / "z.json"))
  (tmp_path / "file").write_text("")
  for path, message in (
      (tmp_path, f"expected the path of a file, found the folder '{tmp_path}'; add a name"),
      ("", "expected the path of a file, found the folder ''; add a name"),
      (tmp_path / "file" / "z.json", f"{tmp_path / 'file'} cannot be made: File exists")):
    with pytest.raises(UserError, match=f"^--out: {message}$"):
      flags.make_parent(out(path))
  monkeypatch.setattr(flags.os, "access", lambda path, mode: False)  # root may write everywhere
  with pytest.raises(UserError, match=f"^--out: {tmp_path} cannot be written; choose another f"):
    flags.make_parent(out(tmp_path / "z.json"))
  with pytest.raises(UserError, match=f"^--out: {tmp_path} cannot be written; choose another f"):
    flags.make_folder(out(tmp_path))


def test_a_file_in_a_missing_folder_is_refused(tmp_path):
  flags.require_file("save", None)
  flags.require_file("save", str(tmp_path / "game.npz"))
  with pytest.raises(UserError, match=f"^--save: folder {tmp_path / 'no'} does not exist$"):
    flags.require_file("save", str(tmp_path / "no" / "game.npz"))


def test_seeds_are_integers_each_once(monkeypatch):
  def seeds(words):
    monkeypatch.setattr(flags, "SEEDS", modules.SimpleNamespace(value=words))
    return flags.seeds((7, 8))

  assert seeds(None) == (7, 8) and seeds(["4", "2", "4"]) == (4, 2)
  for words, found in (([], "''"), (["1", "x"], "'1,x'"), (["-1"], "'-1'")):
    with pytest.raises(UserError, match=f"--seeds must be integers, as 0,1,2, found {found}"):
      seeds(words)


def test_games_from_both_sides_are_even(monkeypatch):
  def value(name, number):
    monkeypatch.setattr(flags, name, modules.SimpleNamespace(value=number))

  value("GAMES", None)
  assert flags.even_games() is None
  value("GAMES", 4)
  assert flags.even_games() == 4
  value("GAMES", 5)
  with pytest.raises(UserError, match="--games must be even .half from each side., found 5"):
    flags.even_games()
  value("MATCH_GAMES", None)
  assert (flags.match_games(), flags.match_games(60)) == (200, 60)
  value("MATCH_GAMES", 0)
  assert flags.match_games(least=0) == 0
  with pytest.raises(UserError, match="--match_games must be even .* and at least 2, found 0"):
    flags.match_games(60)


def test_the_origin_is_now_by_default(monkeypatch):
  monkeypatch.setattr(flags.time, "time", lambda: 9.0)
  for given, expected in ((None, 9.0), (0.0, 0.0), (5.0, 5.0)):
    monkeypatch.setattr(flags, "ORIGIN", modules.SimpleNamespace(value=given))
    assert flags.origin() == expected
