"""Wrong command lines, config files and stored configs: one line each, and status 1."""

import importlib
import json
import math

import pytest
from absl.testing import flagsaver

from starleague.experiments.configs import mini
from starleague.experiments.run.config import config_flags, entry, settings
from starleague.experiments.run.processes import league_run, supervision

REQUIRED = {"evaluate": ["run_dir"], "learner": ["run_dir", "address"],
            "actor": ["run_dir", "address"], "data_server": ["run_dir", "port"]}
NAMES = settings.flat(settings.base())
INTEGERS = [key for key, value in NAMES.items() if type(value) is int]
FLOATS = [key for key, value in NAMES.items() if type(value) is float]


@pytest.fixture
def run(monkeypatch, tmp_path):
  """Runs a launch file in a new directory; returns its exit status or the text of its error."""
  monkeypatch.chdir(tmp_path)
  started = []
  for module in (supervision, league_run):
    monkeypatch.setattr(module, "train", lambda config, *_: started.append(config))

  def call(module, *words):
    launch = importlib.import_module(f"starleague.experiments.{module}")
    monkeypatch.setattr("sys.argv", [module, *words])
    with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
      entry.run(launch.main, required=REQUIRED.get(module, []))
    return ended.value.code

  call.started = started
  return call


def assert_one_line(error, *parts):
  assert isinstance(error, str) and error.startswith("error: "), error
  assert "\n" not in error and "Traceback" not in error and len(error) < 600
  for part in parts:
    assert part in error, error


def test_right_command_lines_start_a_run(run, tmp_path):
  assert run("train", "--run=a", "--config.seed=7", "--config.seconds=5",
             "--config.learner.learning_rate=2e-4") is None
  (tmp_path / "my.py").write_text(
    "from starleague.experiments.configs import mini\n"
    "def get_config():\n  config = mini.get_config()\n  config.seed = 3\n  return config\n")
  assert run("train", "--run=b", "--config=my.py", "--config.actor.games", "32") is None
  first, second = run.started
  assert (first.seed, first.seconds, first.learner.learning_rate) == (7, 5.0, 2e-4)
  assert (second.seed, second.actor.games) == (3, 32)
  assert settings.load("runs/b").to_dict() == second.to_dict()


@pytest.mark.parametrize("value", ["-1", "1.5", "text", "", str(2**31), str(2**70)])
@pytest.mark.parametrize("key", INTEGERS)
def test_an_invalid_integer_names_its_key(run, key, value):
  assert_one_line(run("train", f"--config.{key}={value}"), key)
  assert not run.started


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-2", "text", ""])
@pytest.mark.parametrize("key", FLOATS)
def test_an_invalid_number_names_its_key(run, key, value):
  assert_one_line(run("train", f"--config.{key}={value}"), key)
  assert not run.started


def test_every_number_has_a_range():
  assert sorted(settings.all_ranges()) == sorted([*INTEGERS, *FLOATS])


