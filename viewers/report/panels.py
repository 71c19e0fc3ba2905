"""The sections and panels of the report's curves: titles with units. Pure functions of rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from starleague.agent.types import REWARDS
from starleague.agent.vocabulary import Arguments
from starleague.common.results import Row

Curves = Mapping[str, Sequence[Row]]
# Prefixes of the tags of learning that has a section of its own.
IMITATION, OFFLINE = "imitation/", "offline/"


class Panel(NamedTuple):
  """Curves on common axes, by name."""

  title: str
  curves: Curves
  share: bool = False  # shown from 0 to 100%


class Section(NamedTuple):
  """Panels under a heading.

  Attributes:
    title: the heading.
    panels: in order; their curves of one name have one colour.
    constant: titles and values of the panels that would show a flat line.
    names: of the curves of all panels that have several.
  """

  title: str
  panels: Sequence[Panel]
  constant: Sequence[tuple[str, float]]
  names: Sequence[str]

  @property
  def span(self) -> tuple[float, float]:
    """The times of the section's first and last row, in seconds."""
    times = [row.seconds for panel in self.panels for rows in panel.curves.values() for row in rows]
    return (min(times), max(times)) if times else (0.0, 0.0)


class _Shared(NamedTuple):
  """Tags KIND/NAME that share a panel; `of` are the names, all others without it."""

  kind: str
  title: str
  of: tuple[str, ...] | None = None
  nested: bool = False  # whether names may have parts, as ACTOR/OPENING


# Sections in order: the tags of shared panels, then single tags. Every other kind follows with a
# section of its own.
_SHARED = {
  "Policy": (
    _Shared("entropy", "Normalised entropy by argument"),
    _Shared("kl", "KL divergence from the teacher by argument, nats"),
    _Shared("policy", "Policy-gradient loss by argument"),
    _Shared("upgo", "UPGO loss by argument"),
    _Shared("clipped_fraction", "Fraction of clipped importance ratios by argument group"),
    _Shared("ratio", "Mean of the clipped importance ratio by argument group"),
    _Shared("illegal", "Fraction of actions that the masks exclude, by argument"),
    _Shared("used", "Fraction of steps that use the argument")),
  "Values": (
    _Shared("explained_variance",
            "Explained variance of the returns by reward, mean of batch parts"),
    _Shared("value", "Value loss by reward"),
    _Shared("mean_value", "Mean value prediction by reward"),
    _Shared("mean_reward", "Mean reward of a step"),
    _Shared("policy", "Policy-gradient loss by reward", REWARDS)),
  "Speed": (_Shared("speed", "Agent steps per second", ("actor", "learner")),
            _Shared("actor", "Agent steps per second by actor")),
  "Games": (_Shared("games", "Games in the newest score, by opponent"),),
  "Openings": (_Shared("opening", "Share of an actor's latest games by opening", nested=True),),
  "Deaths": (_Shared("deaths", "Deaths of processes, count since the start"),),
}
_SHARED_OF_IMITATION = (
  _Shared("loss", "Loss: cross-entropy of learnt and held-out games, L2"),
  _Shared("accuracy", "Accuracy by argument, learnt games"),
  _Shared("held_out/accuracy", "Accuracy by argument, held-out games"),
  _Shared("cross_entropy", "Cross-entropy by argument, nats, learnt games"),
  _Shared("held_out/cross_entropy", "Cross-entropy by argument, nats, held-out games"),
  _Shared("illegal", "Fraction of labels that the masks exclude, learnt games"),
  _Shared("held_out/illegal", "Fraction of labels that the masks exclude, held-out games"),
  _Shared("used", "Fraction of steps that use the argument, learnt games"),
)
_SHARED_OF_OFFLINE = (
  _Shared("accuracy", "Accuracy by argument"),
  _Shared("cross_entropy", "Cross-entropy by argument, nats"),
  _Shared("policy", "Policy-gradient loss by argument"),
  _Shared("kl", "KL divergence from the behaviour policy by argument, nats"),
  _Shared("clipped_fraction", "Fraction of clipped importance ratios by argument group"),
  _Shared("ratio", "Mean of the clipped importance ratio by argument group"),
  _Shared("illegal", "Fraction of recorded actions that the masks exclude, by argument"),
  _Shared("used", "Fraction of steps that use the argument"),
)
_OWN = {"Imitation": (IMITATION, _SHARED_OF_IMITATION), "Offline": (OFFLINE, _SHARED_OF_OFFLINE)}
_ORDER = ("Losses", "Policy", "Values", *_OWN, "Updates", "Speed", "Games", "Openings",
          "Deaths")
