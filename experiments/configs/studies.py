"""Studies of the companion systems: what each paper shows, repeated on small tasks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Overrides = Mapping[str, Any]  # values of `--set` keys of `companion`


class Arm(NamedTuple):
  """One variant of the training."""

  name: str  # of its runs, with the seed
  title: str  # in tables and figures
  overrides: Overrides = {}
  system: str = ""  # that is trained; "": that of the study


class Metric(NamedTuple):
  """What is compared: tags in the results of a run."""

  tag: str = "return/evaluation"  # whose last value counts; of a part: "return/evaluation/PART"
  title: str = "return of the evaluation"
  curve: str = "return/train"  # drawn over the steps
  curve_title: str = "return of training episodes"
  digits: int = 2  # decimals of printed values


class Study(NamedTuple):
  """An experiment: every arm is trained with every seed for the same number of steps."""

  title: str
  arms: tuple[Arm, ...]  # the first is that which the others are compared with
  system: str = ""
  overrides: Overrides = {}  # of all arms
  seeds: tuple[int, ...] = (0, 1, 2)
  metrics: tuple[Metric, ...] = (Metric(),)


_REPLAY = {"replay_share": 0.5, "replay_size": 10_000}
_LAG = 16  # updates by which the acting parameters are behind
_CORRECTIONS = tuple(
  Arm(correction, title, {"impala.correction": correction}) for correction, title in (
    ("vtrace", "V-trace"), ("one_step", "1-step"), ("epsilon", "epsilon-correction"),
    ("none", "no correction")))


def _corrections(game: str, title: str, arms: tuple[Arm, ...], **overrides: Any) -> Study:
  """Espeholt et al. 2018, section 5.2.2 and Table 2: V-trace against simpler corrections."""
  return Study(
    f"Off-policy corrections of IMPALA (Espeholt et al. 2018, Table 2), {title}", arms, "impala",
    {"task": f"minatar-{game}", "steps": 4_000_000, "learning_rate": 3e-3, **overrides})


_WITH_REPLAY = _CORRECTIONS + tuple(
  Arm(f"{arm.name}_replay", f"{arm.title}, replay", {**arm.overrides, **_REPLAY})
  for arm in _CORRECTIONS)

STUDIES = {
  "impala_corrections_breakout": _corrections("breakout", "MinAtar Breakout", _WITH_REPLAY),
  "impala_corrections_asterix": _corrections("asterix", "MinAtar Asterix", _WITH_REPLAY),
  "impala_lag_breakout": _corrections(
    "breakout", f"MinAtar Breakout, acting {_LAG} updates late", _CORRECTIONS, lag=_LAG),
}