@pytest.mark.parametrize("words, parts", [
  (["--config.sed=1"], ["'sed' does not exist; the nearest is 'seed'"]),
  (["--config.learning_rate=1"], ["the nearest is 'learner.learning_rate'"]),
  (["--config.=1"], ["config"]),
  (["--config.actor=1"], ["config.actor"]),
  (["--config.seed"], ["config.seed"]),
  (["--config.seed.x=1"], ["'seed.x' does not exist"]),
  (["--config.seed[0]=1"], ["'seed[0]' does not exist"]),
  (["--config.preset="], ["'preset'"]),
  (["--config.preset=huge"], ["'preset'", "'huge'"]),
  (["--config.environment.tier=huge"], ["'environment.tier'", "'huge'"]),
  (["--config.environment.tier=default"], ["'environment.tier'"]),
  (["--config.environment.opponents="], ["'environment.opponents'", "''"]),
  (["--config.environment.opponents=rusher,"], ["'environment.opponents'", "''"]),
  (["--config.environment.opponents=nobody"], ["'nobody'"]),
  (["--config.environment.opponents=rusher,rusher"], ["'rusher' more than once"]),
  (["--config.actor.demonstrators=nobody"], ["'actor.demonstrators'", "'nobody'"]),
  (["--config.actor.pseudo_rewards=fame"], ["'actor.pseudo_rewards'", "'fame'"]),
  (["--config.actor.matchmaking=kind"], ["'actor.matchmaking'", "'kind'"]),
  (["--config.actor.self_play=1.01"], ["'actor.self_play'", "[0, 1]"]),
  (["--config.learner.b1=1"], ["'learner.b1'", "[0, 1)"]),
  (["--config.seconds=0"], ["'seconds' must be in (0, 1e+09]"]),
  (["--config.actor.games=4", "--config.actor.inference_batch=9"], ["'actor.games' (8), found 9"]),
  (["--config.learner.batch_size=9", "--config.learner.accumulate=2"],
   ["'learner.batch_size' must be a multiple of 'learner.accumulate' (2), found 9"]),
  (["--config.evaluation.games=7"], ["'evaluation.games' must be even", "found 7"]),
  (["--config=none.py"], ["'none.py'", "no such file"]),
  (["--config="], ["config file ''"]),
  (["--config=."], ["a directory"]),
  (["--no_such_flag"], ["'no_such_flag'"]),
  (["--rnu=a"], ["'rnu'"]),
  (["--run_dir=a"], ["--run_dir is no flag of this program"]),  # of other launch files
  (["--run"], ["run"]),
  (["--run="], ["--run"]),
  (["--run=a/b"], ["--run", "'a/b'"]),
  (["--run=.."], ["--run"]),
  (["--run=a\nb"], ["--run"]),
  (["--run=" + 300 * "a"], ["name"]),
  (["--evaluate=maybe"], ["evaluate"]),
  (["stray"], ["stray"]),
  (["mini", "seconds=3"], ["mini seconds=3"]),
  (["--flagfile=none"], ["none"]),
  (["--flagfile=."], ["."]),
])
def test_wrong_command_lines_of_train(run, words, parts):
  assert_one_line(run("train", *words), *parts)
  assert not run.started


VALID = "from ml_collections import ConfigDict\ndef get_config():\n  return ConfigDict({})\n"


@pytest.mark.parametrize("text, parts", [
  ("def get_config(:\n", ["SyntaxError"]),
  ("  x = 1\n", ["IndentationError"]),
  ("import no_such_module_of_mine\n", ["ModuleNotFoundError"]),
  ("1 / 0\n", ["ZeroDivisionError"]),
  ("raise SystemExit(3)\n", ["SystemExit"]),
  ("", ["expected a function get_config()"]),
  ("get_config = 3\n", ["expected a function get_config()"]),
  ("def get_config():\n  raise ValueError('two\\nlines')\n", ["ValueError: two lines"]),
  ("def get_config(name):\n  return name\n", ["TypeError"]),
  ("def get_config():\n  return get_config()\n", ["RecursionError"]),
  ("def get_config():\n  return None\n", ["must return a ConfigDict, found NoneType"]),
  ("def get_config():\n  return {'seed': 1}\n", ["must return a ConfigDict, found dict"]),
  ("def get_config():\n  return 'mini'\n", ["must return a ConfigDict, found str"]),
  (VALID.replace("{}", "{'sed': 1}"), ["'sed' does not exist"]),
  (VALID.replace("{}", "{'seed': 'one'}"), ["'seed' takes a int, found 'one'"]),
  (VALID.replace("{}", "{'seed': None}"), ["'seed' takes a int, found None"]),
  (VALID.replace("{}", "{'seed': 10**400}"), ["'seed' must be in [0, 2147483647]"]),
  (VALID.replace("{}", "{'seed': 10**5000}"), ["found an integer of 16610 bits"]),
  (VALID.replace("{}", "{'seconds': 10**400}"), ["'seconds' takes a float"]),
  (VALID.replace("{}", "{'actor': 3}"), ["'actor' is a group of keys"]),
  (VALID.replace("{}", "{'actor': {'games': True}}"), ["'actor.games' takes a int, found True"]),
  (VALID.replace("{}", "{'actor': {'games': [1]}}"), ["'actor.games' takes a int"]),
  (VALID.replace("{}", "{'seconds': float('nan')}"),
   ["'seconds' must be in (0, 1e+09], found nan"]),
  ("\0", ["null bytes"]),
  ("\xe9 = '", ["SyntaxError"]),
])
def test_wrong_config_files(run, tmp_path, text, parts):
  (tmp_path / "my.py").write_text(text)
  assert_one_line(run("train", "--config=my.py"), "'my.py'" if "ConfigDict(" not in text else "",
                  *parts)
  assert not run.started


