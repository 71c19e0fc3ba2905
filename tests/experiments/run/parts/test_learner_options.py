"""Options of learners from a run's config."""

import numpy as np
import pytest

from starleague import agent
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.experiments.run.config import ranges, settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options

BASE = settings.flat(settings.complete({}).to_dict())
KEYS = [key for key in BASE if key.startswith(("learner.", "imitation."))]


def other(key, value):
  """Returns another valid value of a key."""
  if isinstance(value, bool):
    return not value
  if isinstance(value, str):
    return f"{value}x"
  found = next(x for x in (value / 2, value * 2, 0.5, 3)
               if type(value)(x) != value and type(value)(x) in ranges.RANGES[key])
  return type(value)(found)


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_learners_changes_their_options(key):
  config = settings.complete({}, {key: other(key, BASE[key])})
  make = (learner_options.reinforcement_options if key.startswith("learner.")
          else learner_options.imitation_options)
  assert make(config) != make(settings.complete({}))


def test_options_of_reinforcement_learning_are_those_of_the_config():
  config = settings.complete({}, {
    "learner.batch_size": 24, "seconds": 90.0, "league.seconds": 70.0, "unroll_length": 8,
    "data.timeout_s": 5.0, "seed": 3})
  options = learner_options.reinforcement_options(config)
  assert (options.batch_size, options.seconds, options.league_seconds, options.timeout_s,
          options.seed, options.steps_per_update) == (24, 90.0, 70.0, 5.0, 3, 192)


def test_streams_that_no_game_plays_for_have_no_weight():
  weights = learner_options.rl_weights(settings.complete({}, {"learner.policy_cost": 2.0}))
  assert weights.policy == (2.0, 4.0, 6.0, 0.0, 0.0)
  assert weights.baseline == (10.0, 1.0, 1.0, 0.0, 0.0)
  assert weights.function_kl == 0.1
  weights = learner_options.rl_weights(settings.complete({}, {"actor.pseudo_probability": 0.0}))
  assert weights.policy == (5.0, 0.0, 0.0, 0.0, 0.0) and weights.function_kl == 0.0


OFFLINE = {"method": "emphatic", "behaviour": "runs/clone"}
OFFLINE_CHANGES = {
  "method": "cloning", "ratios": "recorded", "updates": 7, "policy_cost": 3.0, "value_cost": 3.0,
  "kl_cost": 3.0, "emphatic_steps": 3, "behaviour": ""}


@pytest.mark.parametrize("key", [key for key in BASE if key.startswith("offline.")])
def test_every_key_of_offline_learning_changes_its_options(key):
  name = key.partition(".")[2]
  one, other = (learner_options.offline_options(settings.complete({"offline": OFFLINE | changes}))
                for changes in ({}, {name: OFFLINE_CHANGES[name]}))
  assert one != other


@pytest.mark.parametrize("method", ["cloning", "winners"])
def test_recorded_ratios_are_refused_for_methods_without_ratios(method):
  config = settings.complete({"offline": OFFLINE | {"method": method, "ratios": "recorded"}})
  with pytest.raises(UserError) as refused:
    learner_options.offline_options(config)
  assert str(refused.value) == (
    f"config key 'offline.ratios': expected 'cloned' with 'offline.method' = '{method}', which has "
    "no importance ratios; found 'recorded'.")


@pytest.mark.parametrize("method, cloning, policy, kl, steps, winners", [
  ("cloning", 1.0, 0.0, 0.0, 0, False), ("winners", 1.0, 0.0, 0.0, 0, True),
  ("actor_critic", 0.0, 1.0, 0.2, 0, False), ("emphatic", 0.0, 1.0, 0.2, 16, False)])
def test_each_method_of_offline_learning_has_its_terms(
    method, cloning, policy, kl, steps, winners):
  found = learner_options.offline_options(settings.complete({"offline": OFFLINE | {
    "method": method}}))
  costs = found.objective.rl
  assert (found.objective.cloning, costs.policy, costs.teacher_kl, costs.baseline,
          found.objective.emphatic_steps, found.winners) == (
    cloning, (policy, 0, 0, 0, 0), kl, (1.0, 0, 0, 0, 0), steps, winners)
  assert (costs.upgo, costs.entropy, costs.function_kl) == ((0, 0, 0, 0, 0), 0.0, 0.0)
  assert found.learning_rate == 3e-4  # of fine-tuning, as it starts from a clone


def test_methods_that_improve_need_a_clone(tmp_path):
  for method in ("winners", "actor_critic", "emphatic"):
    config = settings.complete({"offline": {"method": method}})
    with pytest.raises(UserError, match="name a run of cloning in 'offline.behaviour'"):
      learner_options.offline_agent(registry.make_parts(config), config)
  config = settings.complete({"offline": {"method": "winners", "behaviour": str(tmp_path)}})
  with pytest.raises(UserError, match="has no weights 'imitation'"):
    learner_options.offline_agent(registry.make_parts(config), config).initial_params()


def test_the_behaviour_policy_of_a_league_is_its_trained_main_agent(tmp_path):
  """Not its imitator, which `train` and `league` leave beside the players."""
  settings.save(settings.complete({"league": {"composition": "zerg:1:0:0"}}), tmp_path)
  player = run_files.learner_dir(tmp_path, "zerg-main-0") / run_files.CHECKPOINTS
  for folder, value in ((player, 2.0), (tmp_path / run_files.IMITATED, 1.0)):
    checkpoints.save_params(
      folder / f"{7:012d}", {"m": {"w": np.full(2, value)}}, agent.mini(), 7)
  config = settings.complete({"offline": OFFLINE | {"behaviour": str(tmp_path)}})
  params = learner_options.offline_agent(registry.make_parts(config), config).initial_params()
  assert params["m"]["w"].tolist() == [2.0, 2.0]
