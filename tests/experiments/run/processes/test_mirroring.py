"""Copies of a run at another place, here a folder."""

import errno
import os
import sqlite3
import threading

import pytest
from etils import epath
from etils.epath import gpath, testing

from starleague.common import disk, run_files, stopping
from starleague.data.checkpoints.checkpoint_manifest import MANIFEST
from starleague.experiments import mirror
from starleague.experiments.run.processes import mirroring
from tests.experiments.launch import launch, refusal


def write(path, text="x"):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


def checkpoint(run_dir, step):
  folder = run_dir / "learners" / "main" / "checkpoints" / f"{step:012d}"
  write(folder / "params" / "array", f"{step}")
  write(folder / MANIFEST)
  return folder


def names(folder):
  """The files below a folder, without those that SQLite makes beside an open one."""
  return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                if path.is_file() and not path.name.endswith(("-wal", "-shm")))


@pytest.fixture
def run_dir(tmp_path):
  found = tmp_path / "run"
  write(found / run_files.CONFIG, "{}")
  checkpoint(found, 1)
  write(found / "players" / ".partial-main-0001-ab" / "array")
  with sqlite3.connect(found / "league.sqlite") as league:
    league.execute("PRAGMA journal_mode=WAL")
    league.execute("CREATE TABLE results (id TEXT)")
    league.execute("INSERT INTO results VALUES ('1-1:0')")
    league.commit()
    for path in found.glob("league.sqlite*"):
      os.utime(path, (1e9, 1e9))
    yield found  # it is open, with its log
  league.close()


def test_only_new_files_are_copied_and_removed_checkpoints_removed(run_dir, tmp_path):
  source, target = mirroring.place(str(run_dir)), mirroring.place(str(tmp_path / "copy"))
  assert mirroring.copy(source, target) == 4
  kept = "learners/main/checkpoints/000000000001"
  assert names(tmp_path / "copy") == sorted([
    run_files.CONFIG, "league.sqlite", f"{kept}/{MANIFEST}", f"{kept}/params/array"])
  with sqlite3.connect(tmp_path / "copy" / "league.sqlite") as league:
    assert league.execute("SELECT id FROM results").fetchall() == [("1-1:0",)]
  write(run_dir / "results.csv", "a\n")
  checkpoint(run_dir, 2)
  for path in checkpoint(run_dir, 1).rglob("*"):
    path.unlink() if path.is_file() else None
  os.removedirs(run_dir / kept / "params")
  assert mirroring.copy(source, target) == 3
  assert f"{kept}/{MANIFEST}" not in names(tmp_path / "copy")
  write(run_dir / "results.csv", "a\nb\n")
  assert mirroring.copy(source, target) == 1
  assert mirroring.copy(source, target) == 0


def test_a_database_that_is_copied_in_part_is_copied_again(run_dir, tmp_path, monkeypatch):
  source, target = mirroring.place(str(run_dir)), mirroring.place(str(tmp_path / "copy"))
  write_bytes = type(target).write_bytes

  def cut(path, data):
    write_bytes(path, data[:100])
    raise KeyboardInterrupt

  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    patch.setattr(type(target), "write_bytes", cut)
    mirroring.copy(source, target)
  mirroring.copy(source, target)
  with sqlite3.connect(tmp_path / "copy" / "league.sqlite") as league:
    assert league.execute("SELECT id FROM results").fetchall() == [("1-1:0",)]


def test_manifests_are_copied_after_their_files_and_the_config_last(
    run_dir, tmp_path, monkeypatch):
  for name in ("demonstrations/games.json", "demonstrations/part-00000.parquet",
               "recorded/recording.json", "recorded/table/chunks",
               "replays/parts/00000/part.json", "replays/parts/00000/players.parquet"):
    write(run_dir / name)
  copied = []
  monkeypatch.setattr(mirroring, "_copy_file", lambda path, target: copied.append(
    path.relative_to(run_dir).as_posix()) or 1)
  mirroring.copy(mirroring.place(str(run_dir)), mirroring.place(str(tmp_path / "copy")))
  kept = "learners/main/checkpoints/000000000001"
  assert copied == [
    "demonstrations/part-00000.parquet", "demonstrations/games.json", "league.sqlite",
    f"{kept}/params/array", f"{kept}/{MANIFEST}", "recorded/table/chunks",
    "recorded/recording.json", "replays/parts/00000/players.parquet",
    "replays/parts/00000/part.json", run_files.CONFIG]