@pytest.mark.parametrize("group", ["environment", "actor"])
def test_a_config_file_with_a_value_in_the_place_of_a_group_that_the_game_changes(
    run, tmp_path, group):
  (tmp_path / "my.py").write_text(VALID.replace("{}", f"{{'{group}': 3}}"))
  assert_one_line(run("train", "--config=my.py", "--config.environment.name=sc2"),
                  f"'{group}' is a group of keys, found 3")
  assert not run.started


@pytest.mark.parametrize("data", [bytes(range(256)), b"\xff\xfe" + 100 * b"\x00\xd8"])
def test_a_binary_config_file_raises(run, tmp_path, data):
  (tmp_path / "my.py").write_bytes(data)
  assert_one_line(run("train", "--config=my.py"), "'my.py'")
  (tmp_path / "my.txt").write_text(VALID)
  assert_one_line(run("train", "--config=my.txt"), "'my.txt'", ".py")


@pytest.mark.parametrize("text, parts", [
  ("", ["is not JSON"]),
  ("{", ["is not JSON"]),
  ("[1]", ["holds a list"]),
  ("null", ["holds a NoneType"]),
  ("3", ["holds a int"]),
  ('"text"', ["holds a str"]),
  ("[" * 100_000, ["nested too deeply"]),
  ('{"a":' * 100_000, ["nested too deeply"]),
  ('{"seed": ' + 5000 * "1" + "}", ["is not JSON"]),
  ('{"gone": 1}', ["'gone' does not exist"]),
  ('{"seed": "1"}', ["'seed' takes a int"]),
  ('{"seed": null}', ["'seed' takes a int"]),
  ('{"seed": -1}', ["'seed' must be in [0, 2147483647], found -1"]),
  ('{"seed": true}', ["'seed' takes a int, found True"]),
  ('{"seconds": NaN}', ["'seconds' must be in (0, 1e+09], found nan"]),
  ('{"seconds": 1e999}', ["'seconds' must be in (0, 1e+09], found inf"]),
  ('{"actor": []}', ["'actor' is a group of keys, found []"]),
  ('{"seed": {"a": 1}}', ["'seed' takes a int"]),
  ('{"environment": {"name": ["sc2"]}}', ["'environment.name' takes a str, found ['sc2'] (list)"]),
  ('{"environment": {"name": {}}}', ["'environment.name' takes a str, found {} (dict)"]),
  ('{"' + 10_000 * "a" + '": 1}', ["does not exist"]),
])
@pytest.mark.parametrize("module", ["train", "evaluate"])
def test_a_damaged_stored_config_raises(run, tmp_path, module, text, parts):
  (tmp_path / "runs" / "mini").mkdir(parents=True)
  (tmp_path / "runs" / "mini" / "config.json").write_text(text)
  words = ["--run_dir=runs/mini"] if module == "evaluate" else []
  assert_one_line(run(module, *words), "runs/mini/config.json", *parts)
  assert not run.started


def test_a_binary_stored_config_or_a_directory_in_its_place_raises(run, tmp_path):
  path = tmp_path / "runs" / "mini" / "config.json"
  path.parent.mkdir(parents=True)
  path.write_bytes(bytes(range(256)))
  assert_one_line(run("train"), "config.json", "not JSON")
  path.unlink()
  path.mkdir()
  assert_one_line(run("train"), "config.json", "cannot be read")
  (tmp_path / "file").write_text("")
  assert_one_line(run("train", "--runs_dir=file"), "file")
  assert_one_line(
    run("train", "--runs_dir="), "--runs_dir must name a directory without ',', found ''")


def test_a_run_with_another_config_raises(run, tmp_path):
  settings.save(settings.complete({"seed": 1}), tmp_path / "runs" / "mini")
  assert_one_line(run("train"), "'runs/mini'", "seed = 1, found 0")


