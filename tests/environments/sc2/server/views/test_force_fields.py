"""Force Fields as clients see them."""

import pytest

from starleague.environments.sc2.protocol import raw_pb
from starleague.environments.sc2.server.game import roster
from starleague.environments.sc2.server.views import force_fields
from tests.environments.sc2.server.views.test_sentries import view_of
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import FREE, RULES, with_sentry


def test_force_fields_are_neutral_units_in_sight():
  state = tech.play(tech.order(
    with_sentry(), "Effect_ForceField_pt", [FREE], place=(3.0, -4.0)))
  assert not list(force_fields.make_units(view_of(state)))
  for player in range(2):
    view = view_of(state, player, [(3.0, -4.0)])
    (field,) = force_fields.make_units(view)
    assert (field.unit_type, field.owner, field.alliance) == (135, 16, raw_pb.Neutral)
    place_ = view.point(3.0, -4.0)
    assert (field.pos.x, field.pos.y) == (place_.x, place_.y)
    assert field.radius == pytest.approx(1.7) and field.buff_duration_remain == 240
    assert field.tag == roster.force_field_tag(RULES, 0, 0, 320)
  tags = {roster.force_field_tag(RULES, player, i, end)
          for player in range(2) for i in range(4) for end in (320, 328)}
  assert len(tags) == 16 and not tags & set(roster.resource_tags(RULES, 0).tolist())