def test_a_manifest_that_lists_a_part_written_meanwhile_waits_for_the_next_copy(
    run_dir, tmp_path, monkeypatch):
  dataset, copied = run_dir / "demonstrations", tmp_path / "copy" / "demonstrations"
  source, target = mirroring.place(str(run_dir)), mirroring.place(str(tmp_path / "copy"))
  write(dataset / "part-00000.parquet")
  write(dataset / "games.json", "0")
  copy_file = mirroring._copy_file

  def record_another(path, to):
    if path.name == "part-00000.parquet":
      write(dataset / "part-00001.parquet")
      write(dataset / "games.json", "0, 1")
    return copy_file(path, to)

  monkeypatch.setattr(mirroring, "_copy_file", record_another)
  mirroring.copy(source, target)
  assert names(copied) == ["part-00000.parquet"]
  monkeypatch.setattr(mirroring, "_copy_file", copy_file)
  assert mirroring.copy(source, target) == 2
  assert names(copied) == ["games.json", "part-00000.parquet", "part-00001.parquet"]
  assert (copied / "games.json").read_text() == "0, 1"


def test_a_folder_that_is_not_the_runs_is_left_as_it_is(run_dir, tmp_path):
  other = tmp_path / "other"
  write(other / run_files.CONFIG, '{"seed": 1}')
  checkpoint(other, 7)
  twin = tmp_path / "twin"  # another run of the same config
  write(twin / run_files.CONFIG, "{}")
  write(twin / run_files.LOCK, "")
  (tmp_path / "link").symlink_to(run_dir)
  outside = "expected a folder that neither contains {run} nor lies in it"
  for name, message in (
      ("run", outside), ("link", outside), ("link/copy", outside), ("run/players", outside),
      ("", outside), ("other", "other holds something else: expected copies of {run}"),
      ("other/learners", "learners holds something else"),
      ("twin", "twin holds a run that has trained there: expected copies of {run}")):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert message.format(run=run_dir) in refusal(
      mirror, "--run_dir", run_dir, "--to", tmp_path / name, "--interval_s", 0)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_copies_of_the_run_are_continued(run_dir, tmp_path):
  words = ["--run_dir", run_dir, "--to", tmp_path / "copy", "--interval_s", 0]
  assert launch(mirror, *words) is None
  mark = tmp_path / "copy" / ".mirror"
  assert mark.read_text() == str(run_dir)
  write(run_dir / run_files.CONFIG, '{"seconds": 2}')  # as a resumed run may have
  write(run_dir / "results.csv", "a\n")
  assert launch(mirror, *words) is None
  assert (tmp_path / "copy" / "results.csv").read_text() == "a\n"
  mark.unlink()  # copies of an earlier version
  assert launch(mirror, *words) is None
  assert mark.read_text() == str(run_dir)


def test_an_error_of_the_bucket_ends_a_round_alone(run_dir, tmp_path, monkeypatch, caplog):
  rounds, stop = [], threading.Event()

  def copy(source, target):
    rounds.append(target)
    if len(rounds) == 1:
      raise RuntimeError("503 Service\nUnavailable")
    stop.set()
    return 7

  monkeypatch.setattr(mirroring, "copy", copy)
  monkeypatch.setattr(stopping, "stop_event", lambda: stop)
  target = tmp_path / "copy"
  words = ["--run_dir", run_dir, "--to", target]
  with caplog.at_level("INFO"):
    assert launch(mirror, *words, "--interval_s", 0.01) is None
  assert rounds == [target] * 2
  assert f"copied in part to={target} error=503 Service Unavailable" in caplog.text
  assert f"copied files=7 to={target}" in caplog.text
  rounds.clear()
  with pytest.raises(RuntimeError, match="503"):  # a single copy tells whether it is complete
    launch(mirror, *words, "--interval_s", 0)