@pytest.mark.parametrize("module", ["league", "launch"])
@pytest.mark.parametrize("word, parts", [
  ("--config.init=random", ["'init'", "imitation", "random"]),
  ("--config.cluster.learner_hosts=2", ["'cluster.learner_hosts'", "must be 1", "found 2"]),
])
def test_a_config_of_no_league_leaves_no_run_behind(run, module, word, parts):
  assert_one_line(run(module, word), *parts)
  assert not run.started
  assert run(module) is None  # the corrected command is not that of another run
  assert len(run.started) == 1


@pytest.mark.parametrize("module, words, parts", [
  *((module, [], ["run_dir"]) for module in REQUIRED),
  *((module, ["--run_dir=r"], ["address"]) for module in ("learner", "actor")),
  *((module, ["--run_dir=r", f"--address={address}"], ["address", "expected host:port"])
    for module in ("learner", "actor")
    for address in ("", "localhost", "localhost:", "localhost:x", "localhost:0",
                    "localhost:70000", "a b:1", "http://a:1")),
  *((module, ["--run_dir=none", "--address=localhost:1"], ["none/config.json does not exist"])
    for module in ("learner", "actor")),
  ("actor", ["--run_dir=r", "--address=a:1", "--index=-1"], ["index"]),
  ("actor", ["--run_dir=r", "--address=a:1", "--parameters=b"], ["parameters"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--origin=nan"], ["origin"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--origin=-1"], ["origin"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--hosts=0"], ["hosts"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--hosts=2"], ["--coordinator is not given"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--host=1"], ["--host must be below --hosts"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--coordinator=b"], ["coordinator"]),
  ("learner", ["--run_dir=r", "--address=a:1", "--league_players=main"],
   ["--league_players needs --league"]),
  *(("learner", ["--run_dir=r", "--address=a:1", "--league=a:2", word],
     [f"--{word.partition('=')[0][2:]}: expected none with --league, found "])
    for word in ("--hosts=2", "--coordinator=a:3", "--host=1")),
  ("data_server", ["--run_dir=r", "--port=0"], ["port"]),
  ("data_server", ["--run_dir=r", "--port=65536"], ["port"]),
  ("data_server", ["--run_dir=none", "--port=1"], ["none/config.json does not exist"]),
  ("evaluate", ["--run_dir=none"], ["none/config.json does not exist"]),
  ("evaluate", ["--run_dir=none", "--games=1"], ["games"]),
  ("generate.pretrained", ["--run_dir=none", "--games=3"], ["--games must be even", "found 3"]),
  ("evaluate", ["--run_dir=none", "--seed=-1"], ["seed"]),
  ("evaluate", ["--run_dir=none", f"--seed={2**31}"], ["seed"]),
  ("evaluate", ["--run_dir=none", "stray"], ["stray"]),
])
def test_wrong_command_lines_of_the_other_launch_files(run, module, words, parts):
  assert_one_line(run(module, *words), *parts)


@pytest.mark.parametrize("words, part", [
  (["--games=3"], "--games must be even"), (["--opponents=nobody"], "'nobody'"),
  (["--races=zerg,random"], "--races: expected random or terran, then random or terran, which"),
  (["--agents=imitation"], "r/imitation_best"),
  (["--agents="], "--agents: expected some of imitation, initial, trained, found ''"),
  (["--agents=imitator"], "--agents names 'imitator'; expected some of imitation, initial"),
  ([], "no weights 'initial'")])
def test_an_evaluation_that_cannot_run_raises(run, tmp_path, words, part):
  settings.save(settings.complete({}), tmp_path / "r")
  assert_one_line(run("evaluate", "--run_dir=r", *words), part)


def test_an_error_without_a_message_is_named():
  assert entry.one_line(RecursionError()) == "RecursionError"
  assert entry.one_line(ValueError("a\n  b")) == "a b"


def test_the_flags_and_the_config_have_the_same_keys():
  assert json.loads(json.dumps(NAMES)) == NAMES
  assert all(math.isfinite(NAMES[key]) for key in settings.all_ranges())
  assert config_flags.load_file(mini.__file__) == mini.get_config().to_dict()
