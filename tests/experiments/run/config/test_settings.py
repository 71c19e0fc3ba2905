import ast
import dataclasses
import importlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

from starleague.experiments import record
from starleague.experiments.configs import adaptive, mini, small
from starleague.experiments.run.config import config_flags, settings
from starleague.experiments.run.games import registry, sc2
from starleague.learner.loops.options import ImitationOptions, ReinforcementOptions
from tests.experiments.launch import refusal
from tests.processes import HANG_S

ROOT = pathlib.Path(__file__).resolve().parents[4]


def test_a_config_survives_the_round_trip(tmp_path: pathlib.Path):
  config = settings.complete({"seed": 7, "actor": {"games": 32, "inference_batch": 8}})
  settings.save(config, tmp_path)
  assert settings.load(tmp_path).to_dict() == config.to_dict()
  assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_no_changes_give_the_mini_preset():
  assert settings.complete({}).to_dict() == settings.base() == {
    **mini.get_config().to_dict(), "sc2": sc2.OPTIONS}


def test_small_changes_some_keys():
  config = settings.complete(small.get_config().to_dict())
  assert config.to_dict() == {**small.get_config().to_dict(), "sc2": sc2.OPTIONS}
  assert {key for key, *_ in settings.differences(config, settings.complete({}))} >= {
    "preset", "environment.tier", "environment.opponents", "actor.demonstrators"}
  assert len(registry.make_parts(config).maps) == 3


def test_the_adaptive_player_teaches_without_z():
  config = settings.complete(adaptive.get_config().to_dict())
  changed = {key: value for key, value, _ in settings.differences(
    config, settings.complete(small.get_config().to_dict()))}
  assert changed["demonstrations.players"] == changed["imitation.names"] == "adaptive"
  assert not any(changed[key] for key in (
    "imitation.keep_build_order", "imitation.keep_cumulative", "actor.pseudo_probability"))
  # The agent meets the opponents of the recorded games, most often those that it loses to.
  assert config.environment.opponents == config.demonstrations.opponents
  assert (config.actor.matchmaking, config.actor.race_matchmaking) == ("squared", "variance")
  assert config.actor.self_play == 0.0
  # It labels the states of its imitator.
  assert changed["demonstrations.labels"] > 0 and changed["learner.stages"] == 4


def test_a_run_may_change_its_agent():
  config = settings.complete({"agent": "core_size=96,entity_layers=2"})
  found = registry.make_parts(config).config
  assert (found.core_size, found.entity_layers, found.name) == (96, 2, "mini")
  assert registry.make_playing_parts(config).config.core_size == 96


@pytest.mark.parametrize("values, message", [
  ({"agent": "core_size=huge"}, "'agent': found 'core_size=huge', expected type int"),
  ({"agent": "max_selected=4"}, "'agent': max_selected: expected 8, that of .* mini.*found 4"),
  ({"agent": "core_size=96", "init": "pretrained"}, "'agent' must be '' if 'init' is 'pretrained'"),
  ({"agent": "core_size=96", "demonstrations": {"imitator": "pretrained"}},
   "'agent' must be '' if 'demonstrations.imitator' is 'pretrained'"),
  ({"demonstrations": {"agent": "best"}},
   "'demonstrations.agent' must be one of imitation, initial, trained, found 'best'"),
  ({"preset": "huge"}, "'preset'.*'huge'.*full.*mini"),
  ({"environment": {"name": "chess"}}, "'environment.name' must be one of skirmish, sc2"),
  ({"environment": {"tier": "huge"}}, "'environment.tier': unknown tier 'huge'"),
  ({"environment": {"races": "zerg"}},
   "'environment.races' names 'zerg'; expected some of terran, with"),
  ({"preset": "small", "environment": {"tier": "default", "opponents": "rush",
                                       "races": "zerg,zerg"}, "actor": {"demonstrators": "rush"}},
   "'environment.races' names 'zerg' more than once"),
  ({"environment": {"tier": "default"}},
   "tier default: max_entities is 64, expected 96 to 2048"),
  ({"demonstrations": {"opponents": "rusher,nobody"}},
   "'demonstrations.opponents' names 'nobody'; expected some of passive, rusher"),
  ({"demonstrations": {"labels": 8, "players": "rusher,random_player"}},
   "'demonstrations.players' names 'random_player'; expected some of passive, rusher"),
  ({"demonstrations": {"labels": -1}}, r"'demonstrations.labels' must be in \[0, "),
  ({"demonstrations": {"labels": 8}, "imitation": {"labels_seconds": 0}},
   "'imitation.labels_seconds' and 'imitation.labels_epochs' must not both be 0 if .* is 8"),
  ({"environment": {"opponents": "rusher,nobody"}},
   "'environment.opponents' names 'nobody'; expected some of passive, rusher"),
  ({"preset": "small", "environment": {"tier": "default", "opponents": "L8,L9"}},
   "'environment.opponents' names 'L9'; expected some of L0, .*L8, rush"),
  ({"environment": {"opponents": "passive"}},
   "'actor.demonstrators' names 'rusher'; expected some of passive, with"),
  ({"learner": {"learning_rat": 1.0}},
   "'learner.learning_rat' does not exist; the nearest is 'learner.learning_rate'"),
  ({"actor": {"gmaes": 1}}, "'actor.gmaes' does not exist; the nearest is 'actor.games'"),
  ({"sedd": 1}, "'sedd' does not exist; the nearest is 'seed'"),
  ({"actor": {"learning_rate": 1.0}}, "the nearest is 'learner.learning_rate'"),
  ({"batch_size": 8}, "'batch_size' does not exist; the nearest is 'learner.batch_size'"),
  ({"zzz": {"q": 1}}, "'zzz' does not exist; the nearest is '[a-z_.]+'"),
  ({"learner": 3}, "'learner' is a group of keys, found 3"),
  ({"seed": "one"}, "'seed' takes a int, found 'one'"),
  ({"actor": {"games": True}}, "'actor.games' takes a int, found True"),
  ({"actor": {"pseudo_rewards": "build_order,fame"}}, "'actor.pseudo_rewards' names 'fame'"),
  ({"seconds": 0}, r"'seconds' must be in \(0, 1e\+09\], found 0.0"),
  ({"data": {"timeout_s": 1e300}}, r"'data.timeout_s' must be in \(0, 1e\+09\], found 1e\+300"),
  ({"actor": {"matchmaking": "kind"}},
   "'actor.matchmaking' must be one of .*variance.*found 'kind'"),
  ({"actor": {"race_matchmaking": "kind"}},
   "'actor.race_matchmaking' must be one of .*variance.*found 'kind'"),
  ({"actor": {"draw_reward": -1.5}}, r"'actor.draw_reward' must be in \[-1, 1\], found -1.5"),
  ({"actor": {"self_play": 1.5}}, r"'actor.self_play' must be in \[0, 1\], found 1.5"),
  ({"actor": {"games": 4, "inference_batch": 9}}, r"at most twice 'actor.games' \(8\), found 9"),
])
def test_an_invalid_value_raises_with_its_key(values, message):
  with pytest.raises(settings.SettingsError, match=message):
    settings.complete(values)


