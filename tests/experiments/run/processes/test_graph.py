"""The process graphs of runs: programs, addresses, places, environments."""

import pathlib

import pytest

from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import graph, process_runner
from starleague.experiments.run.processes.programs import Address, Placeholder
from starleague.learner.loops.imitation_setup import Recorded

RUN = pathlib.Path("/runs/x")


@pytest.mark.parametrize("batch_size, accumulate, cores, devices", [
  (32, 1, 1, 1), (32, 1, 2, 2), (32, 1, 6, 4), (32, 4, 16, 8), (6, 1, 4, 3), (7, 1, 4, 1),
  (8, 8, 4, 1),
])
def test_devices_divide_the_batch(batch_size, accumulate, cores, devices):
  variables = graph.data_parallel(
    {"XLA_FLAGS": "--a", "X": "y"}, batch_size, accumulate, cores)
  assert variables["JAX_NUM_CPU_DEVICES"] == str(devices)
  assert variables["XLA_FLAGS"] == f"--a {graph.ONE_THREAD}" and variables["X"] == "y"


def by_name(made):
  process_runner.Runner(made.processes)  # refuses repeated names and peers that do not listen
  return {process.name: process for process in made.processes}


def value_of(process, flag):
  return process.argv[process.argv.index(flag) + 1]


def test_a_run_of_one_agent():
  made = graph.training(settings.complete({}, {"actor.processes": 2}), RUN, 5.0)
  found = by_name(made)
  assert list(found) == ["data_server", "learner", "actor 0", "actor 1"]
  assert made.until == ("learner",)
  assert {name: process.peers for name, process in found.items()} == {
    "data_server": [], "learner": ["data_server"], "actor 0": ["data_server"],
    "actor 1": ["data_server"]}
  assert found["actor 1"].argv == (
    Placeholder.PYTHON, "-m", "starleague.experiments.actor", "--run_dir", "/runs/x", "--address",
    Address("data_server"), "--origin", "5.0", "--index", "1")
  assert found["actor 1"].env["NPROC"] == "1" and "NPROC" not in found["learner"].env
  assert found["actor 1"].log_path == RUN / "logs" / "actor_1.log"
  assert [process.ends_last for process in made.processes] == [True, False, False, False]


def test_several_hosts_are_a_gang_with_a_data_server_each():
  """As docs/training.md starts them by hand."""
  config = settings.complete({}, {
    "cluster.learner_hosts": 2, "cluster.learner": "TPU:4,TPU-v4-16-head:1",
    "actor.processes": 3})
  made = graph.training(config, RUN, 0.0)
  found = by_name(made)
  assert made.until == ("learner 0", "learner 1")
  first, second = found["learner 0"], found["learner 1"]
  assert first.gang == second.gang == "learner" and first.listens and not second.listens
  assert value_of(first, "--coordinator") is Placeholder.ADDRESS
  assert value_of(second, "--coordinator") == Address("learner 0")
  assert [value_of(learner, "--host") for learner in (first, second)] == ["0", "1"]
  assert [value_of(found[f"learner {i}"], "--address") for i in (0, 1)] == [
    Address("data_server 0"), Address("data_server 1")]
  assert [value_of(found[f"actor {i}"], "--address").process for i in range(3)] == [
    "data_server 0", "data_server 1", "data_server 0"]
  assert value_of(found["actor 1"], "--parameters") == Address("data_server 0")
  assert first.needs == {"TPU": 4.0, "TPU-v4-16-head": 1.0}


def test_a_league():
  made = graph.league(settings.complete({}, {
    "league.composition": "terran:1:1:0", "league.evaluators": 2}), RUN, 0.0)
  found = by_name(made)
  assert list(found) == ["coordinator", "data_server", "learner", "actor 0", "evaluator 0",
                         "evaluator 1"]
  assert found["coordinator"].argv[3:9] == (
    "--league_file", "/runs/x/league.sqlite", "--listen", Placeholder.HOST,
    "--port", Placeholder.PORT)
  assert value_of(found["coordinator"], "--matchmaking") == "pfsp"
  for name in ("learner", "actor 0", "evaluator 1"):
    assert found[name].peers == ["data_server", "coordinator"]
  assert found["data_server"].peers == ["coordinator"]
  assert made.until == ("learner",)