def test_a_run_is_restored_to_a_new_directory(run_dir, tmp_path):
  copy = str(tmp_path / "copy")
  assert launch(mirror, "--run_dir", run_dir, "--to", copy, "--interval_s", 0) is None
  assert launch(mirror, "--run_dir", tmp_path / "again", "--from", copy) is None
  assert names(tmp_path / "copy") == [".mirror", *names(tmp_path / "again")]


def test_a_restoration_that_is_cut_short_is_completed_by_the_same_command(
    run_dir, tmp_path, monkeypatch):
  copy, again = tmp_path / "copy", tmp_path / "again"
  mirroring.copy(mirroring.place(str(run_dir)), mirroring.place(str(copy)))
  copy_file = mirroring._copy_file

  def cut(path, target):
    if path.name == "array":
      raise KeyboardInterrupt
    return copy_file(path, target)

  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    patch.setattr(mirroring, "_copy_file", cut)
    mirroring.restore(mirroring.place(str(copy)), again)
  assert names(again) == [".mirror", "league.sqlite"]
  mirroring.restore(mirroring.place(str(copy)), again)
  assert names(again) == names(copy) and len(names(again)) == 4
  with pytest.raises(mirroring.MirrorError, match="again holds a run: restore to a directory"):
    mirroring.restore(mirroring.place(str(copy)), again)


@pytest.fixture
def mirrored(run_dir, tmp_path):
  found = tmp_path / "bucket" / "league"
  mirroring.copy(mirroring.place(str(run_dir)), mirroring.place(str(found)))
  return found


def test_a_restoration_removes_nothing(mirrored, tmp_path):
  """The name of the run was forgotten: the directory holds other runs."""
  runs = tmp_path / "runs"
  checkpoint(runs / "mini", 3)
  write(runs / "mini" / run_files.CONFIG, "{}")
  before = names(runs)
  message = refusal(mirror, "--run_dir", runs, "--from", mirrored)
  assert f"{runs} holds something else: expected copies of {mirrored}, or an empty" in message
  assert names(runs) == before and len(before) == 3
  assert f"neither contains {mirrored} nor lies in it" in refusal(
    mirror, "--run_dir", mirrored / "again", "--from", mirrored)
  assert not (mirrored / "again").exists()


def test_a_restoration_from_another_source_is_not_completed(mirrored, tmp_path):
  again = tmp_path / "again"
  write(again / ".mirror", str(tmp_path / "other"))
  kept = checkpoint(again, 5)
  with pytest.raises(mirroring.MirrorError, match="again holds something else"):
    mirroring.restore(mirroring.place(str(mirrored)), again)
  write(again / ".mirror", str(mirrored))
  assert mirroring.restore(mirroring.place(str(mirrored)), again) == 4
  assert kept.exists() and not (again / ".mirror").exists()


def test_only_checkpoints_of_the_runs_own_folders_are_removed(run_dir, tmp_path):
  copy = tmp_path / "copy"
  own, other = checkpoint(copy, 7), checkpoint(copy / "other", 7)
  mirroring.copy(mirroring.place(str(run_dir)), mirroring.place(str(copy)))
  assert (own.exists(), other.exists()) == (False, True)


