"""The population of a league's players, by the text of config keys."""

import ml_collections

from starleague.common.errors import UserError
from starleague.experiments.run.config import compositions, settings
from starleague.experiments.run.config.errors import split
from starleague.learner import evolution
from starleague.learner.loops import league_population
from starleague.learner.loops.options import PopulationOptions

# The config key of each hyperparameter's value in the compiled update.
_KEYS = {league_population.LEARNING_RATE: "learner.learning_rate",
         league_population.ENTROPY: "learner.entropy",
         league_population.PSEUDO_SCALE: "actor.pseudo_scale"}


def of_league(config: ml_collections.ConfigDict) -> PopulationOptions | None:
  """Returns the options of a league's population; None if it has none."""
  ranges = evolution.parse_ranges(split(config.league.population), league_population.NAMES)
  if not ranges:
    return None
  values = settings.flat(config.to_dict())
  return PopulationOptions(ranges, {name: values[_KEYS[name]] for name in ranges},
                           config.league.population_steps)


def check(config: ml_collections.ConfigDict) -> None:
  """Checks the population of a league.

  Raises:
    UserError: names the key, and what is wrong.
  """
  try:
    options = of_league(config)
  except UserError as error:
    raise UserError(f"config key 'league.population': {error}.") from error
  if options is None:
    return
  needed = {_KEYS[name]: value for name, value in options.nominal.items()}
  if league_population.PSEUDO_SCALE in options.ranges:
    needed["actor.pseudo_probability"] = config.actor.pseudo_probability
  for key, value in needed.items():
    if not value:
      raise UserError(f"config key {key!r} must be above 0 if 'league.population' is "
                      f"{config.league.population!r}, found {value}.")
  if config.cluster.learners != settings.ONE:
    raise UserError(f"config key 'cluster.learners' must be {settings.ONE!r} in a league with a "
                    f"population, found {config.cluster.learners!r}: one process copies weights.")
  if not league_population.groups(compositions.parse(config.league.composition.split(","))):
    raise UserError(
      "config key 'league.composition' must have two learning players of one role and race if "
      f"'league.population' is set, found {config.league.composition!r}.")
