"""Tags identify units for their life and never name two of them."""

import numpy as np

from starleague.environments.sc2.server.game import engine, roster

RULES = engine.rules_of("default")
N, S = RULES.tier.slots, RULES.tier.structures


def test_a_slot_that_is_used_again_has_a_new_tag():
  found, kind = roster.Roster(RULES), np.zeros((2, N), np.int32)
  kind[0, 3] = 5
  found.update(kind.copy())
  first = found.tags()[0, 3]
  kind[0, 3] = 6  # a morph
  found.update(kind.copy())
  assert found.tags()[0, 3] == first > 0
  kind[0, 3] = 0
  found.update(kind.copy())
  assert found.tags()[0, 3] == 0
  kind[0, 3] = 5
  found.update(kind.copy())
  assert found.tags()[0, 3] not in (0, first)
  assert np.count_nonzero(found.tags()) == 1


def test_a_remembered_structure_keeps_the_tag_it_was_seen_under():
  found, kind = roster.Roster(RULES), np.zeros((2, N), np.int32)
  seen, remembered = np.zeros((2, N), bool), np.zeros((2, S), np.int32)
  unseen = np.zeros((2, N), bool)
  kind[1, 2] = 9
  seen[0, 2], remembered[0, 2] = True, 9
  found.update(kind.copy())
  found.remember(seen)
  tag = found.tags()[1, 2]
  assert found.known_tags(seen, remembered)[0, 2] == tag
  for value in (0, 9):  # it dies unseen, and another is built in its slot
    kind[1, 2] = value
    found.update(kind.copy())
    found.remember(unseen)
  assert found.known_tags(unseen, remembered)[0, 2] == tag != found.tags()[1, 2]


def test_tags_of_units_resources_and_larvae_differ():
  found = roster.Roster(RULES)
  found.update(np.ones((2, N), np.int32))
  units = found.tags().ravel().tolist()
  resources = roster.resource_tags(RULES, 0).tolist()
  larvae = [tag for player in range(2) for slot in range(S)
            for tag in roster.larva_tags(RULES, player, slot, 19)]
  every = units + resources + larvae
  assert len(set(every)) == len(every) == 2 * N + RULES.tier.resources + 2 * S * 19
  assert min(every) > 0 and max(every) < 2 ** 63
  half = len(resources) // 2
  assert roster.resource_tags(RULES, 1).tolist() == resources[half:] + resources[:half]


def test_a_larva_names_its_hatchery():
  for player in range(2):
    for slot in (0, S - 1):
      for tag in roster.larva_tags(RULES, player, slot, 19):
        assert roster.larva_structure(RULES, player, tag) == slot
        assert roster.larva_structure(RULES, 1 - player, tag) is None
  for tag in (0, 1, 2 ** 64 - 1, 2 ** 32 + (6 << 16), int(roster.resource_tags(RULES, 0)[-1])):
    assert roster.larva_structure(RULES, 0, tag) is None
