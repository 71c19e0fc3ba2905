import json
import pathlib
import re
import subprocess
import sys

import pytest

from starleague.experiments.configs import medium, mini
from starleague.experiments.run import settings, wiring


def test_settings_survive_the_round_trip(tmp_path: pathlib.Path):
  config = settings.complete({"seed": 7, "actor": {"games": 32, "inference_batch": 8}})
  settings.save(config, tmp_path)
  assert settings.load(tmp_path).to_dict() == config.to_dict()
  assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_the_preset_is_complete():
  assert settings.complete({}).to_dict() == mini.get_config().to_dict()


def test_the_other_preset_changes_some_keys():
  config = settings.complete(medium.get_config().to_dict())
  assert config.to_dict() == medium.get_config().to_dict()
  assert {key for key, *_ in settings.differences(config, mini.get_config())} >= {
    "preset", "environment.tier", "environment.opponents", "actor.demonstrators"}
  assert wiring.make_parts(config).maps == 3


@pytest.mark.parametrize("values, message", [
  ({"preset": "huge"}, "'preset'.*'huge'.*full.*mini"),
  ({"environment": {"tier": "huge"}}, "'environment.tier': unknown tier 'huge'"),
  ({"environment": {"tier": "default"}},
   "tier default: max_entities is 64, but a player may see 16[0-9]"),
  ({"environment": {"opponents": "rusher,nobody"}},
   "'environment.opponents' names 'nobody'; expected some of passive, rusher"),
  ({"preset": "medium", "environment": {"tier": "default", "opponents": "L8,L9"}},
   "'environment.opponents' names 'L9'; expected some of L0, .*L8, rush"),
  ({"environment": {"opponents": "passive"}},
   "'actor.demonstrators' names 'rusher'; expected some of passive, with"),
  ({"learner": {"learning_rat": 1.0}},
   "'learner.learning_rat' does not exist; the nearest is 'learner.learning_rate'"),
  ({"batch_size": 8}, "'batch_size' does not exist; the nearest is 'learner.batch_size'"),
  ({"zzz": {"q": 1}}, "'zzz' does not exist; the nearest is '[a-z_.]+'"),
  ({"learner": 3}, "'learner' is a group of keys, found 3"),
  ({"seed": "one"}, "'seed' takes a int, found 'one'"),
  ({"actor": {"games": True}}, "'actor.games' takes a int, found True"),
  ({"actor": {"pseudo_rewards": "build_order,fame"}}, "'actor.pseudo_rewards' names 'fame'"),
  ({"seconds": 0}, "'seconds' must be above 0, found 0.0"),
  ({"actor": {"matchmaking": "kind"}},
   "'actor.matchmaking' must be one of .*variance.*found 'kind'"),
  ({"actor": {"self_play": 1.5}}, r"'actor.self_play' must be in \[0, 1\], found 1.5"),
  ({"actor": {"games": 4, "inference_batch": 9}}, r"at most twice 'actor.games' \(8\), found 9"),
])
def test_what_cannot_be_is_refused_by_name(values, message):
  with pytest.raises(settings.SettingsError, match=message):
    settings.complete(values)


def test_a_folder_without_settings_is_named(tmp_path):
  with pytest.raises(settings.SettingsError, match=f"{tmp_path}/config.json does not exist"):
    settings.load(tmp_path)


@pytest.mark.parametrize("text, message", [("{", "is not JSON"), ("[1]", "holds a list")])
def test_damaged_settings_are_named(tmp_path, text, message):
  (tmp_path / "config.json").write_text(text)
  with pytest.raises(settings.SettingsError, match=message):
    settings.load(tmp_path)


def test_stored_settings_of_another_version_are_refused(tmp_path):
  (tmp_path / "config.json").write_text(json.dumps({"gone": 1}))
  with pytest.raises(settings.SettingsError, match="'gone' does not exist"):
    settings.load(tmp_path)


def main_of(module: str, *arguments: str) -> subprocess.CompletedProcess:
  return subprocess.run(
    [sys.executable, "-m", f"starleague.experiments.{module}", *arguments],
    capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("module, arguments, message", [
  ("train", ("--config.learner.learning_rat=1",),
   "config key 'learner.learning_rat' does not exist; the nearest is 'learner.learning_rate'; "
   "--help lists the flags"),
  ("train", ("--config.sed=1",), "config key 'sed' does not exist; the nearest is 'seed'; "
   "--help lists the flags"),
  ("train", ("--config=none.py",), "config file 'none.py': no such file; expected a Python file .*"),
  *((module, ("--run_dir", "none", *others), "none/config.json does not exist; expected .*")
    for module, others in (("evaluate", ()), ("record", ("--dataset", "x")),
                           ("learner", ("--address", "localhost:1")),
                           ("actor", ("--address", "localhost:1")),
                           ("data_server", ("--port", "1"))))])
def test_launch_files_tell_what_is_wrong_in_one_line(module, arguments, message):
  done = main_of(module, *arguments)
  assert done.returncode == 1 and done.stdout == ""
  assert re.fullmatch(f"error: {message}\n", done.stderr), done.stderr


@pytest.mark.slow
def test_a_dataset_that_exists_is_refused_in_one_line(tmp_path):
  done = main_of("record", "--run_dir", "none", "--dataset", str(tmp_path))
  assert done.returncode == 1 and done.stdout == ""
  assert done.stderr == (
    f"error: {tmp_path} exists: a recording is written once; choose another name.\n")
