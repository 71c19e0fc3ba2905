"""The game's folder."""

import pytest

from starleague.environments.sc2.client import installation


def test_the_folder_of_sc2path_is_found(tmp_path, monkeypatch):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  with pytest.raises(installation.InstallationError, match="found none; download a Linux package"):
    installation.find()
  with pytest.raises(installation.InstallationError, match=f"{installation.SERVER} ~/SkirmishII"):
    installation.find()
  binary = tmp_path / "Versions" / "Base75689" / "SC2_x64"
  binary.parent.mkdir(parents=True)
  binary.touch()
  assert installation.find() == tmp_path
