"""The action stream of a game: what its users commanded, when, with which units."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from starleague.data.replays import names
from starleague.data.replays.protocol import Event, text
from starleague.data.replays.readers import Value
from starleague.data.replays.selection import Selection
from starleague.data.replays.tracker import Types

_QUEUED, _SMART, _AUTOCAST = 1 << 1, 1 << 3, 1 << 6  # bits of m_cmdFlags
_FIXED_POINT = 4096  # of target coordinates
MAX_REPEAT = 2
# Inputs that count as actions in APM: all but the camera.
_COUNTED = ("Cmd", "SelectionDelta", "ControlGroupUpdate", "CommandManagerState")
# Events that are no action of a raw interface (pysc2.lib.replay.sc2_replay_utils).
_NO_ACTIONS = frozenset({
  "SetSyncLoadingTime", "SetSyncPlayingTime", "TriggerSoundLengthSync", "UserFinishedLoadingSync",
  "UserOptions", "CmdUpdateTargetPoint", "CameraSave", "ControlGroupUpdate", "SelectionDelta"})
_LEAVE, _CAMERA = "GameUserLeave", "CameraUpdate"


class Command(NamedTuple):
  """A command as the file has it: its ability is not yet a function."""

  loop: int
  link: int  # of the ability; -1 for a smart command, a click with the right mouse button
  link_index: int  # of the ability's command
  kind: str  # names.QUICK, POINT, UNIT or AUTOCAST
  queued: bool
  units: tuple[int, ...]  # tags of the selected units
  target: int  # tag of the target, 0 without one
  x: float | None  # game coordinates of the target
  y: float | None
  repeat: int  # identical commands in the same game loop, 0 to MAX_REPEAT


class Inputs(NamedTuple):
  """The inputs of a user."""

  commands: list[Command]
  actions: list[int]  # game loops of counted actions
  left: int | None  # game loop at which the user left the game


def read(events: Iterable[Event], users: Mapping[int, str]) -> dict[int, Inputs]:
  """Returns the inputs of each of some users.

  A repeated click is a CommandManagerState event, after the new target if it has one: it is a
  command like any other.

  Args:
    events: of the whole game, in order.
    users: names of the users, by their indices. When a game was resumed from a replay, its users
      have the indices of the new lobby from there on.
  """
  collectors = {user: _Collector() for user in users}
  current = dict(collectors)  # by the index of the present lobby
  for event in events:
    if event.name == "HijackReplayGame":
      current = _resumed(collectors, users, event)
    elif event.user in current:
      current[event.user].add(event)
  return {user: collector.inputs() for user, collector in collectors.items()}


def _resumed(collectors: Mapping[int, "_Collector"], users: Mapping[int, str],
             event: Event) -> dict[int, "_Collector"]:
  """Returns the collectors by the new indices of users: by name, else in the order of the lobby."""
  infos = [info for info in event.fields.get("m_userInfos", ()) if not info.get("m_observe")]
  by_name = {text(info["m_name"]): info["m_gameUserId"] for info in infos}
  if {*users.values()} <= by_name.keys():
    return {by_name[name]: collectors[user] for user, name in users.items()}
  indices = [info["m_gameUserId"] for info in infos]
  return dict(zip(indices, collectors.values(), strict=False))


class _Collector:
  """Collects the inputs of a user, event by event."""

  def __init__(self) -> None:
    self._selection = Selection()
    self._commands: list[Command] = []
    self._actions: list[int] = []
    self._left: int | None = None
    self._last: Command | None = None  # the last command: what is repeated

  def inputs(self) -> Inputs:
    """Returns the inputs collected so far."""
    return Inputs(self._commands, self._actions, self._left)

  def add(self, event: Event) -> None:
    """Adds an event of the user."""
    if event.name in _COUNTED:
      self._actions.append(event.loop)
    if event.name == "Cmd":
      self._issue(_command(event))
    elif event.name in ("CmdUpdateTargetPoint", "CmdUpdateTargetUnit"):
      if self._last is not None:
        kind = "TargetPoint" if event.name.endswith("Point") else "TargetUnit"
        self._last = _aimed(self._last, kind, event.fields["m_target"])
    elif event.name == "CommandManagerState":
      if self._last is not None and event.fields["m_state"] == 1:
        self._issue(self._last._replace(loop=event.loop))
    elif event.name == _LEAVE:
      self._left = event.loop
    else:
      self._selection.apply(event)

  def _issue(self, command: Command) -> None:
    command = command._replace(units=tuple(self._selection.tags()))
    self._last = command
    before = self._commands[-1] if self._commands else None
    if (before is not None and before.kind == names.QUICK and before.repeat < MAX_REPEAT
        and before._replace(repeat=0) == command):
      self._commands[-1] = before._replace(repeat=before.repeat + 1)
    else:
      self._commands.append(command)


def _command(event: Event) -> Command:
  fields = event.fields
  ability, flags = fields["m_abil"], fields["m_cmdFlags"]
  command = Command(
    loop=event.loop, link=ability["m_abilLink"] if ability else -1,
    link_index=ability["m_abilCmdIndex"] if ability else 0,
    kind=names.AUTOCAST if flags & _AUTOCAST else names.QUICK, queued=bool(flags & _QUEUED),
    units=(), target=0, x=None, y=None, repeat=0)
  (kind, target), = fields["m_data"].items()
  return _aimed(command, kind, target)


def _aimed(command: Command, kind: str, target: Value) -> Command:
  """Returns a command with another target."""
  if kind == "TargetPoint":
    x, y = _place(target)
    return command._replace(kind=names.POINT, target=0, x=x, y=y)
  if kind == "TargetUnit":
    x, y = _place(target["m_snapshotPoint"])
    return command._replace(kind=names.UNIT, target=target["m_tag"], x=x, y=y)
  return command


def _place(point: dict[str, int]) -> tuple[float, float]:
  return point["x"] / _FIXED_POINT, point["y"] / _FIXED_POINT


def action_loops(events: Iterable[Event], users: Sequence[int]) -> dict[int, list[int]]:
  """Returns the game loops at which each user acted, as DeepMind's replay tools define them.

  Camera moves count if a raw action follows them, as one each. The game ends when the first of the
  users leaves. The same as `raw_action_skips` of pysc2, for users of any index.
  """
  found: dict[int, list[tuple[int, str]]] = {user: [] for user in users}
  last = 0
  for event in events:
    if event.name in _NO_ACTIONS or event.user not in found:
      continue
    last = event.loop
    if event.name == _LEAVE:
      break
    acted = found[event.user]
    if acted and acted[-1][0] == event.loop:
      if event.name != _CAMERA:  # others of the same game loop take priority
        acted[-1] = (event.loop, event.name)
    else:
      acted.append((event.loop, event.name))
  return {user: _merged(acted, last) for user, acted in found.items()}


def _merged(acted: list[tuple[int, str]], last: int) -> list[int]:
  """Returns game loops without camera moves that another follows, and with the end of the game."""
  kept: list[tuple[int, str]] = []
  for loop, name in acted:
    if name == _CAMERA and kept and kept[-1][1] == _CAMERA:
      kept.pop()
    kept.append((loop, name))
  if kept and kept[-1][1] == _CAMERA:
    kept.pop()
  loops = [loop for loop, _ in kept]
  return loops if loops and loops[-1] == last else [*loops, last]


class Resolution(NamedTuple):
  """The functions of commands under one table of links."""

  build: int  # of the table; 0 if the game is older than all tables
  functions: list[int | None]  # of each command; None where no function is it
  capable: int  # commands whose function one of the selected units can execute
  specific: int  # commands whose function only some unit types can execute


def resolve(commands: Sequence[Command], build: int, types: Types) -> Resolution:
  """Finds the functions of commands.

  Links move between builds, and not every build has a table. The table before the build is used
  unless another one agrees better with what the selected units can execute.

  Args:
    commands: of all users.
    build: of the game.
    types: of the units.
  """
  known = names.links_of(build)
  if known is None:
    return Resolution(0, [None] * len(commands), 0, 0)
  selected = [_types(command, types) for command in commands]
  best = _under(known, commands, selected)
  for other in sorted(names.all_links(), key=lambda links: abs(links.build - build)):
    if best.capable < best.specific or best.functions.count(None):
      found = _under(other, commands, selected)
      if found.capable > best.capable:
        best = found
  return best


def _types(command: Command, types: Types) -> set[int]:
  return {names.unit_type(types.at(tag, command.loop)) for tag in command.units} - {0}


def _under(links: names.Links, commands: Sequence[Command],
           selected: Sequence[set[int]]) -> Resolution:
  functions = [_function(links, command) for command in commands]
  specific = capable = 0
  for function, found in zip(functions, selected, strict=True):
    if function is not None and found and names.SPECIFIC[function]:
      specific += 1
      capable += names.capable(function, found)
  return Resolution(links.build, functions, capable, specific)


def _function(links: names.Links, command: Command) -> int | None:
  if command.link < 0:
    return names.SMART.get(command.kind)
  name = links.names.get(command.link)
  return None if name is None else names.function(name, command.link_index, command.kind)
