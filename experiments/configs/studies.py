"""Studies of the companion systems: what each paper shows, repeated on small tasks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from starleague.common import results

Overrides = Mapping[str, Any]  # values of `--set` keys of `companion`


class Arm(NamedTuple):
  """One variant of the training."""

  name: str  # of its runs, with the seed
  title: str  # in tables and figures
  overrides: Overrides = {}
  system: str = ""  # that is trained; "": that of the study
  population: Mapping[str, Any] = {}  # flags of `population`, which trains; empty: `companion`


class Metric(NamedTuple):
  """What is compared: tags in the results of a run."""

  # Whose last value counts; of a part: "return/evaluation/PART". "": the mean of the curve.
  tag: str = "return/evaluation"
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
  teachers: tuple[Arm, ...] = ()  # trained first, once; the arms learn from them
  teachers_key: str = ""  # of the arms, that gets the teachers' directories, commas between them
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
    {"task": f"minatar-{game}", "steps": 200_000, "learning_rate": 3e-3, **overrides})


_WITH_REPLAY = _CORRECTIONS + tuple(
  Arm(f"{arm.name}_replay", f"{arm.title}, replay", {**arm.overrides, **_REPLAY})
  for arm in _CORRECTIONS)

_GAMES = ("minatar-breakout", "minatar-asterix:scale=10", "minatar-freeway:scale=100",
          "minatar-space_invaders:scale=1000")
_SMALL_FTW = {"ftw.torso": "dense", "ftw.size": 64}
_BIT_DELAY = 30  # steps that FTW and MERLIN must remember a bit for; an episode has one more
_SEARCH = {"members": 5, "interval": 30_000,
           "ranges": "learning_rate=1e-4:1e-2,entropy_cost=1e-4:1e-1"}
_DELAY = 24  # steps between the context and the question: longer than a replayed unroll


def _critics(task: str, title: str, **overrides: Any) -> Study:
  """Foerster et al. 2018, Figure 3: the counterfactual baseline against two other critics."""
  return Study(
    f"Critics of cooperating agents (Foerster et al. 2018), {title}",
    tuple(Arm(critic, title, {"coma.critic": critic}) for critic, title in (
      ("coma", "COMA"), ("central", "central V"), ("independent", "independent actor-critic"))),
    "coma", {"task": task, **overrides})


_VALUES = tuple(Arm(values, title, {"popart.values": values}) for values, title in (
  ("popart", "PopArt"), ("plain", "without normalisation"), ("clipped", "clipped rewards")))


def _scaled_cartpole(scale: float, steps: int, step_size: float) -> Study:
  """Hessel et al. 2019: one task, with rewards of an unusual size."""
  return Study(
    f"Values of Cartpole with rewards of {scale:g} (Hessel et al. 2019)", _VALUES, "popart",
    {"task": f"bsuite-cartpole_scale:scale={scale}", "steps": steps, "copies": 16,
     "batch_size": 8, "learning_rate": 2e-3, "evaluation_episodes": 48, "popart.torso": "dense",
     "popart.size": 64, "popart.step_size": step_size},
    metrics=(Metric(digits=2 if scale < 1 else 0),))


_TAUGHT = ("minatar-breakout", "minatar-space_invaders", "minatar-freeway")
_TEACHER = {"learning_rate": 3e-3, "final_rate": 0.1}
# A quarter of a teacher's parameters; the temperature keeps the teachers' policies.
_STUDENT = {"policy_distillation.size": 20, "policy_distillation.lstm": 16,
            "policy_distillation.temperature": 1.0, "samples_per_item": 4.0,
            "learning_rate": 2e-3, "final_rate": 0.1}


def _distillation(title: str, games: tuple[str, ...], **overrides: Any) -> Study:
  """Rusu et al. 2016: a student for each loss, against its teachers in the same evaluation."""
  return Study(
    f"Losses of policy distillation (Rusu et al. 2016), {title}",
    (Arm("teachers", "teachers", {"policy_distillation.player": "teacher", "steps": 10_000}),
     *(Arm(kind, f"student, {kind.upper()}", {"policy_distillation.kind": kind})
       for kind in ("nll", "mse", "kl"))), "policy_distillation",
    {"task": "+".join(games), **_STUDENT, **overrides},
    teachers=tuple(Arm(game.partition("-")[2], game, {"task": game, "steps": 500_000, **_TEACHER},
                       system="impala") for game in games),
    teachers_key="policy_distillation.teachers",
    metrics=tuple(Metric(f"return/evaluation/{game}", f"return, {game}", f"return/train/{game}")
                  for game in games) if len(games) > 1 else (Metric(),))


_EPISODES = 10_000  # of deep_sea, as in bsuite


def _self_imitation(task: str, title: str, **overrides: Any) -> Study:
  """Oh et al. 2018: A2C with self-imitation against A2C, at equal steps of the task."""
  alone = {"self_imitation.imitate": False, "replay_share": 0.0, "batch_size": 16}
  return Study(
    f"Self-imitation (Oh et al. 2018), {title}",
    (Arm("imitation", "A2C + SIL"), Arm("alone", "A2C", alone)), "self_imitation",
    {"task": task, **overrides}, seeds=(0, 1, 2, 3, 4))


_ROOM = "size=9,length=2,branches=1,limit=80"
_SOLUTIONS = tuple(f"boxworld:{_ROOM},shortest={length},sparse=true".replace(
  "length=2", f"length={length}") for length in (1, 2))


def _relations(task: str, title: str, **overrides: Any) -> Study:
  """Zambaldi et al. 2018: attention between cells against convolutions only."""
  return Study(
    f"Relations between cells (Zambaldi et al. 2018), {title}",
    tuple(Arm(name, name, {"relational.relations": name}) for name in (
      "attention", "convolution")), "relational",
    {"task": task, "relational.blocks": 1, "relational.entropy_cost": 0.02, **overrides})


STUDIES = {
  "impala_corrections_breakout": _corrections("breakout", "MinAtar Breakout", _WITH_REPLAY),
  "impala_corrections_asterix": _corrections("asterix", "MinAtar Asterix", _WITH_REPLAY),
  "impala_lag_breakout": _corrections(
    "breakout", f"MinAtar Breakout, acting {_LAG} updates late", _CORRECTIONS, lag=_LAG),
  "popart_minatar": Study(
    "Values of four games with reward scales 1 to 1000 (Hessel et al. 2019)",
    _VALUES, "popart", {"task": "+".join(_GAMES), "steps": 400_000, "evaluation_episodes": 32,
                        "popart.step_size": 0.3},
    metrics=tuple(Metric(f"return/evaluation/{game}", f"return, {game}", f"return/train/{game}")
                  for game in _GAMES)),
  "popart_cartpole_small": _scaled_cartpole(0.001, 300_000, 3e-2),
  "popart_cartpole_large": _scaled_cartpole(1000.0, 100_000, 3e-3),
  "population_asterix": Study(
    "Population-based training and random search, MinAtar Asterix (Jaderberg et al. 2017)",
    (Arm("population", "population", population={**_SEARCH, "selection": "truncation"}),
     Arm("random", "random search", population={**_SEARCH, "selection": "none"})),
    "impala", {"task": "minatar-asterix", "steps": 300_000},
    metrics=(Metric(title="return of the best member", curve="return/train/best",
                    curve_title="return of the best member in training"),
             Metric("return/evaluation/mean", "mean return of the members", "return/train/mean",
                    "mean return of the members in training"))),
  "r2d2_states": Study(
    "States of replayed sequences (Kapturowski et al. 2019, section 3)",
    (Arm("burn_in", "stored state and burn-in"),
     Arm("stored", "stored state", {"r2d2.burn_in": 0, "unroll_length": 10}),
     Arm("zero", "zero state",
         {"r2d2.burn_in": 0, "unroll_length": 10, "r2d2.stored_state": False})),
    "r2d2", {"task": f"bsuite-memory_len:length={_DELAY}", "steps": 100_000, "unroll_length": 15,
             "period": 5, "samples_per_item": 1.0, "r2d2.burn_in": 5, "r2d2.torso": "dense",
             "r2d2.size": 64, "r2d2.lstm": 64,
             "r2d2.context": False},  # else the last action stores the answer outside the LSTM
    metrics=(Metric("", "mean return in training"), Metric())),
  "r2d2_breakout": Study(
    "R2D2 and IMPALA at equal frames, MinAtar Breakout (Kapturowski et al. 2019)",
    (Arm("r2d2", "R2D2", system="r2d2"),
     Arm("impala", "IMPALA", {"learning_rate": 3e-3}, system="impala")),
    overrides={"task": "minatar-breakout", "steps": 500_000}),
  "ftw_memory": Study(
    "Two time scales, one bit over 30 steps (Jaderberg et al. 2019)",
    (Arm("ftw", "FTW", _SMALL_FTW, system="ftw"),
     Arm("flat", "FTW without slow core", {**_SMALL_FTW, "ftw.hierarchy": False}, system="ftw"),
     Arm("wide", "FTW, latents with noise of 1", {**_SMALL_FTW, "ftw.sigma": 1.0}, system="ftw"),
     Arm("lstm", "one LSTM", {"impala.torso": "dense", "impala.size": 64, "impala.lstm": 123},
         system="impala")),
    overrides={"task": f"bsuite-memory_len:length={_BIT_DELAY}", "steps": 700_000, "copies": 32,
               "unroll_length": 2 * (_BIT_DELAY + 1), "batch_size": 8}),
  "merlin_recall": Study(
    "Memory of latent states, one bit over 30 steps and unrolls of 10 (Wayne et al. 2018)",
    (Arm("merlin", "MERLIN", system="merlin"),
     Arm("without", "without memory", {"merlin.memory": False}, system="merlin"),
     Arm("lstm", "one LSTM", {"impala.torso": "dense", "impala.size": 64, "impala.lstm": 145},
         system="impala")),
    overrides={"task": f"bsuite-memory_len:length={_BIT_DELAY}", "steps": 200_000, "copies": 32,
               "unroll_length": 10, "batch_size": 16, "learning_rate": 1e-3, "final_rate": 0.0}),
  "policy_distillation_games": _distillation(
    "one student of three teachers", _TAUGHT, steps=300_000, evaluation_episodes=32),
  "policy_distillation_breakout": _distillation(
    "MinAtar Breakout", _TAUGHT[:1], steps=100_000, evaluation_episodes=96),
  "coma_spread": _critics(
    "jaxmarl-simple_spread:scale=0.1,clock=true", "simple_spread, rewards times 0.1",
    steps=800_000, **{"coma.entropy_cost": 0.001}),
  "coma_overcooked": _critics(
    "jaxmarl-overcooked-cramped_room:shaping=1.0", "cramped_room", steps=500_000,
    **{"coma.torso": "shallow", "coma.policy_rate": 0.2}),
  "self_imitation_deep_sea_10": _self_imitation(
    "bsuite-deep_sea:size=10", "deep_sea, N = 10", steps=10 * _EPISODES),
  "self_imitation_deep_sea_14": _self_imitation(
    "bsuite-deep_sea:size=14", "deep_sea, N = 14", steps=14 * _EPISODES, unroll_length=28,
    period=14),
  "self_imitation_doorkey": _self_imitation(
    "xminigrid-DoorKey-8x8", "DoorKey-8x8", steps=2_000_000, unroll_length=64, period=32),
  "relational_boxworld": _relations(
    f"boxworld:{_ROOM}", "Box-World, solutions of 1 or 2 boxes", steps=1_500_000,
    evaluation_tasks="+".join(_SOLUTIONS))._replace(metrics=(Metric(), *(
    Metric(f"return/evaluation/{results.as_tag(name)}", f"solved share, {length} to open")
    for length, name in enumerate(_SOLUTIONS, 1)))),
  "relational_unlock": _relations("xminigrid-UnlockPickUp", "UnlockPickUp", steps=2_000_000),
}
