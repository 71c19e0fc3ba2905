"""The two ways to play games: inside the compiled program, or in processes of their own."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import jax

from starleague import league
from starleague.actor.loops import (
  compiled_evaluation,
  compiled_league,
  compiled_loop,
  compiled_single,
  hosted_evaluation,
  hosted_league,
  hosted_loop,
  hosted_single,
)
from starleague.actor.loops.compiled_evaluation import Evaluation
from starleague.actor.loops.league_connection import Members
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import WeightSource, make_source
from starleague.actor.parts import Parts
from starleague.common import run_files, stopping
from starleague.data.z.conditioning import Conditioning, unconditional
from starleague.league.run_copy import RunCopy


class Play(Protocol):
  """The loop of an actor."""

  def __call__(self, parts: Parts, options: ActorOptions, process: ActorProcess,
               conditioning: Conditioning | None, client: league.LeagueClient | None) -> None:
    """Plays until a stop signal.

    Args:
      parts: the agent and its games.
      options: of the actor.
      process: the actor.
      conditioning: of the games; None: z comes from the games that demonstrators win.
      client: of the league's coordinator; None: the run trains one agent.
    """


class MakeEvaluation(Protocol):
  """Makes the evaluation games of an agent; see `compiled_evaluation.make_evaluation`."""

  def __call__(self, parts: Parts, opponents: Sequence[int], games: int, seed: int,
               races: tuple[int, int] = ...) -> Evaluation:
    """Returns a function that plays them."""


class Engine(NamedTuple):
  """A way to play games."""

  play: Play
  make_evaluation: MakeEvaluation


def _weights(parts: Parts, options: ActorOptions, process: ActorProcess,
             client: league.LeagueClient | None) -> WeightSource:
  learners = [run_files.PLAYER] if client is None else Members(client).learners
  return make_source(
    parts, RunCopy(process.run_dir, client), process.parameters, learners,
    options.parameter_interval_s, options.timeout_s, stopping.stop_event())


def _play_compiled(parts: Parts, options: ActorOptions, process: ActorProcess,
                   conditioning: Conditioning | None,
                   client: league.LeagueClient | None) -> None:
  weights = _weights(parts, options, process, client)
  # What a kill loses: unfinished games, results not yet reported, trajectories on their way.
  stopping.end_at_once()
  source: compiled_loop.CallSource
  if client is None:
    source = compiled_single.SingleCalls(parts, options, process, weights, conditioning)
  else:
    assert conditioning is not None, "a league draws its z from a library"
    source = compiled_league.LeagueCalls(
      parts, options, process, client, weights, conditioning)
  compiled_loop.play(source, options, process.number)


def _play_hosted(parts: Parts, options: ActorOptions, process: ActorProcess,
                 conditioning: Conditioning | None,
                 client: league.LeagueClient | None) -> None:
  weights = _weights(parts, options, process, client)
  rng = hosted_loop.generator(options, process.number)
  shown = unconditional(len(parts.maps), parts.mmr) if conditioning is None else conditioning
  source: hosted_loop.MatchSource = (
    hosted_single.SingleMatches(parts, options, process, weights, shown, rng)
    if client is None else hosted_league.LeagueMatches(
      parts, options, process, client, weights, shown, rng))
  hosted_loop.play(source, parts, options, process, jax.random.key(int(rng.integers(2**31))))


COMPILED = Engine(_play_compiled, compiled_evaluation.make_evaluation)
HOSTED = Engine(_play_hosted, hosted_evaluation.make_evaluation)
