"""Measures the response of a run's agent to its conditioning: z and the MMR.

  python -m starleague.experiments.conditioning --run_dir runs/mini --agent imitation
  python -m starleague.experiments.conditioning --run_dir runs/mini --opponents rusher --out z.json

Plays evaluation games with the right z, a shuffled z and no z, then with a high and a low MMR.
Prints means and differences with 95% intervals, and appends them to the run's results as
conditioning/ARM/MEASURE. docs/imitation.md explains the arms.
"""

import json
import pathlib

from absl import flags

from starleague.common import files, results
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry, ranges, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import conditioning, evaluating
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents, z_source
from starleague.experiments.run.progress import bar

for _name in ("run_dir", "agent", "opponents", "match_games", "out", "seed"):
  flags.declare_key_flag(_name)
_LIBRARY = flags.DEFINE_string("library", None, "Library of z. Default: z.npz of the run.")
_GAMES = flags.DEFINE_integer(
  "arm_games", 200, "Games of each arm against each opponent, half from each side.", lower_bound=2)
_MMRS = flags.DEFINE_list("mmrs", ["7000", "2000"], "A high and a low MMR.")


def mmrs_of(texts: list[str]) -> tuple[int, int]:
  """Returns the high and the low MMR of the flag.

  Raises:
    SettingsError: they are not two different ones of the integers that observations hold.
  """
  valid = ranges.RANGES["environment.mmr"]
  if len(texts) != 2 or any(not text.isdecimal() or int(text) not in valid for text in texts):
    raise settings.SettingsError(
      f"--mmrs must be two integers {valid}, as 7000,2000, found {','.join(texts)!r}.")
  high, low = map(int, texts)
  if high == low:
    raise settings.SettingsError(
      f"--mmrs must be two different integers, as 7000,2000, found {','.join(texts)!r}.")
  return high, low


def main() -> None:
  run_dir, mmrs = pathlib.Path(run_flags.given(run_flags.RUN_DIR)), mmrs_of(_MMRS.value)
  match_games, agent = run_flags.match_games(least=0), run_flags.AGENT.value
  if _GAMES.value % 2:
    raise settings.SettingsError(
      f"--arm_games must be even (half from each side), found {_GAMES.value}.")
  config = settings.load(run_dir)
  parts = registry.make_parts(config)
  params, update = saved_agents.load(parts, run_dir, agent)
  library = _LIBRARY.value or z_source.library_path(config, run_dir)
  if library is None:
    raise UserError(f"--library: {run_dir} has no library of z, because it imitated no games")
  opponents = evaluating.opponent_indices(
    run_flags.OPPONENTS.value or parts.opponents, parts.opponents)
  test = conditioning.make_test(
    parts, z_source.from_library(parts, config, pathlib.Path(library)), opponents, _GAMES.value,
    mmrs, match_games)
  run_flags.make_parent(run_flags.OUT)
  with bar.Bar("conditioning", test.games, "games") as shown:
    found = conditioning.play(test, params, run_flags.SEED.value, shown.update)
  print("\n".join(conditioning.table(found, mmrs)))
  path = run_dir / results.FILE_NAME
  results.append(path, conditioning.result_rows(found, mmrs, results.last_seconds(path), update))
  if run_flags.OUT.value is not None:
    with files.replacing(run_flags.OUT.value) as file:
      json.dump({"agent": agent, "update": update, "library": str(library),
                 **conditioning.summary(found, mmrs)}, file, indent=1)


if __name__ == "__main__":
  entry.run(main, required=["run_dir"])
