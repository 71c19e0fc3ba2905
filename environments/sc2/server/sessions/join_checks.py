"""Checks of the request `join_game`: the error of a client that cannot join."""

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.match import MatchSetup

MOST_RESOLUTION = 1024  # of a feature layer's sides

Join = sc_pb.ResponseJoinGame


def participants(setup: MatchSetup) -> list[int]:
  """Returns the players of a match that clients play, 0 or 1."""
  return [player for player, info in enumerate(setup.players) if info.type == sc_pb.Participant]


def resolution_problem(options: sc_pb.InterfaceOptions) -> str | None:
  """Returns the error in the resolutions of an interface, or None."""
  for camera in (options.feature_layer, options.render):
    sizes = (camera.resolution, camera.minimap_resolution)
    if any(not 0 <= side <= MOST_RESOLUTION for size in sizes for side in (size.x, size.y)):
      return f"resolution: expected 0 to {MOST_RESOLUTION}"
  return None


def join_problem(request: sc_pb.RequestJoinGame, setup: MatchSetup | None) -> Join | None:
  """Returns the error of a client that cannot join, or None."""
  watches = request.HasField("observed_player_id")
  if not watches and not request.HasField("race"):
    return Join(error=Join.MissingParticipation, error_details="race: expected one, found none")
  problem = resolution_problem(request.options)
  if problem is not None:
    return Join(error=Join.OtherError, error_details=problem)
  if watches:
    return _watch_problem(request, setup)
  if setup is not None and not participants(setup):
    return Join(error=Join.GameFull, error_details="the game has room for an observer only")
  needs_ports = setup is None or len(participants(setup)) > 1
  if needs_ports and not 0 < request.server_ports.game_port < 2 ** 16:
    return Join(error=Join.MissingPorts, error_details="server_ports.game_port: expected a port")
  return None


def _watch_problem(request: sc_pb.RequestJoinGame, setup: MatchSetup | None) -> Join | None:
  """Returns the error of a client that cannot observe, or None."""
  if setup is None or participants(setup):
    return Join(error=Join.FeatureUnsupported,
                error_details="observers watch games of computer players only")
  if not 0 <= request.observed_player_id <= len(setup.players):
    return Join(
      error=Join.InvalidObservedPlayerId,
      error_details=f"expected 0 to {len(setup.players)}, found {request.observed_player_id}")
  return None