def test_a_league_with_a_learner_for_each_player():
  made = graph.league(settings.complete({}, {
    "league.composition": "terran:1:1:0", "cluster.learners": "each"}), RUN, 0.0)
  names = ["terran-main-0", "terran-main_exploiter-0"]
  assert made.until == tuple(f"learner {name}" for name in names)
  found = by_name(made)
  assert [value_of(found[f"learner {name}"], "--league_players") for name in names] == names


@pytest.mark.parametrize("races, words", [
  ("", ()), ("zerg,terran", ()), ("zerg", ("--races", "zerg,zerg"))])
def test_games_of_one_race_are_recorded(races, words):
  config = settings.complete({}, {
    "preset": "small", "environment.tier": "default", "environment.opponents": "rush",
    "actor.demonstrators": "", "demonstrations.players": "rush", "environment.races": races})
  argv = graph.demonstrating(config, RUN, RUN / "demonstrations").processes[0].argv
  assert argv[argv.index("--seed") + 2:] == words


def test_recorded_players_meet_one_another_or_their_opponents():
  config = settings.complete({}, {
    "preset": "small", "environment.tier": "default", "environment.opponents": "rush",
    "actor.demonstrators": "", "demonstrations.players": "adaptive",
    "demonstrations.opponents": "rush,macro"})
  argv = graph.demonstrating(config, RUN, RUN / "demonstrations").processes[0].argv
  assert argv[argv.index("--opponents") + 1] == "rush,macro"
  config.demonstrations.opponents = ""
  argv = graph.demonstrating(config, RUN, RUN / "demonstrations").processes[0].argv
  assert "--opponents" not in argv


@pytest.mark.parametrize("keep, z", [
  ({}, "--student_z"), ({"imitation.keep_build_order": 0.0}, "--student_z"),
  ({"imitation.keep_build_order": 0.0, "imitation.keep_cumulative": 0.0}, "--nostudent_z")])
def test_the_imitators_games_are_labelled_by_the_recorded_players(keep, z):
  config = settings.complete({}, {
    "demonstrations.players": "rusher,builder", "demonstrations.opponents": "passive", "seed": 3,
    "demonstrations.labels": 60, "demonstrations.labels_share": 0.25, **keep})
  made = graph.labelling(config, RUN, RUN / "labels")
  assert made.until == ("labeller",)
  assert made.processes[0].argv[2:] == (
    "starleague.experiments.demonstrate", "--run_dir", str(RUN), "--dataset", f"{RUN}/labels",
    "--players", "rusher,builder", "--games", "60", "--preset", "mini", "--seed", "3",
    "--opponents", "passive", "--student", str(RUN), "--teacher_share", "0.25", z)


@pytest.mark.parametrize("recorded, words", [
  (Recorded(RUN / "games"), ()), (Recorded(RUN / "games", first_alone=True), ("--first_phase",)),
  (Recorded(RUN / "games", RUN / "labels"), ("--labelled", f"{RUN}/labels"))])
def test_the_imitator_learns_the_phases_of_its_games(recorded, words):
  argv = graph.imitating(settings.complete({}), RUN, recorded, 5.0).processes[0].argv
  assert argv[3:] == ("--run_dir", str(RUN), "--dataset", f"{RUN}/games", "--origin", "5.0", *words)


@pytest.mark.parametrize("role, make", [
  ("actor", lambda config: graph.labelling(config, RUN, RUN / "labels")),
  ("actor", lambda config: graph.demonstrating(config, RUN, RUN / "demonstrations")),
  ("learner", lambda config: graph.imitating(config, RUN, Recorded(RUN / "games"), 0.0)),
  ("evaluator", lambda config: graph.evaluating(config, RUN, 0.0))])
def test_the_phases_around_a_run_have_the_places_of_their_roles(role, make):
  made = make(settings.complete({}, {f"cluster.{role}": "CPU:3,big:1"}))
  process, = made.processes
  assert process.needs == {"CPU": 3.0, "big": 1.0} and made.until == (process.name,)
