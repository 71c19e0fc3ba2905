"""A whole ablation of two arms, small; wrong command lines of `ablate` and `conditioning`."""

import json

import pytest
from absl import flags
from absl.testing import flagsaver

from starleague.common import run_files
from starleague.experiments import ablate, conditioning
from starleague.experiments.configs import ablations
from starleague.experiments.configs.ablations import Ablation, Arm
from starleague.experiments.run.config import settings
from tests.experiments import imitated_games
from tests.experiments.launch import launch, refusal
from tests.experiments.runs import SIZES, variables

# The arms have one objective, and so one compiled update.
SMALL = Ablation(
  title="small", updates=3, seeds=(4,), games=2, match_games=2, opponents=("rusher",),
  overrides={"learner.teacher_kl": 0.05, "learner.entropy": 2e-3},
  arms=(Arm("random", "random", {"init": "random"}),
        Arm("z", "imitation and z", {"init": "imitation"}, shows_z=True)))
SETTINGS = ("imitation.seconds=0", "imitation.epochs=1",
            *SIZES, "imitation.held_out=0.2", "imitation.fine_tune_mmr=2000",
            "imitation.fine_tune_seconds=0", "evaluation.games=2", "learner.log_interval_s=1")


@pytest.fixture
def small(monkeypatch):
  monkeypatch.setitem(ablations.ABLATIONS, "small", SMALL)
  for name, value in variables().items():
    monkeypatch.setenv(name, value)


@pytest.mark.nightly
@pytest.mark.slow
def test_an_ablation_trains_plays_and_draws(small, tmp_path):
  dataset = imitated_games.write(tmp_path / "games", 8, 20)
  words = ("small", "--runs_dir", tmp_path, f"--config.demonstrations.dataset={dataset}",
           *(f"--config.{setting}" for setting in SETTINGS))
  assert launch(ablate, *words) is None
  folder = tmp_path / "small"
  for run in ("random_4", "z_4"):
    saved = sorted(path.name for path in (folder / run / run_files.CHECKPOINTS).glob("[0-9]*"))
    assert saved == [f"{step:012d}" for step in (1, 3)]
  assert (folder / "z_4" / run_files.IMITATED).is_dir()
  assert not (folder / "random_4" / run_files.IMITATED).exists()
  measures = {measure["title"]: measure["values"]
              for measure in json.loads((folder / "ablation.json").read_text())["measures"]}
  scores = measures["score against rusher, %"]
  assert list(scores) == ["random", "z", "z, z shown"]
  assert all(0 <= value <= 100 for values in scores.values() for value in values)
  games = json.loads((folder / "games.json").read_text())
  assert sum(games["random, seed 4 against z, seed 4"]["counts"]) == 2
  assert "</svg>" in (folder / "ablation.svg").read_text()
  # Started again, it only draws: nothing is trained or played.
  before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")
            if path.name != "ablation.json"}
  assert launch(ablate, *words) is None
  assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_command_line_changes_seeds_and_sizes():
  before = ablations.ABLATIONS["figure3_league"]
  with flagsaver.flagsaver():
    flags.FLAGS(["ablate", "--seeds=4,2,4", "--updates=7", "--exploiter_updates=5",
                 "--match_games=6", "--entrant_games=8", "--arms=exploiters,main",
                 "--opponents=builder,passive"])
    assert ablate.chosen("figure3_league") == before._replace(
      arms=(before.arms[0], before.arms[2]), seeds=(4, 2), updates=7, exploiter_updates=5,
      match_games=6, games=8, opponents=("builder", "passive"))
  with flagsaver.flagsaver():
    flags.FLAGS(["ablate"])
    assert ablate.chosen("figure3_league") == before


@pytest.mark.parametrize("words, message", [
  (["nothing"], "ablation 'nothing' does not exist; expected one of figure3_human_data"),
  ([], "expected NAME beside the flags, found no arguments"),
  (["figure3_human_data", "--seeds=1,x"], "--seeds must be integers, as 0,1,2, found '1,x'"),
  (["figure3_human_data", "--entrant_games=3"], "--entrant_games must be even"),
  (["figure3_human_data", "--match_games=0"],
   "--match_games must be even (half from each side) and at least 2, found 0"),
  (["figure3_human_data", "--updates=0"], "--updates"),
  (["figure3_league", "--arms=main,nobody"],
   "--arms must be two or more of main,main_exploiter,exploiters, each once, found 'main,nobody'"),
  (["figure3_league", "--arms=main,main"], "each once, found 'main,main'"),
  (["figure3_league", "--arms=main"], "found 'main'"),
  (["figure3_league", "--exploiter_updates=0"], "--exploiter_updates"),
  (["figure3_league", "--opponents=rush"],
   "--opponents names 'rush'; expected some of passive, rusher, builder, random_player"),
  (["figure3_league", "--opponents=rusher,rusher"], "--opponents names 'rusher' more than once"),
  (["figure3_human_data", "--config.actor.gamse=1"], "the nearest is 'actor.games'"),
  (["figure3_human_data", "--config.preset=huge"], "'huge'"),
  (["figure3_human_data", "--imitator=typo"], "typo has no 'z.npz'"),
  (["figure3_human_data", "--runs_dir=a,b"], "--runs_dir must name a directory without ','"),
])
def test_wrong_command_lines_of_ablate(words, message, small, tmp_path):
  assert message in refusal(ablate, "--runs_dir", tmp_path, *words)


@pytest.mark.parametrize("words, message", [
  (["--mmrs=7000"], "--mmrs must be two integers in [0, 32767], as 7000,2000, found '7000'"),
  (["--mmrs=7000,-1"], "found '7000,-1'"),
  (["--mmrs=70000,1"], "found '70000,1'"),
  (["--mmrs=7000,07000"], "two different integers, as 7000,2000, found '7000,07000'"),
  (["--arm_games=3"], "--arm_games must be even (half from each side), found 3"),
  (["--agent=best"], "agent"),
  ([], "config.json does not exist; expected the config of a run there"),
])
def test_wrong_command_lines_of_conditioning(words, message, tmp_path):
  assert message in refusal(conditioning, "--run_dir", tmp_path, *words)


def test_an_output_of_conditioning_that_cannot_be_written_is_refused_before_the_games(
    tmp_path, monkeypatch):
  settings.save(settings.complete({}), tmp_path / "run")
  monkeypatch.setattr(conditioning.saved_agents, "load", lambda *_: (None, 7))
  monkeypatch.setattr(conditioning.z_source, "from_library", lambda *_: None)
  monkeypatch.setattr(conditioning.conditioning, "make_test", lambda *_: None)
  words = "--run_dir", tmp_path / "run", "--library", "z.npz", "--out", tmp_path
  assert refusal(conditioning, *words) == (
    f"error: --out: expected the path of a file, found the folder '{tmp_path}'; add a name")
  assert "names 'rusher' more than once" in refusal(
    conditioning, *words, "--opponents", "rusher,rusher")
