"""Who may import whom, one name a module, and the names that users call."""

import ast
import graphlib
import importlib
import inspect
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each room, and the rooms it may import beside itself; lower rooms first.
ROOMS = {
  "common": set(),
  "agent": {"common"},
  "environments": {"agent", "common"},
  "data": {"agent", "common"},
  "league": {"common"},
  "actor": {"agent", "common", "environments", "data", "league"},
  "learner": {"agent", "common", "data", "league"},
  "companions": {"agent", "common", "environments", "data", "actor", "learner"},
  "viewers": {"agent", "common", "environments", "data", "actor", "learner", "league"},
  "experiments": {"agent", "common", "environments", "data", "actor", "learner", "league",
                  "companions", "viewers"},
}
# Floors of a room, lowest first: each imports itself and the floors before it, never one behind it.
# A file is on the floor of the longest prefix.
FLOORS = {
  "environments": (
    "environments/base.py", "environments/chunks.py", "environments/skirmish/rules/tables/",
    "environments/skirmish/rules/state/", "environments/skirmish/rules/interface/",
    "environments/skirmish/rules/step/", "environments/skirmish/rules/",
    "environments/skirmish/bots/", "environments/skirmish/games/",
    "environments/skirmish/adapters/", "environments/skirmish/__init__.py",
    "environments/sc2/protocol.py",
    "environments/sc2/converter/", "environments/sc2/client/",
    "environments/sc2/server/game/",
    "environments/sc2/server/views/", "environments/sc2/server/sessions/", "environments/sc2/"),
  "data": (
    "data/packages.py", "data/trees.py", "data/records.py", "data/wire.py", "data/assembler.py",
    "data/checkpoints/", "data/reverb/", "data/z/", "data/games/", "data/replays/"),
  "actor": ("actor/inference/", "actor/loops/"),
  "learner": ("learner/losses/", "learner/", "learner/loops/"),
  "companions": ("companions/tasks/", "companions/"),
  "experiments": (
    "experiments/configs/", "experiments/run/config/errors.py", "experiments/run/config/ranges.py",
    "experiments/run/games/", "experiments/run/config/", "experiments/run/parts/",
    "experiments/run/progress/", "experiments/run/evaluation/",
    "experiments/run/processes/", "experiments/run/datasets/", "experiments/run/ablation/",
    "experiments/run/companions/", "experiments/run/play/"),
}
# Heavy packages, and where alone they are imported.
HEAVY = {"tensorflow": ("data/",), "reverb": ("data/",), "pyarrow": ("data/",),
         "s2protocol": ("data/replays/",), "pysc2": ("environments/sc2/",),
         "s2clientprotocol": ("environments/sc2/",), "websockets": ("environments/sc2/",),
         "pgx": ("companions/tasks/minatar.py",), "bsuite": ("companions/tasks/bsuite.py",),
         "xminigrid": ("companions/tasks/minigrid.py",), "popgym": ("companions/tasks/popgym.py",),
         "jaxmarl": ("companions/tasks/jaxmarl.py",), "ale_py": ("companions/tasks/atari.py",),
         "gymnasium": ("companions/tasks/gymnasium.py", "environments/skirmish/adapters/"),
         "pettingzoo": ("environments/skirmish/adapters/pettingzoo.py",),
         "ray": ("experiments/run/processes/cluster.py",), "wandb": ("learner/wandb_run.py",)}
FILES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS
               for path in (ROOT / room).rglob("*.py"))
IMPORTING_CALLS = {"import_module", "__import__", "find_spec"}


