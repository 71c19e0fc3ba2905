"""The figures of an ablation, and its files: JSON, a table, a picture and a page."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from starleague import league
from starleague.actor.evaluation import Counts
from starleague.common import files, results
from starleague.experiments.configs.ablations import Ablation
from starleague.experiments.run.ablation import figures
from starleague.experiments.run.ablation.arm_runs import Run
from starleague.experiments.run.ablation.games import AblationGames
from starleague.experiments.run.evaluation import evaluating, robustness
from starleague.experiments.run.evaluation.measures import (
  Measure,
  differences,
  panel,
  step_table,
  table,
)
from starleague.viewers import bars, pages

NAME = "ablation"  # of the files, in the ablation's folder


def measures(ablation: Ablation, runs: Sequence[Run], games: AblationGames) -> list[Measure]:
  """Computes the figures of an ablation from its games and the results of its runs.

  Args:
    ablation: its opponents and opening.
    runs: trained.
    games: results of their games.
  """
  def by_kind(value: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for entrant in games.entrants:
      found[entrant.kind] = (*found.get(entrant.kind, ()), value[entrant.name])
    return found

  def score(counts: Counts) -> float:
    return 100 * evaluating.score_of(counts).value

  past = figures.equally_many(
    games.past, {entrant.name: entrant.run.seed for entrant in games.entrants})
  anchor = ablation.opponents[0]
  rating = figures.ratings(games.played, anchor)
  scores = {opponent: {entrant.name: score(games.played[entrant.name, opponent])
                       for entrant in games.entrants} for opponent in ablation.opponents}
  found = [Measure(f"Elo rating, {anchor} = 0", 0, by_kind(rating))]
  found += [Measure(f"score against {opponent}, %", 0, by_kind(values))
            for opponent, values in scores.items()]
  if len(scores) > 2:
    found.append(Measure("lowest of these scores, %", 0, by_kind({
      entrant.name: min(values[entrant.name] for values in scores.values())
      for entrant in games.entrants})))
  found.append(Measure(
    f"entropy of the first {ablation.opening} units and buildings, bits", 1,
    by_kind(games.entropy)))
  found += [Measure(title, 0, by_kind({
    name: 100 * rating(*evaluating.points_of(counts)).value for name, counts in played.items()}))
    for title, rating, played in (
      ("minimum score against past selves, %", league.minimum_score, past),
      ("exploitability: best score of fresh exploiters, %", league.exploitability,
       games.exploited)) if played]
  if games.mixtures:
    found.append(Measure("exploitability of the main agents' Nash mixture, %", 0, by_kind({
      name: 100 * max(map(robustness.mixture_exploitability, played))
      for name, played in games.mixtures.items()})))
  if games.variety:
    found += [Measure("coverage of the main agents' behaviours, %", 1, by_kind({
      name: 100 * each.coverage for name, each in games.variety.items()})),
              Measure("QD score of the main agents", 1, by_kind({
                name: each.qd_score for name, each in games.variety.items()}))]
  # The training games of a league are not against scripted players.
  return found if ablation.league else found + _learning(ablation, runs)


def _learning(ablation: Ablation, runs: Sequence[Run]) -> list[Measure]:
  """Computes how soon training reached a score of 50%."""
  minutes: dict[str, tuple[float, ...]] = {}
  steps: dict[str, tuple[float, ...]] = {}
  for run in runs:
    reached = figures.time_to_score(
      results.read(run.path / results.FILE_NAME), ablation.opponents)
    per_update = run.config.learner.batch_size * run.config.unroll_length
    name = run.arm.name
    minutes[name] = (*minutes.get(name, ()), reached.seconds / 60)
    steps[name] = (*steps.get(name, ()), reached.updates * per_update / 1e3)
  return [Measure("minutes of training to a score of 50%", 1, minutes),
          Measure("thousand steps learnt to a score of 50%", 0, steps)]


def _budget(ablation: Ablation, runs: Sequence[Run]) -> str:
  """Returns the updates of the arms; those of exploiters come on top of a main agent's."""
  if not ablation.of_main:
    return f"{ablation.updates} updates of reinforcement learning for each arm"
  totals = "; ".join(
    f"{arm.title}: {np.mean([run.all_updates for run in runs if run.arm == arm]):.0f}"
    for arm in ablation.arms)
  return (f"{ablation.updates} updates of reinforcement learning of the main agent in each arm "
          f"(all players together, means: {totals})")


def titles_of(games: AblationGames) -> dict[str, str]:
  """Returns the title of each kind of agent."""
  return {entrant.kind: entrant.run.arm.title + (", z shown" if entrant.shows_z else "")
          for entrant in games.entrants}


def steps(found: Sequence[Measure], kinds: Sequence[str]) -> list[list[Any]]:
  """Returns the difference of each kind from the one before it, where it can be tested.

  Args:
    found: of `measures`.
    kinds: in the order of the arms.

  Returns:
    Rows of `differences`.
  """
  return differences(found, list(zip(kinds, kinds[1:], strict=False)))


def write(ablation: Ablation, runs: Sequence[Run], games: AblationGames,
          folder: pathlib.Path) -> list[str]:
  """Writes `ablation.json`, `.md`, `.svg` and `.html`; returns the tables as lines.

  Args:
    ablation: what was varied.
    runs: trained.
    games: results of their games.
    folder: of the files.
  """
  found, titles = measures(ablation, runs, games), titles_of(games)
  kinds = list(titles)
  panels = [panel(measure, titles) for measure in found]
  rows = steps(found, kinds)
  lines = [f"**{ablation.title}**", "", *table(panels), "", *step_table(rows, titles)]
  about = (f"{_budget(ablation, runs)}, seeds {', '.join(map(str, ablation.seeds))}. Bars: means "
           "over the seeds with 95% t intervals; dots: seeds.")
  document = {
    "title": ablation.title, "updates": ablation.updates, "seeds": list(ablation.seeds),
    "arms": {arm.name: {"title": arm.title, "overrides": dict(arm.overrides)}
             for arm in ablation.arms},
    "config": runs[0].config.to_dict(),
    "measures": [{"title": measure.title, "values": {
      kind: [x if np.isfinite(x) else None for x in values]
      for kind, values in measure.values.items()}} for measure in found],
    "differences": rows}
  page = pages.charts_page(
    ablation.title, about, [pages.Charts("", [bars.plot(shown) for shown in panels])])
  for suffix, text in ((".json", json.dumps(document, indent=1)), (".html", page),
                       (".md", "\n".join([*lines, "", about, ""])), (".svg", bars.picture(panels))):
    with files.replacing(folder / f"{NAME}{suffix}") as file:
      file.write(text)
  return lines
