"""What a participant is told of events: when, and how often."""

from starleague.environments.sc2.server.views.seats import ServerSeat
from tests.environments.sc2.server import play


def test_actions_errors_and_chat_are_reported_once_and_deaths_again():
  seat = ServerSeat(0, play.interface())
  for kind in ("action", "error", "chat", "dead", "alert"):
    seat.note(3, kind, kind)
  assert seat.look(2) == {}
  assert seat.look(3) == {kind: [kind] for kind in ("action", "error", "chat", "dead", "alert")}
  assert seat.look(3) == {"dead": ["dead"], "alert": ["alert"]}
  assert seat.look(4) == {}
