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
  assert path.stat().st_mode & 0o777 == 0o644


def test_replacing_keeps_the_old_file_if_writing_fails(tmp_path):
  path = tmp_path / "file.txt"
  path.write_text("kept")
  with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
    file.write("half")
    file.flush()
    raise ZeroDivisionError
  assert path.read_text() == "kept"
  assert [x.name for x in tmp_path.iterdir()] == ["file.txt"]


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
