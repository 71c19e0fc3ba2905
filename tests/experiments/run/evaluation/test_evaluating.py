import pytest

from starleague.actor.evaluation import Counts
from starleague.common import results
from starleague.experiments.run.config import settings
from starleague.experiments.run.evaluation import evaluating

COUNTS = Counts(wins=4, draws=4, losses=2)


def test_a_score_counts_draws_half_and_a_win_rate_wins_only():
  assert evaluating.score_of(COUNTS).value == 0.6
  assert evaluating.win_rate_of(COUNTS).value == 0.4
  for found in (evaluating.score_of(COUNTS), evaluating.win_rate_of(COUNTS)):
    assert found.low < found.value < found.high


def test_both_are_stored_under_their_own_names(tmp_path):
  rows = evaluating.result_rows({"rusher": COUNTS}, "eval", 10.0, 7)
  results.append(tmp_path / "results.csv", rows)
  found = {row.tag: row.value for row in results.read(tmp_path / "results.csv")}
  assert found == {"score/eval/rusher": 0.6, "win_rate/eval/rusher": 0.4}


def test_both_are_printed_under_their_own_names():
  line = evaluating.result_line(COUNTS, "eval", 7, "rusher")
  fields = dict(field.split("=") for field in line.split(" "))
  assert (fields["wins"], fields["draws"], fields["losses"]) == ("4", "4", "2")
  assert (fields["score"], fields["win_rate"]) == ("0.600", "0.400")
  assert fields["score_interval"] != fields["win_rate_interval"]


def test_an_opponent_that_the_run_does_not_have_raises():
  assert evaluating.opponent_indices(["b"], ["a", "b"]) == [1]
  with pytest.raises(settings.SettingsError, match="--opponents: 'c' is not an opponent.*a, b"):
    evaluating.opponent_indices(["c"], ["a", "b"])
