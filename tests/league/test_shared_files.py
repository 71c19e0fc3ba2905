"""Shared files: listings, pieces, partial copies that continue, and what is refused."""

import hashlib

import pytest

from starleague.league import shared_files
from starleague.league.players import LeagueError
from starleague.league.shared_files import FileEntry, Incoming, SharedFiles

WEIGHTS = {"manifest.json": b"{}", "params/d/weights": bytes(range(256)) * 4, "params/empty": b""}


def save(folder, contents=WEIGHTS):
  for name, data in contents.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def entry(name, data):
  return FileEntry(name, len(data), hashlib.sha256(data).hexdigest())


def contents(folder):
  return {path.relative_to(folder).as_posix(): path.read_bytes()
          for path in folder.rglob("*") if path.is_file()}


ENTRIES = [entry(name, data) for name, data in WEIGHTS.items()]


def test_a_listing_has_size_and_digest_of_each_file(tmp_path):
  save(tmp_path / "initial")
  assert shared_files.listing(tmp_path / "initial") == ENTRIES
  (tmp_path / "config.json").write_bytes(b"abc")
  assert shared_files.listing(tmp_path / "config.json") == [entry("", b"abc")]
  assert shared_files.listing(tmp_path / "z.npz") is None
  (tmp_path / "config.json").write_bytes(b"abcd")  # changed: read again
  assert shared_files.listing(tmp_path / "config.json") == [entry("", b"abcd")]


def test_pieces_are_bounded(tmp_path, monkeypatch):
  monkeypatch.setattr(shared_files, "PIECE_BYTES", 1000)
  save(tmp_path / "initial")
  shared = SharedFiles(tmp_path)
  pieces = [shared.read_file("initial", "params/d/weights", offset) for offset in (0, 1000, 2000)]
  assert [len(piece) for piece in pieces] == [1000, 24, 0]
  assert b"".join(pieces) == WEIGHTS["params/d/weights"]


def test_an_offered_folder_gets_its_name_when_it_is_complete(tmp_path):
  shared, key = SharedFiles(tmp_path), shared_files.digest(ENTRIES)
  name = "players/main-0001"
  assert shared.offer_files(name, ENTRIES) == [0, 0, 0]
  shared.write_file(name, key, "manifest.json", 0, b"{}")
  shared.write_file(name, key, "params/d/weights", 0, WEIGHTS["params/d/weights"][:700])
  assert shared.list_files(name) is None  # nobody reads a part
  # Another process of the coordinator continues there; a repeated piece changes nothing.
  shared = SharedFiles(tmp_path)
  assert shared.offer_files(name, ENTRIES) == [2, 700, 0]
  shared.write_file(name, key, "params/d/weights", 500, WEIGHTS["params/d/weights"][500:])
  shared.write_file(name, key, "params/d/weights", 0, WEIGHTS["params/d/weights"][:700])
  assert shared.offer_files(name, ENTRIES) is None
  assert contents(tmp_path / name) == WEIGHTS and shared.list_files(name) == ENTRIES
  assert [path.name for path in (tmp_path / "players").iterdir()] == ["main-0001"]


def test_a_file_with_another_digest_is_copied_again(tmp_path):
  shared, key = SharedFiles(tmp_path), shared_files.digest(ENTRIES)
  shared.write_file("initial", key, "manifest.json", 0, b"[]")
  shared.write_file("initial", key, "params/d/weights", 0, WEIGHTS["params/d/weights"])
  assert shared.offer_files("initial", ENTRIES) == [0, 1024, 0]
  assert not (tmp_path / "initial").exists()
  shared.write_file("initial", key, "manifest.json", 0, b"{}")
  assert shared.offer_files("initial", ENTRIES) is None


def test_what_has_the_name_already_is_kept(tmp_path):
  save(tmp_path / "initial")
  others = [entry("manifest.json", b"other")]
  shared, key = SharedFiles(tmp_path), shared_files.digest(others)
  shared.write_file("initial", key, "manifest.json", 0, b"other")
  assert shared.offer_files("initial", others) is None
  assert contents(tmp_path / "initial") == WEIGHTS
  assert [path.name for path in tmp_path.iterdir()] == ["initial"]


def test_a_copy_replaces_a_folder_whole(tmp_path):
  save(tmp_path / "initial", {"manifest.json": b"old", "more": b"x"})
  incoming = Incoming(tmp_path / "initial", shared_files.digest(ENTRIES))
  for name, data in WEIGHTS.items():
    incoming.write(name, 0, data)
  assert incoming.install(ENTRIES, replaces=True)
  assert contents(tmp_path / "initial") == WEIGHTS
  assert [path.name for path in tmp_path.iterdir()] == ["initial"]


def test_files_that_come_meanwhile_are_not_replaced_by_their_copy(tmp_path):
  incoming = Incoming(tmp_path / "initial", shared_files.digest(ENTRIES))
  for name, data in WEIGHTS.items():
    incoming.write(name, 0, data)
  save(tmp_path / "initial")
  before = (tmp_path / "initial").stat().st_ino
  assert incoming.install(ENTRIES, replaces=True)
  assert (tmp_path / "initial").stat().st_ino == before
  assert [path.name for path in tmp_path.iterdir()] == ["initial"]


def test_a_gap_is_refused(tmp_path):
  incoming = Incoming(tmp_path / "initial", "0" * 64)
  with pytest.raises(LeagueError, match="has 0 bytes: expected its next piece, found one of "
                                        "offset 5"):
    incoming.write("manifest.json", 5, b"late")


@pytest.mark.parametrize("name", [
  "league.sqlite", "players", "players/", "players/../config.json", "players/.partial-x",
  "players/a/b", "../initial", "/initial", "learners/main", "players/a\nb", "replays/1-1.txt"])
def test_other_files_are_not_served(name, tmp_path):
  with pytest.raises(LeagueError, match="is not shared by the run, expected config"):
    SharedFiles(tmp_path).list_files(name)


@pytest.mark.parametrize("name", ["config.json", "z.npz", "league.sqlite", "players/.x"])
def test_other_files_are_not_taken(name, tmp_path):
  with pytest.raises(LeagueError, match="is not shared by the run, expected initial"):
    SharedFiles(tmp_path).write_file(name, "0" * 64, "", 0, b"x")


@pytest.mark.parametrize("path", ["../config.json", "/etc/passwd", "a/../../x", "a\0"])
def test_paths_stay_within_their_folder(path, tmp_path):
  save(tmp_path / "initial")
  shared = SharedFiles(tmp_path)
  with pytest.raises(LeagueError, match="expected the path of a file within it"):
    shared.read_file("initial", path, 0)
  with pytest.raises(LeagueError, match="expected the path of a file within it"):
    shared.write_file("players/x", "0" * 64, path, 0, b"x")
  with pytest.raises(LeagueError, match="expected a file of the run, found none"):
    shared.read_file("initial", "params", 0)
