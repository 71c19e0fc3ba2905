"""The sections of the report: which tags share a panel, titles with units, flat lines."""

import math

import pytest

from starleague.common import results
from starleague.common.results import Row
from starleague.learner import terms
from starleague.viewers.report import panels


def tags_of(*rows):
  return results.by_tag([Row(seconds, 1, tag, value) for seconds, tag, value in rows])


def test_update_tags_have_titles_with_units():
  section, = panels.sections(tags_of(
    (1, "update/skipped", 0), (2, "update/skipped", 1), (1, "update/consecutive_skipped", 0),
    (2, "update/consecutive_skipped", 1), (1, "update/gradient_norm", 3)))
  assert section.title == "Updates"
  assert [panel.title for panel in section.panels] == [
    "Norm of the gradient before clipping", "Skipped updates, count since the start",
    "Skipped updates in a row, count"]


@pytest.mark.parametrize(("tag", "title"), [
  ("update/consecutive_skipped", "Skipped updates in a row, count"),
  ("speed/waiting", "Fraction of time the learner waits for data"),
  ("loss/teacher_kl", "KL loss to the teacher"), ("odd_kind/of_mine", "Of mine")])
def test_no_title_is_a_raw_tag(tag, title):
  assert panels.title_of(tag) == title


def test_means_over_used_arguments_share_a_panel_by_argument():
  section, = panels.sections(tags_of(*(
    (seconds, f"imitation/{kind}/{name}", seconds) for kind in terms.OVER_USED
    for name in terms.ARGUMENTS for seconds in (1, 2) if kind not in ("entropy", "kl"))))
  assert section.title == "Imitation"
  arguments = [*map(panels.name_of, terms.ARGUMENTS)]
  assert [list(panel.curves) for panel in section.panels] == [arguments] * 3


def test_offline_learning_has_a_section_whose_titles_differ():
  section, = panels.sections(tags_of(*(
    (seconds, f"offline/{tag}", seconds) for seconds in (1, 2) for tag in (
      *(f"{kind}/{name}" for kind in ("accuracy", "cross_entropy", "kl", "policy")
        for name in terms.ARGUMENTS), "loss/total", "loss/kl", "value/winloss",
        "mean_value/winloss",
      "explained_variance/winloss", "mean_reward/winloss", "emphasis/mean", "total/steps_learnt"))))
  assert section.title == "Offline"
  titles = [panel.title for panel in section.panels]
  assert titles == [
    "Accuracy by argument", "Cross-entropy by argument, nats", "Policy-gradient loss by argument",
    "KL divergence from the behaviour policy by argument, nats", "Total loss",
    "Value loss of the win-loss value",
    "Explained variance of the win-loss returns, mean of batch parts",
    "Mean prediction of the win-loss value", "Mean win-loss reward of a step",
    "Mean emphatic weight", "KL loss to the behaviour policy"]
  assert [panel.share for panel in section.panels] == [True] + [False] * 10


def test_flat_lines_are_values_and_no_panels():
  section, = panels.sections(tags_of(
    (1, "update/skipped", 0), (2, "update/skipped", 0), (1, "update/consecutive_skipped", 0),
    (1, "update/learning_rate", 0.5), (2, "update/learning_rate", 0.5),
    (1, "update/update_norm", 0.25), (1, "update/gradient_norm", 1),
    (2, "update/gradient_norm", 2)))
  assert section.constant == [
    ("Learning rate", 0.5), ("Skipped updates, count since the start", 0),
    ("Skipped updates in a row, count", 0)]
  # One row of 0.25 may still change.
  assert [panel.title for panel in section.panels] == [
    "Norm of the gradient before clipping", "Norm of the parameters' change"]


def test_a_shared_panel_is_flat_if_all_its_curves_are_the_same_line():
  def policy(*values):
    section, = panels.sections(tags_of(
      *((1, f"illegal/{name}", value) for name, value in zip("ab", values, strict=True))))
    return section.constant
  title = "Fraction of actions that the masks exclude, by argument"
  assert policy(0, 0) == [(title, 0)]
  assert policy(0, 1) == policy(1, 1) == policy(0, math.nan) == []


def test_a_share_of_less_than_a_tenth_of_a_percent_is_flat():
  waiting = [(1, "speed/waiting", 0.0), (2, "speed/waiting", 9e-4)]
  assert panels.sections(tags_of(*waiting))[0].constant == [
    ("Fraction of time the learner waits for data", 0)]
  assert panels.sections(tags_of(*waiting, (3, "speed/waiting", 2e-3)))[0].constant == []


def test_an_argument_has_one_colour_in_all_sections():
  sections = panels.sections(tags_of(*(
    (1, f"{kind}/{name}", 1) for kind in ("entropy", "imitation/accuracy", "imitation/loss")
    for name in ("units", "delay")), (1, "value/a", 1), (1, "value/b", 2)))
  arguments = [*map(panels.name_of, terms.ARGUMENTS)]
  assert [section.names for section in sections] == [arguments, ["a", "b"], arguments]


def test_policy_losses_by_reward_and_by_argument_are_apart():
  values, policy = panels.sections(tags_of(
    (1, "policy/winloss", 1), (1, "policy/delay", 2), (1, "value/winloss", 3)))[::-1]
  assert policy.title == "Policy" and values.title == "Values"
  assert [list(panel.curves) for panel in policy.panels] == [["delay"]]
  assert [(panel.title, list(panel.curves)) for panel in values.panels] == [
    ("Value loss by reward", ["win-loss"]), ("Policy-gradient loss by reward", ["win-loss"])]


def test_openings_of_all_actors_share_a_panel():
  section, = panels.sections(tags_of(*(
    (update, f"opening/{actor}/rush", update / 4) for update in (1, 2) for actor in (0, 1))))
  assert [(panel.title, list(panel.curves)) for panel in section.panels] == [
    ("Share of an actor's latest games by opening", ["0/rush", "1/rush"])]


def test_parts_and_repetitions_are_not_drawn():
  assert panels.sections(tags_of(
    (1, "update/step", 1), (1, "update/loss", 1), (1, "count/games", 3), (1, "win_rate/eval/x", 1),
    (1, "total/steps", 3), (1, "score/eval/x", 1), (1, "imitation/update/loss", 3))) == []


def test_a_section_spans_its_own_rows():
  imitation, losses = sorted(panels.sections(tags_of(
    (60, "imitation/loss/total", 3), (120, "imitation/loss/total", 2), (300, "loss/total", 3),
    (480, "loss/total", 2))), key=lambda section: section.title)
  assert imitation.span == (60, 120) and losses.span == (300, 480)
