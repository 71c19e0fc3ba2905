"""A small but complete league on a Ray cluster of two nodes: every process killed once.

`league` runs the same graph without Ray.
"""

import functools
import pathlib
import signal
import sqlite3

import numpy as np
import pytest

from starleague import agent
from starleague.agent import baselines
from starleague.common import results, run_files
from starleague.data import checkpoints
from starleague.experiments import launch as experiment
from tests.experiments.launch import refusal
from tests.experiments.ray_nodes import start_cluster
from tests.experiments.run.libraries import save_imitator
from tests.experiments.runs import (
  SIZES,
  kill,
  output_of,
  pids_of,
  running,
  wait_for,
)

SETTINGS = ("league.seconds=100000", *SIZES, "learner.checkpoint_interval_s=2",
            "learner.log_interval_s=1", "learner.publish_interval_s=2",
            "league.composition=terran:1:1:0", "league.places=2", "league.games=3",
            "league.chunk=8", "league.lease_s=20", "league.snapshot_steps=512",
            "league.timeout_steps=1024",
            # Servers on the first node, players and learner on the second.
            "cluster.coordinator=head:1", "cluster.data_server=head:1", "cluster.learner=far:1",
            "cluster.actor=far:1", "cluster.evaluator=far:1")
LEARNERS = ("terran-main-0", "terran-main_exploiter-0")
RESULTS = "SELECT id, home, away, result FROM results"
KILLED = ("actor", "evaluator", "learner", "coordinator", "data_server")


def rows(run_dir: pathlib.Path, query: str) -> list[tuple]:
  """Returns the rows of a query on the league's file; none before it has tables."""
  path = run_dir / run_files.LEAGUE
  if not path.exists():
    return []
  with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30) as connection:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'results'").fetchone():
      return []
    return connection.execute(query).fetchall()


def met(run_dir: pathlib.Path) -> list[tuple]:
  """Returns the results of games between the two learners."""
  return [row for row in rows(run_dir, RESULTS) if set(row[1:3]) == set(LEARNERS)]


def restarted(run_dir: pathlib.Path, module: str, before: list[int]) -> bool:
  """Returns whether a process of a launch file runs that did not run before."""
  return bool(set(pids_of(run_dir, module)) - set(before))


@pytest.fixture(scope="module")
def ray_address():
  """A cluster of two nodes on this machine."""
  made = start_cluster(
    {"num_cpus": 1, "resources": {"head": 2}, "include_dashboard": False},
    {"num_cpus": 1, "resources": {"far": 4}})
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("RAY_ADDRESS", made.address)
    yield made.address
  made.shutdown()


@pytest.fixture(scope="module")
def finished(tmp_path_factory, ray_address):
  """A stopped league, and the results that were on disk when its last process was killed.

  It starts from the weights that ship with the agent, as after imitation. It plays until it has
  shown everything that the tests look for, however fast the machine is.
  """
  run_dir = tmp_path_factory.mktemp("runs") / "small"
  save_imitator(run_dir)
  before: set[tuple] = set()

  def has_more_results(known: int) -> bool:
    return len(rows(run_dir, RESULTS)) > known or started.poll() is not None

  def has_met_and_saved() -> bool:
    saved = {player for player, in rows(run_dir, "SELECT player FROM orders WHERE done")}
    return (saved == set(LEARNERS) and bool(met(run_dir))) or started.poll() is not None

  with running("launch", "--cluster=auto", "--runs_dir", str(run_dir.parent), "--run", "small",
               *(f"--config.{setting}" for setting in SETTINGS),
               optimised=True) as started:  # the test waits for many games to end
    for module in KILLED:
      wait_for(functools.partial(has_more_results, len(before)), "result")
      before = set(rows(run_dir, RESULTS))
      killed = pids_of(run_dir, module)
      kill(started, run_dir, module)
      wait_for(functools.partial(restarted, run_dir, module, killed), f"other {module}")
    wait_for(functools.partial(has_more_results, len(before)), "result")
    wait_for(has_met_and_saved, "snapshot of each learner and game between them")
    started.send_signal(signal.SIGINT)
    output = output_of(started)
  assert "stopped; the same command resumes from the last checkpoint" in output
  assert not any(pids_of(run_dir, module) for module in KILLED)
  return run_dir, before


