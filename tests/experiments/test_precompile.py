"""Programs that are compiled ahead: later processes find them in the cache."""

import jax
import ml_collections
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from starleague.actor.loops import compiled_evaluation, compiled_single
from starleague.data.z.conditioning import unconditional
from starleague.experiments import precompile
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner import update
from starleague.learner.loops import imitation, imitation_setup, reinforcement_setup
from tests.actor.loops.clockwork_parts import OPPONENTS, PARTS
from tests.actor.loops.options import options
from tests.experiments.launch import refusal

# Smaller than the programs of other tests: they are compiled here.
SMALL = {"unroll_length": 1, "imitation.unroll_length": 1, "imitation.batch_size": 8,
         "learner.batch_size": 8}


@pytest.fixture
def events(tmp_path, monkeypatch):
  """Counts the hits and misses of a new cache, which keeps all programs."""
  found = {"hits": 0, "misses": 0}

  def count(event, **_):
    kind = event.rpartition("cache_")[2]
    if event.startswith("/jax/compilation_cache/") and kind in found:
      found[kind] += 1

  kept = {name: getattr(jax.config, name) for name in (
    "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes")}
  for name, value in zip(kept, (str(tmp_path / "compiled"), 0.0, -1), strict=True):
    jax.config.update(name, value)
  compilation_cache.reset_cache()
  jax.clear_caches()  # programs of other tests are not in the new cache
  jax.monitoring.register_event_listener(count)
  yield found
  for name, value in kept.items():
    jax.config.update(name, value)
  compilation_cache.reset_cache()


def restarted(events):
  """Makes this process forget its programs, as a new one would; their counts begin."""
  jax.clear_caches()
  events.update(hits=0, misses=0)


def test_an_evaluation_finds_its_program(events):
  compiled_evaluation.compile_ahead(PARTS, [0, 1], 4)
  assert events["misses"] > 0
  restarted(events)
  found = compiled_evaluation.make_evaluation(PARTS, [0, 1], 4, seed=5)(np.float32(1))
  assert set(found) == set(OPPONENTS) and events["hits"] > 0 and events["misses"] == 0


def test_an_actor_finds_its_program(events):
  conditioning = unconditional(len(PARTS.maps), PARTS.mmr)
  chosen = options(actor__games=4, actor__inference_batch=4, actor__iterations=2)
  compiled_single.compile_ahead(PARTS, chosen, conditioning)
  assert events["misses"] > 0
  restarted(events)
  compiled_single.compile_ahead(PARTS, chosen, conditioning)
  assert events["misses"] == 0 and events["hits"] > 0


def saved_run(folder, **changes) -> ml_collections.ConfigDict:
  config = settings.complete({}, {**SMALL, **changes})
  settings.save(config, folder)
  return config


@pytest.mark.nightly
def test_a_learner_finds_its_update(events, tmp_path):
  config = saved_run(tmp_path)
  parts = registry.make_parts(config)
  precompile.PROGRAMS["learner"](parts, config, tmp_path)
  assert events["misses"] > 0
  restarted(events)
  agent = learner_options.learning_agent(parts, config, tmp_path)._replace(
    initial_params=lambda: jax.device_get(parts.policy.init(jax.random.key(0))))
  chosen = learner_options.reinforcement_options(config)
  saved = reinforcement_setup.checkpoints.Checkpoints(tmp_path / "checkpoints", parts.config)
  learner = reinforcement_setup.make_learner(agent, chosen, tmp_path, saved)
  events.update(hits=0, misses=0)  # initial weights were made
  reinforcement_setup.compile_ahead(learner, agent, chosen)
  assert events["misses"] == 0 and events["hits"] > 0


@pytest.mark.nightly
def test_an_imitator_finds_its_update_and_its_measurement(events, tmp_path):
  config = saved_run(tmp_path)
  agent = learner_options.imitating_agent(registry.make_parts(config), config)
  chosen = learner_options.imitation_options(config)
  imitation.compile_ahead(agent, chosen)
  restarted(events)
  imitation.compile_ahead(agent, chosen)
  assert events["misses"] == 0 and events["hits"] > 0
  run = imitation_setup.make_update(agent, chosen, imitation_setup.make_optimizer(chosen))
  assert isinstance(run, update.Update)


@pytest.mark.parametrize("name, changes, message", [
  ("critic", {}, "program 'critic' does not exist; expected one of imitator, learner, actor, "),
  ("evaluation", {"environment.name": "sc2", "init": "random", "actor.pseudo_probability": 0.0},
   "are played outside JAX; expected Skirmish"),
  ("actor", {"init": "random"}, "find their z as they are played: expected a library")])
def test_what_cannot_be_compiled_is_refused(name, changes, message, tmp_path, monkeypatch):
  monkeypatch.setattr(precompile.sessions, "lower_priority", lambda niceness: None)
  saved_run(tmp_path, **changes)
  assert message in refusal(precompile, name, "--run_dir", tmp_path)


def test_probabilities_of_an_evaluation_are_those_of_its_calls():
  evaluator = compiled_evaluation.make_evaluator(PARTS, [1], 2)
  np.testing.assert_allclose(
    compiled_evaluation.evaluation._probabilities(evaluator), np.full(3, 1 / 3))
