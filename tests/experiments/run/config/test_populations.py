"""The population of a league from the text of config keys."""

import pytest

from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options
from starleague.experiments.run.processes import league_run
from starleague.learner.evolution import Range

BOTH = "learning_rate=1e-4:1e-2,entropy=1e-3:0.1"


def test_ranges_and_nominal_values():
  config = settings.complete({}, {"league.population": BOTH, "league.population_steps": 500.0})
  league_run.check(config)  # two league exploiters
  found = learner_options.reinforcement_options(config).population
  assert found.nominal == {"learning_rate": config.learner.learning_rate,
                           "entropy": config.learner.entropy}
  assert found.steps == 500.0 and found.ranges == {
    "learning_rate": Range(1e-4, 1e-2), "entropy": Range(1e-3, 0.1)}
  assert learner_options.reinforcement_options(settings.complete({})).population is None


@pytest.mark.parametrize("changed, message", [
  ({"league.population": "gamma=0.9:1"}, "config key 'league.population': range 'gamma=0.9:1': "
   "'gamma' cannot be tuned; expected one of learning_rate, entropy, pseudo_scale"),
  *(({"league.population": text}, "config key 'league.population': range '.*expected ")
    for text in ("entropy", "entropy=1e-3:1,entropy=1e-3:2", "entropy=1", "entropy=0:1",
                 "entropy=2:1", "entropy=1:inf")),
  ({"league.population": BOTH, "league.composition": "terran:1:1:1"},
   "'league.composition' must have two learning players of one role and race .*terran:1:1:1"),
  ({"league.population": BOTH, "cluster.learners": "each"},
   "'cluster.learners' must be 'one' in a league with a population, found 'each'"),
  ({"league.population": BOTH, "learner.entropy": 0.0}, "'learner.entropy' must be above 0 if"),
  ({"league.population": "pseudo_scale=0.01:1", "actor.pseudo_probability": 0.0},
   "'actor.pseudo_probability' must be above 0 if 'league.population' is 'pseudo_scale=0.01:1'"),
])
def test_a_league_that_cannot_have_it_is_refused(changed, message):
  with pytest.raises(settings.SettingsError, match=message) as error:
    league_run.check(settings.complete({}, changed))
  assert "\n" not in str(error.value)
