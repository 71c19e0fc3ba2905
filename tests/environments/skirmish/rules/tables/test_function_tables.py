"""Products and functions: capabilities, producers and requirements."""

import numpy as np

from starleague.agent import vocabulary
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import RULES, TYPES


def test_capabilities_are_those_of_the_vocabulary():
  functions, types_ = mini.RULES.functions, mini.RULES.types
  allowed = vocabulary.CAPABLE[functions.index][:, types_.index]
  assert not (functions.capable & ~allowed)[1:].any()
  assert functions.capable[1:].any(axis=1).all()


def test_every_product_can_be_made():
  """Each has a function, a producer of its race, and requirements that can be met."""
  products, y = RULES.products, len(TYPES.names)
  known = {int(np.argmax((TYPES.race == race) & TYPES.townhall)) for race in range(3)} | {
    int(np.argmax((TYPES.race == race) & TYPES.worker)) for race in range(3)} | {0}
  for _ in range(12):
    known |= {i for i in range(1, y) if products.producer[i] in known
              and products.requirement[i] in known}
  assert known == set(range(y))
  assert set(products.requirement[y:]) <= known and set(products.producer[y:]) <= known
  for i in range(1, y):
    assert TYPES.race[products.producer[i]] == TYPES.race[i]
    instant = TYPES.names[i] == "SiegeTankSieged"
    assert (products.function[i] > 0) != instant
  assert (products.function[y:] > 0).all()