_SECTIONS = {"loss": "Losses", "update": "Updates", "speed": "Speed"}
TITLES = {
  "loss/total": "Total loss",
  "loss/policy": "Policy-gradient loss (V-trace)",
  "loss/upgo": "Policy-gradient loss (UPGO)",
  "loss/value": "Value loss",
  "loss/entropy": "Entropy loss",
  "loss/teacher_kl": "KL loss to the teacher",
  "loss/function_kl": "KL loss of the function early in games",
  "loss/cross_entropy": "Cross-entropy loss per learnt step",
  "loss/held_out": "Loss of held-out games",
  "loss/l2": "L2 loss",
  "value/winloss": "Value loss of the win-loss value",
  "explained_variance/winloss": "Explained variance of the win-loss returns, mean of batch parts",
  "mean_value/winloss": "Mean prediction of the win-loss value",
  "mean_reward/winloss": "Mean win-loss reward of a step",
  "emphasis/mean": "Mean emphatic weight",
  "loss/kl": "KL loss to the behaviour policy",
  "update/gradient_norm": "Norm of the gradient before clipping",
  "update/update_norm": "Norm of the parameters' change",
  "update/learning_rate": "Learning rate",
  "update/learnt_steps": "Fraction of a batch's steps that are learnt",
  "update/fresh_unrolls": "Fraction of a batch's unrolls that are not replayed",
  "update/skipped": "Skipped updates, count since the start",
  "update/consecutive_skipped": "Skipped updates in a row, count",
  "speed/actor": "Actors, agent steps per second",
  "speed/learner": "Learner, agent steps per second",
  "speed/waiting": "Fraction of time the learner waits for data",
}
_PLACES = {tag: i for i, tag in enumerate(TITLES)}
_NAMES = {"winloss": "win-loss", "l2": "L2"}
# Shown elsewhere, or parts of what is: scores as such, totals as key figures. `update/loss` repeats
# loss/total, `update/step` the update of each row.
_ELSEWHERE = ("score", "win_rate", "total", "count")
_REPEATED = ("update/loss", "update/step")


def title_of(tag: str) -> str:
  """Returns a tag's title in words, with its unit if it is a known one."""
  if tag in TITLES:
    return TITLES[tag]
  return name_of(tag.rpartition("/")[2]).capitalize()


def name_of(name: str) -> str:
  """Returns the last part of a tag in words."""
  return _NAMES.get(name, name.replace("_", " "))


_ARGUMENTS = tuple(map(name_of, Arguments._fields))


def sections(tags: Curves) -> list[Section]:
  """Returns the sections of curves, the most important first."""
  found: dict[str, list[Panel]] = {name: [] for name in _ORDER}
  left = _drawn(tags)
  for name, (prefix, shared) in _OWN.items():
    own = [tag for tag in left if tag.startswith(prefix)]
    found[name] = _of_own({tag.removeprefix(prefix): left.pop(tag) for tag in own}, shared)
  # Panels of chosen names take their tags first: policy by reward, then by argument.
  kinds = sorted((each for group in _SHARED.values() for each in group),
                 key=lambda each: each.of is None)
  taken = {each: _take(each, left) for each in kinds}
  for name, group in _SHARED.items():
    found[name] += [Panel(each.title, taken[each]) for each in group if taken[each]]
  for tag, rows in _ordered(left):
    name = _SECTIONS.get(tag.split("/")[0], name_of(tag.split("/")[0]).capitalize())
    found.setdefault(name, []).append(_single(tag, rows))
  return [_section(name, panels) for name, panels in found.items() if panels]


def _drawn(tags: Curves) -> dict[str, Sequence[Row]]:
  return {tag: rows for tag, rows in tags.items()
          if tag.split("/")[0] not in _ELSEWHERE and tag not in _REPEATED}


def _ordered(tags: Curves) -> list[tuple[str, Sequence[Row]]]:
  """Returns single tags in the order of TITLES, unknown ones last."""
  return sorted(tags.items(), key=lambda item: _PLACES.get(item[0], len(_PLACES)))


def _of_own(tags: Curves, shared: Sequence[_Shared]) -> list[Panel]:
  """Returns the panels of tags without their prefix."""
  left = _drawn(tags)
  panels = [Panel(each.title, curves, share=each.title.startswith("Accuracy"))
            for each in shared if (curves := _take(each, left))]
  return panels + [_single(tag, rows) for tag, rows in _ordered(left)]


def _take(shared: _Shared, tags: dict[str, Sequence[Row]]) -> Curves:
  """Removes the tags of a panel and returns their curves by name."""
  kind = f"{shared.kind}/"
  chosen = [tag for tag in tags if tag.startswith(kind)
            and (tag[len(kind):] in shared.of if shared.of
                 else shared.nested or "/" not in tag[len(kind):])]
  return {name_of(tag[len(kind):]): tags.pop(tag) for tag in chosen}


def _single(tag: str, rows: Sequence[Row]) -> Panel:
  return Panel(title_of(tag), {title_of(tag): rows}, share=tag == "speed/waiting")


def _section(title: str, panels: Iterable[Panel]) -> Section:
  kept, constant = [], []
  for panel in panels:
    value = constant_of(panel)
    if value is None:
      kept.append(panel)
    else:
      constant.append((panel.title, value))
  shared = {name for panel in kept if len(panel.curves) > 1 for name in panel.curves}
  # First the arguments, if there are any: they have equal colours in all sections.
  first = _ARGUMENTS if shared & {*_ARGUMENTS} else ()
  return Section(title, kept, constant, [*first, *sorted(shared.difference(first))])


def constant_of(panel: Panel) -> float | None:
  """Returns the value of a panel that shows nothing else: 0, or any value of several rows.

  A single row of another value is no flat line yet. Shares are 0 below a tenth of a percent.
  """
  rows = [row for curve in panel.curves.values() for row in curve]
  values = {0.0 if panel.share and abs(row.value) < 1e-3 else row.value for row in rows}
  if len(values) != 1 or not math.isfinite(value := values.pop()):
    return None
  return value if value == 0 or len(rows) > len(panel.curves) else None
