import pytest

from starleague.common import files


@pytest.mark.parametrize(("mode", "value"), [("w", "ä\n"), ("wb", b"\xff\x00")])
def test_a_file_is_replaced_when_it_is_whole(tmp_path, mode, value):
  path = tmp_path / "new" / "file.txt"
  for content in (value, value * 2):
    with files.replacing(path, mode) as file:
      file.write(content)
    found = path.read_bytes() if "b" in mode else path.read_text(encoding="utf-8")
    assert found == content
  assert [x.name for x in path.parent.iterdir()] == ["file.txt"]
  assert path.stat().st_mode & 0o777 == 0o644


def test_what_stood_there_stays_where_writing_fails(tmp_path):
  path = tmp_path / "file.txt"
  path.write_text("kept")
  with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
    file.write("half")
    file.flush()
    raise ZeroDivisionError
  assert path.read_text() == "kept"
  assert [x.name for x in tmp_path.iterdir()] == ["file.txt"]