def test_a_bucket_with_other_runs_is_left_as_it_is(run_dir, tmp_path, monkeypatch):
  """etils writes gs://NAME as the folder gs:/NAME of the current one here."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(gpath, "_is_tf_installed", lambda: False)  # it would open the network
  other = checkpoint(tmp_path / "gs:" / "bucket" / "mini", 7)
  bucket = tmp_path / "gs:" / "bucket"
  with testing.mock_epath():
    words = ["--run_dir", run_dir, "--interval_s", 0, "--to"]
    assert (f"gs://bucket holds something else: expected copies of {run_dir}, or an empty folder"
            in refusal(mirror, *words, "gs://bucket"))
    assert [path.name for path in bucket.iterdir()] == ["mini"] and other.exists()
    assert launch(mirror, *words, "gs://bucket/league") is None
    assert (bucket / "league" / ".mirror").read_text() == str(run_dir)
    (bucket / "league" / run_files.CONFIG).unlink()  # a copy that was cut short
    assert launch(mirror, *words, "gs://bucket/league") is None
    assert (bucket / "league" / run_files.CONFIG).read_text() == "{}"


@pytest.mark.parametrize("name", ["exp#3", "why?", "50%25"])
def test_databases_of_runs_with_any_name_are_copied(name, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  write(tmp_path / name / run_files.CONFIG, "{}")
  with sqlite3.connect(tmp_path / name / "league.sqlite") as league:
    league.execute("CREATE TABLE results (id TEXT)")
    league.execute("INSERT INTO results VALUES ('1-1:0')")
  league.close()
  assert mirroring.copy(mirroring.place(name), mirroring.place("copy")) == 2  # from a relative name
  with sqlite3.connect(tmp_path / "copy" / "league.sqlite") as league:
    assert league.execute("SELECT id FROM results").fetchall() == [("1-1:0",)]
  assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["copy", name])


def test_a_place_that_cannot_be_made_is_refused(run_dir, tmp_path):
  write(tmp_path / "file")
  for name, reason in (("file", "Not a directory|File exists"),
                       ("/proc/none/x", "No such file or directory")):
    target = tmp_path / name
    with pytest.raises(mirroring.MirrorError, match=(
        f"^{target}.* cannot be made: ({reason}); choose another place.$")):
      mirroring.copy(mirroring.place(str(run_dir)), mirroring.place(str(target)))
  with pytest.raises(mirroring.MirrorError, match="expected gs://BUCKET/NAME or a folder, found"):
    mirroring.place("")


@pytest.mark.parametrize("name", ["players/array", "league.sqlite"])
def test_a_full_disk_names_the_folder_of_the_copy(name, run_dir, tmp_path, monkeypatch):
  def full(path, *_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

  write(run_dir / "players" / "array")
  source, target = (mirroring.place(str(path)) for path in (run_dir, tmp_path / "copy"))
  monkeypatch.setattr(type(source), "write_bytes" if name.endswith("sqlite") else "copy", full)
  with pytest.raises(disk.DiskFullError, match=f"^{(target / name).parent}: no space left"):
    mirroring._copy_file(source / name, target / name)


def test_a_database_that_cannot_be_read_is_one_line(run_dir, tmp_path, monkeypatch):
  def unable(*_, **__):
    raise sqlite3.OperationalError("unable to open database file")

  monkeypatch.setattr(mirroring.sqlite3, "connect", unable)
  assert refusal(mirror, "--run_dir", run_dir, "--to", tmp_path / "copy", "--interval_s", 0) == (
    f"error: {run_dir / 'league.sqlite'} cannot be copied: unable to open database file. Expected "
    "a SQLite file, in a folder that can be written: SQLite makes files beside it.")


def test_a_bucket_out_of_reach(monkeypatch):
  def fail(path):
    raise ImportError("no gcsfs")

  monkeypatch.setattr(epath, "Path", fail)
  with pytest.raises(mirroring.MirrorError, match="gs://b cannot be reached: ImportError: no gcsf"):
    mirroring.place("gs://b")


@pytest.mark.parametrize("words, message", [
  (["--from", "{tmp}/nothing", "--run_dir", "{tmp}/new"], "nothing holds no run"),
  (["--from", "{tmp}", "--run_dir", "{run}"], "holds a run: restore to a directory that does not"),
  (["--run_dir", "{run}"], "expected either --to or --from"),
  (["--to", "{tmp}/copy", "--run_dir", "{tmp}/none"], "expected the directory of a run, found"),
  (["--to", "{tmp}/copy", "--run_dir", "{run}", "--interval_s", "1e10"],
   "flag --interval_s=1e10: 10000000000.0 is not a number in the range"),
])
def test_wrong_places(words, message, run_dir, tmp_path):
  words = [word.format(tmp=tmp_path, run=run_dir) for word in words]
  assert message in refusal(mirror, *words)
