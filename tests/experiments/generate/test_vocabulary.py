"""Reading technology trees."""

import json
import lzma

import pytest

from starleague.experiments.generate import vocabulary

TREE = {"Ability": [{"id": 1}], "Unit": [{"id": 2}], "Upgrade": [{"id": 3}]}


@pytest.mark.parametrize("name", ["data.json", "data.json.xz"])
def test_read_tree_reads_plain_and_compressed_files(tmp_path, name):
  path = tmp_path / name
  content = json.dumps(TREE).encode()
  path.write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
  assert vocabulary.read_tree(path) == TREE


@pytest.mark.parametrize("name, content, message", [
  ("data.json", b"", "expected JSON"),
  ("data.json", b"\xff\xfe\x00", "expected JSON"),
  ("data.json", b"[" * 100_000, "expected JSON"),
  ("data.json.xz", b"garbage", "expected JSON"),
  ("data.json.xz", lzma.compress(json.dumps(TREE).encode())[:-8], "expected JSON"),
  ("data.json", b"[]", "found none of Ability, Unit, Upgrade"),
  ("data.json", b'{"Ability": [], "Unit": {}}', "found none of Ability, Unit, Upgrade"),
  ("data.json", b'{"Ability": [1], "Unit": {}}', "found none of Unit, Upgrade"),
  ("data.json", b'{"Ability": [], "Unit": [], "Upgrade": []}',
   "expected non-empty lists .*, found none of Ability, Unit, Upgrade"),
  ("data.json", b'{"Ability": [1], "Unit": [], "Upgrade": [1]}', "found none of Unit$")])
def test_read_tree_rejects_other_files_in_one_line(tmp_path, name, content, message):
  path = tmp_path / name
  path.write_bytes(content)
  with pytest.raises(vocabulary.TechnologyTreeError, match=message) as error:
    vocabulary.read_tree(path)
  assert str(path) in str(error.value) and "\n" not in str(error.value)
