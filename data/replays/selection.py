"""The selected units of a user over a game, from selection deltas and control groups.

Selections are lists of tags in ascending order: the order in which masks count them. Over real
games no mask refers past the end of a list and no unit is added twice, which tests hold.
"""

from starleague.data.replays.protocol import Event
from starleague.data.replays.readers import Value

ACTIVE = 10  # the control group that stands for the current selection
_SET, _APPEND, _RECALL, _CLEAR, _SET_STEAL, _APPEND_STEAL = range(6)


class Selection:
  """The current selection and the control groups of a user."""

  def __init__(self) -> None:
    self._groups: dict[int, list[int]] = {ACTIVE: []}

  def tags(self, group: int = ACTIVE) -> list[int]:
    """Returns the tags of a group's units, ascending."""
    return self._groups.get(group, [])

  def apply(self, event: Event) -> None:
    """Applies an event of the user; other events than those of selections have no effect."""
    fields = event.fields
    if event.name == "SelectionDelta":
      delta, group = fields["m_delta"], fields["m_controlGroupId"]
      kept = without(self.tags(group), delta["m_removeMask"])
      self._groups[group] = _joined(kept, delta["m_addUnitTags"])
    elif event.name == "ControlGroupUpdate":
      self._update_group(fields["m_controlGroupIndex"], fields["m_controlGroupUpdate"],
                         fields["m_mask"])

  def _update_group(self, group: int, update: int, mask: dict[str, Value]) -> None:
    if update == _RECALL:  # the mask leaves out dead units; the group keeps them
      self._groups[ACTIVE] = without(self.tags(group), mask)
    elif update == _CLEAR:
      self._groups[group] = []
    elif update in (_SET, _SET_STEAL):  # events of their own take stolen units from other groups
      self._groups[group] = self.tags()
    elif update in (_APPEND, _APPEND_STEAL):
      self._groups[group] = _joined(without(self.tags(group), mask), self.tags())


def _joined(tags: list[int], more: list[int]) -> list[int]:
  return sorted({*tags, *more})


def without(tags: list[int], mask: dict[str, Value]) -> list[int]:
  """Returns the tags that a mask keeps.

  Args:
    tags: of a group.
    mask: one of three forms. Mask: a number of bits and the bits, of which a 1 removes a tag;
      OneIndices: the indices that are removed; ZeroIndices: those that are kept.
  """
  if "Mask" in mask:
    count, bits = mask["Mask"]
    return [tag for i, tag in enumerate(tags) if i >= count or not bits >> i & 1]
  if "OneIndices" in mask:
    removed = set(mask["OneIndices"])
    return [tag for i, tag in enumerate(tags) if i not in removed]
  if "ZeroIndices" in mask:
    kept = set(mask["ZeroIndices"])
    return [tag for i, tag in enumerate(tags) if i in kept]
  return tags
