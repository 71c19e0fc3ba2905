"""Population-based training of a league's players: groups, decisions, factors."""

from types import SimpleNamespace

import numpy as np
import pytest

from starleague import league
from starleague.learner.evolution import Range
from starleague.learner.loops import league_population
from starleague.learner.loops.league_population import Decision, Member
from starleague.learner.loops.options import PopulationOptions

OPTIONS = PopulationOptions({"learning_rate": Range(1e-4, 1e-2), "entropy": Range(1e-3, 1e-1)},
                            {"learning_rate": 1e-3, "entropy": 2e-2}, 100.0)
PLAYERS = league.initial_players(["terran", "zerg"], 2, 1, 3)
MEMBERS = {"a": Member({"learning_rate": 1e-3, "entropy": 1e-2}, 2),
           "b": Member({"learning_rate": 5e-3, "entropy": 5e-2}, 7)}


def test_groups_are_players_of_one_role_and_race():
  found = league_population.groups(PLAYERS)
  assert found["terran-main-1"] == ("terran-main-0", "terran-main-1")
  assert found["zerg-league_exploiter-0"] == tuple(f"zerg-league_exploiter-{i}" for i in range(3))
  assert len(found) == 10 and "terran-main_exploiter-0" not in found
  assert league_population.groups(league.initial_players(["terran"])) == {
    f"terran-league_exploiter-{i}": ("terran-league_exploiter-0", "terran-league_exploiter-1")
    for i in range(2)}


def test_the_worse_of_two_copies_the_better_and_perturbs_its_hyperparameters():
  def decide(name, a, b, decisions=2, seed=0):
    members = MEMBERS | {"a": MEMBERS["a"]._replace(decisions=decisions)}
    return league_population.decide(OPTIONS, seed, 3, name, members, {"a": a, "b": b})

  found = decide("a", 0.4, 0.6)
  assert found.source == "b"
  ratios = {name: found.hyperparameters[name] / value
            for name, value in MEMBERS["b"].hyperparameters.items()}
  assert all(min(abs(ratio - 0.8), abs(ratio - 1.2)) < 1e-9 for ratio in ratios.values())
  assert decide("b", 0.4, 0.6) is None and decide("a", 0.5, 0.5) is None
  assert decide("a", 0.4, 0.6) == found  # the same after a restart
  others = {tuple(decide("a", 0.4, 0.6, decisions, seed).hyperparameters.values())
            for decisions in range(6) for seed in range(3)}
  assert len(others) == 4  # both factors of both values


def test_first_hyperparameters_are_drawn_from_their_ranges():
  drawn = [league_population.first(OPTIONS, 0, number) for number in range(20)]
  assert drawn[3] == league_population.first(OPTIONS, 0, 3)
  rates = [member.hyperparameters["learning_rate"] for member in drawn]
  assert len(set(rates)) == 20 and 1e-4 <= min(rates) < 1e-3 < max(rates) <= 1e-2
  assert {member.decisions for member in drawn} == {0}


def test_a_checkpoint_of_another_population_is_refused():
  stored = {"hyperparameters": {"learning_rate": 1e-3, "entropy": 1e-2}, "decisions": 2}
  assert league_population.restored(OPTIONS, stored) == MEMBERS["a"]
  with pytest.raises(ValueError, match="expected 0.0001 to 0.01, found 1"):
    league_population.restored(OPTIONS, {**stored, "hyperparameters": {
      "learning_rate": 1.0, "entropy": 1e-2}})


def test_factors_are_over_the_nominal_values():
  assert league_population.factors(OPTIONS, MEMBERS["b"]) == (np.float32(2.5), 1.0)
  assert league_population.factors(OPTIONS, None) == (1.0, 1.0)
  scaled = PopulationOptions({"pseudo_scale": Range(0.01, 1.0)}, {"pseudo_scale": 0.1}, 1.0)
  assert league_population.factors(scaled, Member({"pseudo_scale": 0.05}, 0)) == (1.0, 0.5)


class Learner:
  def __init__(self, name, steps, member):
    self.name, self.policy_steps, self.member, self.adopted = name, steps, member, []

  def count_decision(self):
    self.member = self.member._replace(decisions=self.member.decisions + 1)

  def adopt(self, source, decision, lead):
    self.adopted.append((source.name, decision, lead))


def test_decisions_are_made_when_they_are_due():
  """Of the two main agents, which have learnt from 150 and 90 steps; the first is worse."""
  scores = {"terran-main-0": [0.2, 0.4], "terran-main-1": [0.6, 0.8]}
  asked = []

  def score(name, past):
    asked.append(past)
    return scores[name]

  players = league.initial_players(["terran"], 2, 1, 0)
  client = SimpleNamespace(players=lambda: players, scores=score)
  first = Learner("terran-main-0", 150, Member(MEMBERS["a"].hyperparameters, 0))
  second = Learner("terran-main-1", 90, Member(MEMBERS["b"].hyperparameters, 0))
  alone = Learner("terran-main_exploiter-0", 500, None)
  learners = [first, second, alone]
  league_population.exploit(learners, client, OPTIONS, 0)
  assert set(map(tuple, asked)) == {("terran-main-0-0000", "terran-main-1-0000")}
  ((source, decision, lead),) = first.adopted
  assert source == "terran-main-1" and lead == pytest.approx(0.4)
  assert isinstance(decision, Decision) and first.member.decisions == 1
  assert not second.adopted and second.member.decisions == 0
  league_population.exploit(learners, client, OPTIONS, 0)  # not yet due again
  assert len(first.adopted) == 1
  second.policy_steps = 100
  league_population.exploit(learners, client, OPTIONS, 0)
  assert not second.adopted and second.member.decisions == 1  # the better one goes on
