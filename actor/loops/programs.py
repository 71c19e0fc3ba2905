"""The compiled programs of actors: rollouts of one agent, and of a league's players."""

from starleague.actor import players, rollouts
from starleague.actor.loops.options import ActorOptions
from starleague.actor.parts import CompiledGames, Parts
from starleague.common.errors import UserError
from starleague.data import wire


def compiled_games(parts: Parts) -> CompiledGames:
  """Returns the games of parts that are played inside the compiled program.

  Raises:
    UserError: they are played in processes of their own.
  """
  if parts.compiled is None:
    raise UserError("the run's game is played outside JAX; expected a run in a game that is played "
                    "inside the compiled program, such as Skirmish")
  return parts.compiled


def _config(parts: Parts, options: ActorOptions) -> rollouts.RolloutConfig:
  return rollouts.RolloutConfig(
    games=options.games, inference_batch=options.inference_batch, iterations=options.iterations,
    races=parts.races, maps=len(parts.maps), draw=options.draw_reward,
    pseudo_scale=options.pseudo_scale, grid_per_unit=compiled_games(parts).grid_per_unit)


def make_single(parts: Parts, options: ActorOptions) -> rollouts.Rollouts:
  """Returns the program of an actor of one agent."""
  games = compiled_games(parts)
  return rollouts.make_rollouts(
    games.environment, parts.policy, _config(parts, options), games.scripted,
    pack_step=wire.pack_steps)


def make_league(parts: Parts, options: ActorOptions, sizes: players.Sizes) -> rollouts.Rollouts:
  """Returns the program of several players, such as those of a league's actor."""
  games = compiled_games(parts)
  return players.make_rollouts(
    games.environment, parts.policy, _config(parts, options), sizes,
    games.scripted if sizes.scripts else None, pack_step=wire.pack_steps,
    valued=options.exploiter_minimax > 0)


def league_sizes(parts: Parts, options: ActorOptions, learners: int) -> players.Sizes:
  """Returns the sizes of the program for a league with so many learning players."""
  matches = max(1, options.league_places * learners)
  return players.Sizes(slots=learners + matches, matches=matches, scripts=len(parts.opponents),
                       chunk=options.league_chunk)
