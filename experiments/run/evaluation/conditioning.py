"""The response of a policy to its conditioning: the z and the MMR that it observes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import evaluation, rewards, rollouts
from starleague.actor.loops import compiled_evaluation
from starleague.actor.loops.programs import compiled_games
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import results
from starleague.data.z.conditioning import Conditioning
from starleague.experiments.run.evaluation import estimates, evaluating

RIGHT, SHUFFLED, NONE = "right_z", "shuffled_z", "no_z"
_ARMS = 5  # those three, and one for each MMR
Report = Callable[[int, str], object]  # (games that have ended, arm that plays)


class Samples(NamedTuple):
  """What is measured in N games of an arm, [N] each."""

  build_order: np.ndarray  # edit distance from the requested to the executed build order
  build_order_types: np.ndarray  # the same without places: equal types always match
  units: np.ndarray  # Hamming distance of the unit types built
  score: np.ndarray  # 1, 0.5 or 0
  win: np.ndarray  # 1 or 0


class ConditioningTest(NamedTuple):
  """The games that test a policy."""

  evaluator: evaluation.Evaluator  # against scripted players
  match: evaluation.Evaluator | None  # against itself with another MMR; None: not played
  conditioning: Conditioning  # a whole z in every game
  grid_per_unit: float
  mmrs: tuple[int, int]  # a high and a low MMR

  @property
  def games(self) -> int:
    """Games of all arms."""
    against_itself = 0 if self.match is None else len(self.match.opponents)
    return _ARMS * len(self.evaluator.opponents) + against_itself


def arm_of_mmr(mmr: int) -> str:
  """Returns the name of the arm that plays with an MMR."""
  return f"mmr_{mmr}"


def make_test(parts: Parts, conditioning: Conditioning, opponents: Sequence[int],
              games: int, mmrs: tuple[int, int], match_games: int) -> ConditioningTest:
  """Makes the games of a test.

  Args:
    parts: the agent, its environment and its opponents.
    conditioning: z of all match-ups, to show and to request.
    opponents: indices of the scripted players to meet.
    games: of each arm against each of them, even.
    mmrs: a high and a low MMR.
    match_games: of the policy against itself, even; 0: none.
  """
  return ConditioningTest(
    evaluator=compiled_evaluation.make_evaluator(parts, opponents, games),
    match=compiled_evaluation.make_match(parts, match_games) if match_games else None,
    conditioning=conditioning._replace(active=np.ones(len(types.PSEUDO_REWARDS), np.float32)),
    grid_per_unit=compiled_games(parts).grid_per_unit, mmrs=mmrs)


def play(test: ConditioningTest, params: Any, seed: int, report: Report) -> dict[str, Samples]:
  """Plays all arms; each has games of its own.

  RIGHT shows a z and requests the same; SHUFFLED shows one and requests another one of the same
  match-up; NONE requests one and shows none. The arms of an MMR have it in their
  observations and no z.

  Args:
    test: the games.
    params: of the policy.
    seed: of the games.
    report: called while games end.

  Returns:
    Samples by arm. The arm `A_against_B` has the score of the policy with MMR A
    against itself with MMR B.
  """
  high, low = test.mmrs
  blind = test.conditioning._replace(active=np.zeros_like(test.conditioning.active))

  def shown(*mmr: int) -> Conditioning:
    return blind._replace(mmr=np.array(mmr, np.int16).squeeze())

  games = [(RIGHT, test.evaluator, params, test.conditioning),
           (SHUFFLED, test.evaluator, params, test.conditioning),
           (NONE, test.evaluator, params, blind),
           (arm_of_mmr(high), test.evaluator, params, shown(high)),
           (arm_of_mmr(low), test.evaluator, params, shown(low))]
  if test.match is not None:
    both = evaluation.pair(params, params)
    games.append((f"{arm_of_mmr(high)}_against_{low}", test.match, both, shown(high, low)))
  found: dict[str, Samples] = {}
  ended = 0
  for number, (arm, evaluator, weights, conditioning) in enumerate(games):
    def on_games(done: int, before: int = ended, arm: str = arm) -> None:
      report(before + done, arm)

    played = evaluation.play(
      evaluator, weights, jax.random.fold_in(jax.random.key(seed), number), conditioning,
      on_games=on_games)
    ended += len(played.over)
    requested = (redraw(conditioning, played, seed) if arm == SHUFFLED
                 else jax.tree.map(lambda x: x[:, 0], played.z))
    found[arm] = measure(played, requested, test.grid_per_unit)
  return found


def redraw(conditioning: Conditioning, played: rollouts.Results, seed: int) -> types.Statistics:
  """Draws for each game another z of its match-up than the one that player 0 was shown.

  Args:
    conditioning: those of the games.
    played: results of N games, [N, ...].
    seed: of the draw.

  Returns:
    [N, ...] z. A match-up with a single z gives that one.
  """
  random = np.random.default_rng(seed)
  drawn = []
  for game, map_index in enumerate(played.map_index):
    rows = conditioning.rows[map_index, played.race[game, 0], played.race[game, 1],
                           played.side[game, 0]]
    same = np.ones(len(rows), bool)
    for held, shown in zip(conditioning.z, played.z, strict=True):
      same &= (held[rows] == shown[game, 0]).reshape(len(rows), -1).all(axis=1)
    drawn.append(random.choice(rows if same.all() else rows[~same]))
  return jax.tree.map(lambda x: x[np.array(drawn)], conditioning.z)


def measure(played: rollouts.Results, requested: types.Statistics,
            grid_per_unit: float) -> Samples:
  """Measures how far player 0 of each game is from what was requested of it, and its result.

  Args:
    played: results of N games, [N, ...].
    requested: [N, ...] z.
    grid_per_unit: cells of the grid of positions per game unit.
  """
  executed = jax.tree.map(lambda x: x[:, 0], played.executed)
  order, order_types, units = map(
    np.asarray, _distances(requested, executed, np.float32(grid_per_unit)))
  sign = np.sign(played.reward[:, 0]).astype(np.float64)
  return Samples(order, order_types, units, score=(1 + sign) / 2, win=1.0 * (sign > 0))


@jax.jit
def _distances(requested: types.Statistics, executed: types.Statistics,
               grid_per_unit: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  def one(target: types.Statistics, built: types.Statistics):
    def order(places: int) -> jax.Array:
      return rewards.build_order_distance(
        target.build_order, target.build_order_xy * places, built.build_order,
        built.build_order_xy * places, grid_per_unit=grid_per_unit)

    return order(1), order(0), rewards.hamming_distance(target.units, built.units)

  return jax.vmap(one)(requested, executed)


def means(found: Mapping[str, Samples]) -> dict[str, dict[str, evaluating.Measured]]:
  """Returns the mean of each measure, by arm and measure."""
  return {arm: {name: estimates.mean(values) for name, values in samples._asdict().items()}
          for arm, samples in found.items()}


def differences(found: Mapping[str, Samples],
                mmrs: tuple[int, int]) -> dict[str, dict[str, estimates.Difference]]:
  """Returns differences between arms, by pair and measure.

  If the policy follows its conditioning, the distances of the first two pairs and the scores of the
  last are above 0.
  """
  pairs = ((SHUFFLED, RIGHT), (NONE, RIGHT), tuple(map(arm_of_mmr, mmrs)))
  return {f"{one}-{other}": {
    name: estimates.difference(getattr(found[one], name), getattr(found[other], name))
    for name in Samples._fields} for one, other in pairs}


def table(found: Mapping[str, Samples], mmrs: tuple[int, int]) -> list[str]:
  """Returns the means and the differences as lines of Markdown."""
  titles = [name.replace("_", " ") for name in Samples._fields]
  lines = [f"| arm | games | {' | '.join(titles)} |", f"|---|---|{'---|' * len(titles)}"]
  for arm, measured in means(found).items():
    cells = [f"{x.value:.2f} ({x.low:.2f} to {x.high:.2f})" for x in measured.values()]
    lines.append(f"| {arm.replace('_', ' ')} | {len(found[arm].score)} | {' | '.join(cells)} |")
  for pair, compared in differences(found, mmrs).items():
    cells = [f"{x.value:+.2f} ({x.low:+.2f} to {x.high:+.2f}), p {x.p_value:.1g}"
             for x in compared.values()]
    lines.append(f"| {pair.replace('_', ' ').replace('-', ' - ')} | | {' | '.join(cells)} |")
  return lines


def summary(found: Mapping[str, Samples], mmrs: tuple[int, int]) -> dict[str, Any]:
  """Returns the figures as JSON: [value, low, high] of means, with the p value of differences."""
  return {
    "games": {arm: len(samples.score) for arm, samples in found.items()},
    "means": {arm: {name: list(x) for name, x in measured.items()}
              for arm, measured in means(found).items()},
    "differences": {pair: {name: list(x) for name, x in compared.items()}
                    for pair, compared in differences(found, mmrs).items()}}


def result_rows(found: Mapping[str, Samples], mmrs: tuple[int, int], seconds: float,
                update: int) -> list[results.Row]:
  """Returns the means and the differences as rows conditioning/ARM/MEASURE."""
  return [results.Row(seconds, update, f"conditioning/{name}/{measure}", x.value, x.low, x.high)
          for group in (means(found), differences(found, mmrs)) for name, measured in group.items()
          for measure, x in measured.items()]