@pytest.mark.slow
def test_nothing_counted_is_lost_when_processes_are_killed(finished):
  run_dir, before = finished
  after = rows(run_dir, RESULTS)
  assert before and before < set(after)
  assert len({identifier for identifier, *_ in after}) == len(after)


@pytest.mark.slow
def test_snapshots_are_saved_and_exploiters_reset(finished):
  run_dir, _ = finished
  done = rows(run_dir, "SELECT player, snapshot, reset FROM orders WHERE done")
  assert {player for player, *_ in done} == set(LEARNERS)
  assert all(reset == (player == LEARNERS[1]) for player, _, reset in done)
  config = agent.mini()
  initial = checkpoints.load_params(run_dir / run_files.INITIAL, config)
  for _, snapshot, _ in done:
    params = checkpoints.load_params(run_files.snapshot_path(run_dir, snapshot), config)
    moved = [np.abs(params[module][name] - x).max() for module, leaves in initial.items()
             for name, x in leaves.items() if not module.startswith(baselines.SCOPE)]
    assert 0 < max(moved) < 1  # the policy, not its value functions alone
  frozen = rows(run_dir, "SELECT name, parent FROM players WHERE kind = 'historical'")
  assert {name for name, _ in frozen} == {"terran-main-0-0000", *(name for _, name, _ in done)}


@pytest.mark.slow
def test_both_learners_learn_and_meet(finished):
  run_dir, _ = finished
  for name in LEARNERS:
    tags = results.by_tag(results.read(run_files.learner_dir(run_dir, name) / results.FILE_NAME))
    assert np.isfinite([row.value for row in tags["loss/total"]]).all()
  assert met(run_dir)


@pytest.mark.slow
def test_the_page_of_the_league_is_written_when_it_stops(finished):
  page = (finished[0] / "league.html").read_text()
  for part in (*LEARNERS, "terran-main-0-0001", "Family tree", "Learning curves"):
    assert part in page


@pytest.mark.parametrize("words, message", [
  (["--cluster=moon"], "expected local, auto or ray://HOST:PORT"),
  (["--cluster=ray://127.0.0.1:1"], "no Ray cluster is reachable at 'ray://127.0.0.1:1'"),
  (["--config.init=random"], "config key 'init' must be 'imitation' or 'pretrained'"),
  (["--config.init=pretrained"], "config key 'actor.library' must name a library of z"),
  (["--config.environment.name=sc2", "--config.init=pretrained", "--config.sc2.races=zerg"],
   "config key 'league.composition' has terran; expected some of zerg, the races of 'sc2.races'"),
  (["--config.league.composition=terran:1:1"],
   "config key 'league.composition': expected RACE:MAIN_AGENTS"),
  (["--config.league.composition=terran:0:0:1"],
   "config key 'league.composition': the composition has 1 players and no main agent"),
  (["--config.league.composition=terran:1:0:0,terran:1:0:0"],
   "config key 'league.composition': the composition has more than one player named terran-main"),
  (["--config.league.composition=zerg:1:0:0"],
   "has zerg; expected some of terran, the races of 'environment.tier'"),
  (["--config.league.composition=terran:0:0:0:1"],
   "config key 'league.composition' has no player that learns, found 'terran:0:0:0:1'"),
  (["--config.league.chunk=7"],
   "config key 'league.chunk' must divide 'actor.inference_batch' (64), found 7"),
  (["--config.cluster.learner_hosts=2"], "config key 'cluster.learner_hosts' must be 1 in a"),
  (["--kind=play"], "value should be one of <league|train>"),
])
def test_wrong_command_lines(words, message, tmp_path):
  assert message in refusal(experiment, "--runs_dir", tmp_path, *words)
