"""Packs a run's agent as the pretrained weights of its preset: `agent/data/PRESET.json` and `.npz`.

  python -m starleague.experiments.generate.pretrained --run_dir runs/mini --games 400 --seed 100000

It plays evaluation games first. Choose a seed that was not used to select the weights: otherwise
the scores are biased. The manifest holds the scores, the command that trained the weights, and the
commit.
"""

import pathlib
import time

import ml_collections
from absl import flags

from starleague.actor import evaluation
from starleague.agent import pretrained
from starleague.common import provenance
from starleague.common.errors import UserError
from starleague.experiments.configs import mini, small
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import evaluating
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents

for _name in ("run_dir", "games", "opponents", "seed"):
  flags.declare_key_flag(_name)
_AGENT = flags.DEFINE_enum(
  "trained_agent", run_flags.TRAINED, run_flags.AGENTS,
  "The run's newest weights, those that reinforcement learning started from, or its imitator.")
_COMMIT = flags.DEFINE_string("commit", None, "Commit that trained the run. Default: the current.")
_OUTPUT = flags.DEFINE_string(
  "pretrained", str(pathlib.Path(pretrained.__file__).parent / "data"),
  "Folder the files are written to.")
_CONFIGS = {"mini": mini, "small": small}


def command_of(config: ml_collections.ConfigDict) -> str:
  """Returns the command line that trains a run of this config.

  Raises:
    UserError: its preset has no config file, or its agent is not that preset.
  """
  if config.preset not in _CONFIGS:
    raise UserError(f"config key 'preset': expected {' or '.join(_CONFIGS)}, found "
                    f"{config.preset!r}: no other preset has pretrained weights")
  if config.agent:
    raise UserError(f"config key 'agent': expected '', found {config.agent!r}: weights that are "
                    "included must be of the preset")
  defaults = _CONFIGS[config.preset].get_config(config.init).to_dict()
  changed = settings.differences(settings.complete(defaults), config, ignored=("seed",))
  init = [] if config.init == settings.IMITATION else [f"--config.init={config.init}"]
  return " ".join((
    "python -m starleague.experiments.train", f"--config=experiments/configs/{config.preset}.py",
    *init,
    *(f"--config.{key}={value}" for key, _, value in changed), f"--config.seed={config.seed}"))


def _commit() -> str:
  """Returns the commit of the source tree; raises UserError outside a repository."""
  if _COMMIT.value:
    return _COMMIT.value
  found = provenance.commit()
  if found is None:
    raise UserError("--commit: this is no git repository; give the commit that trained the run")
  return found


def main() -> None:
  run_dir, given = pathlib.Path(run_flags.given(run_flags.RUN_DIR)), run_flags.even_games()
  config, commit = settings.load(run_dir), _commit()
  command = command_of(config)
  parts = registry.make_playing_parts(config, run_flags.OPPONENTS.value or ())
  games = given or config.evaluation.games
  params, updates = saved_agents.load(parts, run_dir, _AGENT.value)
  folder = run_flags.make_folder(_OUTPUT)
  play = registry.game_of(config).engine.make_evaluation(
    parts, range(len(parts.opponents)), games, run_flags.SEED.value)
  counts = evaluation.count_by_name(play(params), parts.opponents)
  scores = tuple(pretrained.Score(name, *evaluating.score_of(found))
                 for name, found in counts.items())
  for score in scores:
    print(f"opponent={score.opponent} games={games} score={score.score:.3f} "
          f"score_interval=[{score.low:.3f},{score.high:.3f}]", flush=True)
  date = time.strftime("%Y-%m-%d", time.gmtime(run_dir.stat().st_mtime))
  path = pretrained.save_pretrained(pretrained.Pretrained(
    parts.config, params, pretrained.Origin(
      command, commit, date, config.seed, updates, config.environment.tier, parts.mmr, games,
      scores)), folder)
  print(f"manifest={path} kilobytes={path.with_suffix('.npz').stat().st_size / 1000:.0f}")


if __name__ == "__main__":
  entry.run(main, required=["run_dir"])
