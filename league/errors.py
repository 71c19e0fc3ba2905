"""Errors of the league that a user or a client can fix."""

from starleague.common.errors import UserError


class LeagueError(UserError, ValueError):
  """The league refuses a request, a player or a composition; nothing is changed."""


class UnknownPlayerError(UserError, KeyError):
  """The league does not have a player, an order or a game of this name."""

  __str__ = Exception.__str__  # a KeyError would quote its message
