"""Ablations: the same training with one choice changed from arm to arm."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Overrides = Mapping[str, Any]  # values of config keys, dots between groups


class Arm(NamedTuple):
  """One variant of the training."""

  name: str  # of its runs, with the seed
  title: str  # in tables and figures
  overrides: Overrides
  shows_z: bool = False  # evaluated twice: without z, and with a z of the library in every game


class Ablation(NamedTuple):
  """An experiment: every arm is trained with every seed for the same number of updates.

  Those of a league are the updates of all its players together, or with `of_main` those of its main
  agent: in the paper exploiters have their own TPUs and take nothing from it.
  """

  title: str
  arms: tuple[Arm, ...]
  updates: int  # of reinforcement learning
  overrides: Overrides = {}  # of all arms
  seeds: tuple[int, ...] = (0, 1, 2)
  # Scripted players of the evaluation; the first one's Elo rating is 0.
  opponents: tuple[str, ...] = ("rusher", "builder")
  games: int = 200  # of each agent against each opponent
  match_games: int = 60  # of each pair of arms with the same seed
  opening: int = 5  # entries of a build order whose entropy is measured
  league: bool = False  # each run is a league; its first main agent plays the games
  of_main: bool = False  # the updates are those of the main agent; other players have their own
  # Trained against the frozen main agent of each league: this number starts from its imitator, and
  # as many from a snapshot of its past.
  exploiters: int = 0
  exploiter_updates: int = 0  # of all exploiters with the same start together
  # All main agents of a league count: the variety of their behaviours is measured, and exploiters
  # meet all of them. They have one race.
  varied: bool = False


_NO_TEACHER = {"learner.teacher_kl": 0.0}
_NO_Z = {"actor.pseudo_probability": 0.0}

ABLATIONS = {
  # Vinyals et al. 2019, Figure 3, human data.
  "figure3_human_data": Ablation(
    title="Human data (Vinyals et al. 2019, Figure 3), on Skirmish",
    arms=(
      # With the learning rate and the entropy cost that suit random weights.
      Arm("random", "random initialisation", {"init": "random", **_NO_TEACHER, **_NO_Z}),
      Arm("imitation", "initialised by imitation", {"init": "imitation", **_NO_TEACHER, **_NO_Z}),
      Arm("teacher", "+ KL to the teacher", {"init": "imitation", **_NO_Z}),
      Arm("z", "+ z and pseudo-rewards", {"init": "imitation"}, shows_z=True),
    ),
    updates=1000),
  "value_warm_up": Ablation(
    title="Value functions that learn alone at first, on Skirmish",
    arms=(
      Arm("at_once", "policy and values at once", {"learner.value_warm_up": 0}),
      Arm("values_first", "values alone for 60 updates", {"learner.value_warm_up": 60}),
    ),
    updates=500),
  "figure3_self_play": Ablation(
    title="Multi-agent learning: algorithms (Vinyals et al. 2019, Figure 3), on Skirmish",
    arms=(
      Arm("self_play", "self-play", {"league.matchmaking": "self_play"}),
      Arm("fsp", "fictitious self-play", {"league.matchmaking": "fsp"}),
      Arm("pfsp_alone", "PFSP", {"league.matchmaking": "pfsp_alone"}),
      Arm("pfsp_self_play", "PFSP and self-play", {"league.matchmaking": "pfsp_self_play"}),
    ),
    overrides={"league.composition": "terran:1:0:0"}, updates=2000, league=True,
    exploiters=2, exploiter_updates=800),
  "figure3_league": Ablation(
    title="Multi-agent learning: composition (Vinyals et al. 2019, Figure 3), on Skirmish",
    arms=(
      Arm("main", "main agent", {"league.composition": "terran:1:0:0"}),
      Arm("main_exploiter", "+ main exploiter", {"league.composition": "terran:1:1:0"}),
      Arm("exploiters", "+ main and league exploiters", {"league.composition": "terran:1:1:2"}),
    ),
    updates=1500, league=True, of_main=True, exploiters=2, exploiter_updates=800),
  # DeepMind's article of 2019: rewards of their own make the agents of a league more varied.
  "personal_objectives": Ablation(
    title="Personal objectives of three main agents, on Skirmish",
    arms=(
      Arm("same", "the result alone", {}),
      Arm("personal", "and rewards of their own", {"league.objectives": ",".join((
        "terran-main-0=built.Marauder:0.02", "terran-main-1=built.Hellion:0.05",
        "terran-main-2=lost.SCV:0.03"))}),
    ),
    overrides={"league.composition": "terran:3:0:0"}, updates=500, league=True, of_main=True,
    exploiters=2, exploiter_updates=400, varied=True),
  "figure3_upgo": Ablation(
    title="Upgoing policy updates (Vinyals et al. 2019, Figure 3), on Skirmish",
    arms=(
      Arm("without", "without UPGO", {"learner.upgo_cost": 0.0}),
      Arm("upgo", "with UPGO", {}),
    ),
    updates=1000),
  "figure3_values": Ablation(
    title="Opponent's observations in the values (Vinyals et al. 2019, Figure 3), on Skirmish",
    arms=(
      Arm("own", "own observations", {"learner.opponent_values": False}),
      Arm("both", "and the opponent's", {}),
    ),
    updates=1000),
}
