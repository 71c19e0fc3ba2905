"""Scores of a run by opponent."""

from starleague.common import results
from starleague.common.results import Row
from starleague.viewers.report import page, summary


def test_the_initial_weights_give_the_first_score_if_there_is_one_measurement():
  rows = [Row(0.0, 0, "score/initial/x", 0.1, 0.0, 0.2),
          Row(2.0, 2, "score/eval/x", 0.5, 0.4, 0.6)]
  assert "class='up'>+40 points" in page.render_page("run", rows, {})
  scores, = summary.opponent_scores(results.by_tag(rows))
  assert scores == summary.OpponentScores("x", rows[0], None, rows[1], True)