def imported(source):
  """(dotted name, relative level, line) of everything a source imports, wherever it stands.

  Imports by a call count as well; a name that is not written out there is given as None.
  """
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      yield from ((alias.name, 0, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      for alias in node.names:
        yield f"{node.module or ''}.{alias.name}".lstrip("."), node.level, node.lineno
    elif isinstance(node, ast.Call):
      called = node.func
      name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
      if name in IMPORTING_CALLS and node.args:
        argument = node.args[0]
        literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        yield argument.value if literal else None, 0, node.lineno


def breaches(file, source):
  """What a file's imports break, as texts."""
  room = file.split("/")[0]
  for name, level, line in imported(source):
    if name is None:
      yield f"{file}:{line} imports a module whose name is not written out"
      continue
    parts = name.split(".")
    if level:
      yield f"{file}:{line} imports {name} relatively; write starleague.{room}..."
    elif parts[0] in ROOMS:
      yield f"{file}:{line} imports {name} under a second name; write starleague.{name}"
    elif parts[0] == "tests":
      yield f"{file}:{line} imports {name}: tests import the rooms, not the other way round"
    elif parts[0] == "starleague" and len(parts) > 1 and parts[1] in ROOMS:
      if parts[1] not in ROOMS[room] | {room}:
        yield f"{file}:{line} imports {name}: {room} may import {sorted(ROOMS[room]) or 'no room'}"
    elif parts[0] in HEAVY and not file.startswith(HEAVY[parts[0]]):
      yield f"{file}:{line} imports {name}, which only {', '.join(HEAVY[parts[0]])} may"


@pytest.mark.parametrize("file, source, found", [
  ("agent/core.py", "import jax\nfrom starleague.agent import types", None),
  ("agent/core.py", "from starleague import learner", "agent may import ['common']"),
  ("common/files.py", "from starleague import agent", "common may import no room"),
  ("learner/update.py", "def f():\n  from starleague.actor.rewards import rewards", "learner may"),
  ("actor/rollouts.py", "import starleague.learner.losses as losses", "actor may import"),
  ("league/payoff.py", "from starleague.agent import types", "league may import ['common']"),
  ("data/wire.py", "from starleague.environments import base", "data may import"),
  ("viewers/watch/page.py", "from starleague.experiments.run import settings", "viewers may"),
  ("experiments/train.py", "from starleague.league import pfsp", None),
  ("agent/core.py", "from . import types", "agent/core.py:1 imports types relatively"),
  ("agent/core.py", "from ..learner import x", "relatively"),
  ("agent/core.py", "import agent.types", "under a second name"),
  ("learner/update.py", "try:\n  import tensorflow.io as t\nexcept ImportError: pass",
   "learner/update.py:2 imports tensorflow.io"),
  ("agent/core.py", "importlib.import_module('reverb')", "imports reverb"),
  ("agent/core.py", "__import__('pysc2.lib')", "imports pysc2.lib"),
  ("agent/core.py", "importlib.import_module(name)", "not written out"),
  ("experiments/train.py", "import reverb", "experiments/train.py:1 imports reverb"),
  ("environments/base.py", "from pysc2 import run_configs", "imports pysc2.run_configs"),
  ("data/reverb/writer.py", "import reverb", None),
])
def test_the_rules_catch(file, source, found):
  texts = list(breaches(file, source))
  assert len(texts) == (0 if found is None else 1)
  assert found is None or found in texts[0]


@pytest.mark.parametrize("file", FILES)
def test_imports_keep_to_the_rules(file):
  assert list(breaches(file, (ROOT / file).read_text())) == []


def edges(file, source, files):
  """The files among `files` that a source imports, by its absolute imports."""
  by_name = {module_name(other): other for other in files}
  for name, _, _ in imported(source):
    while name and name not in by_name:
      name = name.rpartition(".")[0]
    if name and by_name[name] != file:
      yield by_name[name]


def import_graph():
  return {file: set(edges(file, (ROOT / file).read_text(), FILES)) for file in FILES}


def floor_breaches(graph):
  """Imports from a floor of a room to one behind it, as texts."""
  def floor(file):
    floors = FLOORS.get(file.split("/")[0], ())
    found = [prefix for prefix in floors if file.startswith(prefix)]
    return floors.index(max(found, key=len)) if found else None

  for file, targets in graph.items():
    room = file.split("/")[0]
    for target in sorted(target for target in targets if target.split("/")[0] == room):
      if None not in (floor(file), floor(target)) and floor(target) > floor(file):
        floors = FLOORS[room]
        yield f"{file} imports {target}: {floors[floor(file)]} is below {floors[floor(target)]}"


def test_no_import_goes_up_a_floor():
  assert list(floor_breaches(import_graph())) == []
  assert len(list(floor_breaches({
    "environments/skirmish/rules/state/state.py": {"environments/skirmish/bots/scripts.py"},
    "environments/skirmish/games/live.py": {"environments/skirmish/rules/state/state.py"},
    "data/wire.py": {"agent/types.py"}}))) == 1


def test_imports_have_no_cycle():
  order = list(graphlib.TopologicalSorter(import_graph()).static_order())
  assert sorted(order) == FILES
  with pytest.raises(graphlib.CycleError):
    graphlib.TopologicalSorter({"a.py": {"b.py"}, "b.py": {"a.py"}}).prepare()


def module_name(file):
  path = pathlib.PurePosixPath("starleague") / file
  return ".".join((path.parent if path.name == "__init__.py" else path.with_suffix("")).parts)


# A launch file asks for its own flags only when it is the program: parsing none must pass.
_REPORT = """
import importlib, json, os, sys
for name in {names!r}:
  importlib.import_module(name)
if "absl.flags" in sys.modules:
  sys.modules["absl.flags"].FLAGS(["nothing"])
files = {{}}
for name, module in list(sys.modules.items()):
  if getattr(module, "__file__", None) and name != "__main__":
    files.setdefault(os.path.realpath(module.__file__), []).append(name)
print(json.dumps({{"modules": sorted(sys.modules), "files": files}}))
"""


def after_importing(names):
  """Names of the modules, and those of each file, in a fresh process that imported `names`."""
  run = subprocess.run([sys.executable, "-c", _REPORT.format(names=list(names))], cwd=ROOT,
                       capture_output=True, text=True, timeout=300)
  assert run.returncode == 0, run.stderr[-4000:]
  report = json.loads(run.stdout.splitlines()[-1])
  return set(report["modules"]), report["files"]


@pytest.mark.slow
def test_no_module_is_loaded_under_two_names():
  names = [module_name(file) for file in FILES if not file.endswith("__main__.py")]
  modules, files = after_importing(names)
  assert set(names) <= modules
  assert not {name for name in modules if name.split(".")[0] in ROOMS}
  ours = {path: names for path, names in files.items()
          if any(path.startswith(f"{ROOT / room}/") for room in ROOMS)}
  assert len(ours) == len(names)
  # A config file is data that ml_collections reads by its path, besides being a module.
  assert {path: names for path, names in ours.items()
          if len(names) > 1 and f"{ROOT}/experiments/configs/" not in path} == {}


@pytest.mark.parametrize("names, absent", [
  (["starleague.agent", "starleague.learner.losses"], set(HEAVY)),
  (["starleague.actor.rewards", "starleague.data"], set(HEAVY)),
  (["starleague.companions.tasks.registry", "starleague.companions.tasks.host"], set(HEAVY)),
  (["starleague.environments.skirmish.adapters"], set(HEAVY)),
  (["starleague.league"], set(HEAVY) | {"jax", "haiku", "starleague.agent", "starleague.learner",
                                   "starleague.actor", "starleague.experiments"}),
])
def test_light_rooms_stay_light(names, absent):
  modules, _ = after_importing(names)
  assert set(names) <= modules
  assert modules & absent == set()


# The stable names, with the leading parameters users pass by place or name.
PUBLIC = {
  "starleague.agent": {
    "full": (), "mini": (), "AgentConfig": None, "make_policy": None, "Policy": None,
    "Observation": None, "Action": None, "Trajectory": None},
  "starleague.learner.losses": {
    "vtrace_advantages": ("v_tm1", "v_t", "r_t", "discount_t", "rho_tm1", "lambda_", "clip_rho",
                          "clip_pg_rho"),
    "upgo_returns": ("v_tm1", "v_t", "r_t", "discount_t"),
    "td_lambda_loss": ("v_tm1", "v_t", "r_t", "discount_t", "lambda_"),
    "distillation_loss": None, "action_entropy": None, "supervised_loss": None,
    "self_imitation_loss": None, "coma_advantages": None, "popart_update": None,
    "policy_distillation_loss": None},
  "starleague.actor.rewards": {
    "build_order_distance": ("target", "target_xy", "built", "built_xy"),
    "hamming_distance": ("target", "built"), "time_factor": ("game_loop",)},
  "starleague.league": {
    "pfsp": ("win_rates", "weighting"), "remove_monotonic_suffix": ("win_rates",),
    "Payoff": None, "Coordinator": None, "elo_expected_score": ("difference",),
    "nash": ("payoff_matrix",), "relative_population_performance": ("payoff_matrix",)},
  "starleague.data": {
    "make_tables": None, "make_server": None, "dataset": ("source", "batch_size"),
    "StatisticsLibrary": None},
  "starleague.environments": {"make_environment": ("name",)},
  "starleague.environments.skirmish": {"make_skirmish": ("tier",), "SkirmishEnvironment": None},
  "starleague.environments.skirmish.adapters": {
    "make_gymnasium": ("opponent",), "make_pettingzoo": ("tier",)},
  "starleague.environments.skirmish.adapters.pure": {"Duel": ("tier",), "Solo": ("opponents",)},
}


@pytest.mark.parametrize("module, name, parameters", [
  (module, name, parameters) for module, names in PUBLIC.items()
  for name, parameters in names.items()])
def test_public_names(module, name, parameters):
  found = getattr(importlib.import_module(module), name)
  if parameters is not None:
    assert tuple(inspect.signature(found).parameters)[:len(parameters)] == parameters


@pytest.mark.parametrize("name, parameters", [
  ("init", ("key",)), ("initial_state", ()), ("step", ("params", "key", "observation", "state")),
  ("unroll", ("params", "trajectory"))])
def test_the_policy_has_its_functions(name, parameters):
  from starleague import agent
  policy = agent.make_policy(agent.mini())
  found = tuple(inspect.signature(getattr(policy, name)).parameters)
  assert found[:len(parameters)] == parameters


@pytest.mark.parametrize("output, fields", [
  ("StepOutput", ("action", "log_prob", "logits", "state")),
  ("UnrollOutput", ("logits", "baselines", "state"))])
def test_outputs_have_their_fields(output, fields):
  agent = importlib.import_module("starleague.agent")
  assert getattr(agent, output)._fields == fields
