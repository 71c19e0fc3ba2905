"""Force Fields as neutral units of raw observations."""

from collections.abc import Iterator

import numpy as np

from starleague.agent import types
from starleague.environments.sc2.protocol import raw_pb
from starleague.environments.sc2.server.game import roster
from starleague.environments.sc2.server.views.view import NEUTRAL_OWNER, View
from starleague.environments.skirmish.rules.tables import constants

_FORCE_FIELD = 135
_VISIBILITY, _VISIBLE = types.MINIMAP_PLANES.index("visibility"), 2


def make_units(view: View) -> Iterator[raw_pb.Unit]:
  """Yields the Force Fields of both players that are in sight, as neutral units."""
  game, frame = view.game, view.frame
  state = frame.state
  for owner, i in np.argwhere(state.field_loops > 0).tolist():
    x, y = float(state.field_x[owner, i]), float(state.field_y[owner, i])
    if not in_sight(view, x, y):
      continue
    left, position = int(state.field_loops[owner, i]), view.point(x, y)
    tag = roster.force_field_tag(game.rules, owner, i, frame.loop + left)
    yield raw_pb.Unit(
      display_type=raw_pb.Visible, alliance=raw_pb.Neutral, tag=tag, unit_type=_FORCE_FIELD,
      owner=NEUTRAL_OWNER, pos=position, radius=constants.FORCE_FIELD_RADIUS, build_progress=1.0,
      cloak=raw_pb.NotCloaked, is_on_screen=view.shown(position),
      is_selected=tag in view.selected, is_blip=False, is_powered=False, is_active=False,
      is_flying=False, is_burrowed=False, is_hallucination=False, buff_duration_remain=left,
      buff_duration_max=constants.FORCE_FIELD_LOOPS)


def in_sight(view: View, x: float, y: float) -> bool:
  """Whether a player sees a place of Skirmish."""
  plane = view.frame.report.planes[view.player, _VISIBILITY]
  cells = plane.shape[-1]
  scale, half = cells / view.game.rules.tier.map_size, view.game.rules.half
  row, column = (min(max(int((value + half) * scale), 0), cells - 1) for value in (y, x))
  return bool(plane[row, column] == _VISIBLE)
