"""An evaluator keeps its assignment during long games."""

from starleague import league
from starleague.experiments.run import league_evaluating


class Client:
  """Remembers what is renewed."""

  def __init__(self):
    self.renewed = []

  def renew(self, assignments):
    self.renewed += assignments


def test_a_lease_is_renewed_at_intervals_of_a_game(monkeypatch):
  now = [50.0]
  monkeypatch.setattr(league_evaluating.time, "monotonic", lambda: now[0])
  client = Client()
  assignment = league.Assignment("1-1", "main", "rival", "evaluation", False, 2)
  renewal = league_evaluating.Renewal(client, assignment, 20.0)
  renewed = []
  for seconds in (0.0, 19.0, 1.0, 5.0, 15.0, 61.0, 0.0):
    now[0] += seconds
    renewal()
    renewed.append(len(client.renewed))
  assert renewed == [0, 0, 1, 1, 2, 3, 3]
  assert set(client.renewed) == {assignment}
