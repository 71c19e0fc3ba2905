import os
import stat

import pytest

from starleague.common import files


@pytest.mark.parametrize(("mode", "value"), [("w", "ä\n"), ("wb", b"\xff\x00")])
def test_replacing_replaces_a_file_at_the_end(tmp_path, mode, value):
  path = tmp_path / "new" / "file.txt"
  for content in (value, value * 2):
    with files.replacing(path, mode) as file:
      file.write(content)
    found = path.read_bytes() if "b" in mode else path.read_text(encoding="utf-8")
    assert found == content
  assert [x.name for x in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, umask, expected):
  before = os.umask(umask)
  try:
    with files.replacing(tmp_path / "file.txt") as file:
      file.write("new")
    assert os.umask(umask) == umask
  finally:
    os.umask(before)
  assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == expected


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_an_existing_file_keeps_its_mode(tmp_path, mode):
  path = tmp_path / "file.txt"
  path.write_text("old")
  path.chmod(mode)
  with files.replacing(path) as file:
    temporary, = set(tmp_path.iterdir()) - {path}
    assert stat.S_IMODE(temporary.stat().st_mode) == mode
    file.write("new")
  assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path, exists):
  target, link = tmp_path / "real" / "file.txt", tmp_path / "links" / "link.txt"
  target.parent.mkdir()
  link.parent.mkdir()
  link.symlink_to("../real/file.txt")
  if exists:
    target.write_text("old")
  with files.replacing(link) as file:
    file.write("new")
  assert os.readlink(link) == "../real/file.txt"
  assert target.read_text() == "new" and not target.is_symlink()
  assert [list(path.parent.iterdir()) for path in (target, link)] == [[target], [link]]


@pytest.mark.parametrize("linked", [True, False])
def test_pipes_are_refused_before_the_block(tmp_path, linked):
  pipe = tmp_path / "pipe"
  os.mkfifo(pipe)
  path = tmp_path / "link" if linked else pipe
  if linked:
    path.symlink_to(pipe)
  with pytest.raises(OSError, match="expected a regular file, found a pipe") as error:
    with files.replacing(path):
      raise AssertionError
  assert error.value.filename == str(path)
  assert stat.S_ISFIFO(pipe.stat().st_mode)
  assert len(list(tmp_path.iterdir())) == 1 + linked


def test_devices_and_circles_of_links_are_refused(tmp_path):
  with pytest.raises(OSError, match="expected a regular file, found a device: '/dev/null'"):
    with files.replacing("/dev/null"):
      raise AssertionError
  circle = tmp_path / "circle"
  circle.symlink_to(circle)
  with pytest.raises(OSError, match="Too many levels of symbolic links") as error:
    with files.replacing(circle):
      raise AssertionError
  assert error.value.filename == str(circle) and os.readlink(circle) == str(circle)


def test_replacing_keeps_the_old_file_if_writing_fails(tmp_path):
  path = tmp_path / "file.txt"
  path.write_text("kept")
  with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
    file.write("half")
    file.flush()
    raise ZeroDivisionError
  assert path.read_text() == "kept"
  assert [x.name for x in tmp_path.iterdir()] == ["file.txt"]


def test_the_name_of_a_replaced_file_is_on_disk(tmp_path, monkeypatch):
  path, synced = tmp_path / "file.txt", []
  path.write_text("old")
  monkeypatch.setattr(files, "sync", lambda folder: synced.append((folder, path.read_text())))
  with files.replacing(path) as file:
    file.write("new")
  assert synced == [(tmp_path, "new")]


def test_errors_name_the_file_not_the_temporary_one(tmp_path):
  (tmp_path / "folder").mkdir()
  with pytest.raises(IsADirectoryError) as error:
    with files.replacing(tmp_path / "folder") as file:
      file.write("new")
  assert (error.value.filename, error.value.filename2) == (str(tmp_path / "folder"), None)
  assert [path.name for path in tmp_path.iterdir()] == ["folder"]
  with pytest.raises(OSError) as error:
    with files.replacing("/proc/file"):
      raise AssertionError
  assert error.value.filename == "/proc/file"


def test_replacing_folder_renames_a_complete_folder(tmp_path):
  path = tmp_path / "new" / "folder"
  with files.replacing_folder(path) as partial:
    assert partial.name.startswith(files.PARTIAL) and not path.exists()
    (partial / "inner").mkdir()
    (partial / "inner" / "a").write_text("a")
  assert (path / "inner" / "a").read_text() == "a"
  assert list(path.parent.iterdir()) == [path]


def test_replacing_folder_leaves_nothing_if_writing_fails(tmp_path):
  with pytest.raises(ZeroDivisionError), files.replacing_folder(tmp_path / "folder") as partial:
    (partial / "a").write_text("a")
    raise ZeroDivisionError
  assert not list(tmp_path.iterdir())


def test_replacing_folder_refuses_an_existing_folder(tmp_path):
  path = tmp_path / "folder"
  path.mkdir()
  with pytest.raises(FileExistsError, match="folder exists"), files.replacing_folder(path):
    raise AssertionError("the block must not run")
  path.rmdir()
  with pytest.raises(FileExistsError, match="folder exists"), files.replacing_folder(path):
    path.mkdir()  # by another process
  assert list(tmp_path.iterdir()) == [path]


def test_replacing_folder_moves_an_existing_folder_aside(tmp_path):
  path, aside = tmp_path / "folder", tmp_path / "old"
  path.mkdir()
  (path / "a").write_text("old")
  with files.replacing_folder(path, aside) as partial:
    (partial / "a").write_text("new")
    assert (path / "a").read_text() == "old" and not aside.exists()
  assert (path / "a").read_text() == "new" and (aside / "a").read_text() == "old"