def config_reads() -> set[tuple[str, str]]:
  """Returns (object, attribute) of each attribute that launch files, parts and loops read."""
  found = set()
  for path in [*(ROOT / "experiments").rglob("*.py"), *(ROOT / "learner" / "loops").glob("*.py")]:
    for node in ast.walk(ast.parse(path.read_text())):
      if isinstance(node, ast.Attribute):
        holder = node.value
        name = getattr(holder, "attr", None) or getattr(holder, "id", None)
        found.add((str(name), node.attr))
  return found


def test_every_config_key_is_read():
  """Each key occurs as `config.KEY` or `GROUP.KEY`; `_config` is a part's own group.

  Keys of learners that their options have by the same name occur as `options.KEY`.
  """
  reads = config_reads()
  by_name = {group: {field.name for field in dataclasses.fields(options)} for group, options in (
    ("learner", ReinforcementOptions), ("imitation", ImitationOptions))}
  for key in settings.flat(settings.base()):
    group, name = ["config", *key.split(".")][-2:]
    holders = {group, "_config"}
    if name in by_name.get(group, ()):
      holders |= {"options", "_options"}
    assert {(holder, name) for holder in holders} & reads, f"nothing reads {key!r}"


def test_a_directory_without_a_config_raises(tmp_path):
  with pytest.raises(settings.SettingsError, match=f"{tmp_path}/config.json does not exist"):
    settings.load(tmp_path)


@pytest.mark.parametrize("text, message", [("{", "is not JSON"), ("[1]", "holds a list")])
def test_a_damaged_config_raises(tmp_path, text, message):
  (tmp_path / "config.json").write_text(text)
  with pytest.raises(settings.SettingsError, match=message):
    settings.load(tmp_path)


def test_a_stored_config_with_unknown_keys_raises(tmp_path):
  (tmp_path / "config.json").write_text(json.dumps({"gone": 1}))
  with pytest.raises(settings.SettingsError, match="'gone' does not exist"):
    settings.load(tmp_path)


@pytest.mark.parametrize("module, arguments, message", [
  ("train", ("--config.learner.learning_rat=1",),
   "config key 'learner.learning_rat' does not exist; the nearest is 'learner.learning_rate'; "
   "--help lists the flags"),
  ("train", ("--config=none.py",), "config file 'none.py': no such file; expected a .*"),
  *((module, ("--run_dir", "none", *others), "none/config.json does not exist; expected .*")
    for module, others in (("evaluate", ()), ("record", ("--dataset", "x")),
                           ("learner", ("--address", "localhost:1")),
                           ("actor", ("--address", "localhost:1")),
                           ("data_server", ("--port", "1"))))])
def test_launch_files_report_errors_in_one_line(module, arguments, message, capsys):
  error = refusal(importlib.import_module(f"starleague.experiments.{module}"), *arguments)
  assert re.fullmatch(f"error: {message}", error), error
  assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_the_process_of_a_launch_file_ends_with_the_line():
  done = subprocess.run(
    [sys.executable, "-m", "starleague.experiments.train", "--config.sed=1"],
    capture_output=True, text=True, timeout=HANG_S, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (1, "", (
    "error: config key 'sed' does not exist; the nearest is 'seed'; --help lists the flags\n"))


def test_an_existing_dataset_is_reported_in_one_line(tmp_path):
  assert refusal(record, "--run_dir", "none", "--dataset", tmp_path) == (
    f"error: {tmp_path} exists: a recording is written once; choose another name.")


@pytest.mark.parametrize("preset", ["mini", "small"])
def test_a_run_from_random_weights_has_its_own_values(preset):
  path = pathlib.Path(mini.__file__).with_name(f"{preset}.py")
  imitation, random = (
    settings.complete(config_flags.load_file(path, init), {"init": init})
    for init in ("imitation", "random"))
  assert (imitation.learner.teacher_kl, random.learner.teacher_kl) == (0.05, 0.0)
  assert (imitation.learner.value_warm_up, random.learner.value_warm_up) == (60, 0)
  changed = {key for key, *_ in settings.differences(imitation, random)}
  assert changed <= {"init", *settings.flat(mini.FROM_RANDOM)}
  completed = settings.complete({}, {"init": "random", "learner.entropy": 0.25})
  assert (completed.learner.entropy, completed.actor.pseudo_probability) == (0.25, 0.5)
