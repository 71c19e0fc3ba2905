"""The coordinator of a league: serves matches to actors, orders to learners, pairs to evaluators.

  python -m starleague.experiments.coordinator --league_file runs/league/league.sqlite \
    --composition=terran:1:1:2 --port 7010

It prints its address once it serves. SIGTERM and Ctrl-C stop it; the same command resumes the
league.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from absl import flags

from starleague.common import stopping
from starleague.common.database import DatabaseFileError
from starleague.common.errors import FinalError, UserError
from starleague.experiments.run.config import compositions, entry, objectives
from starleague.experiments.run.config import flags as run_flags
from starleague.league import coordinator, league_file, matchmaking, players, server

for _flag in ("port", "seed"):
  flags.declare_key_flag(_flag)
_FILE = flags.DEFINE_string("league_file", None, "SQLite file of the league.")
_LISTEN = flags.DEFINE_string(
  "listen", server.HOST, "Address to listen on. There is no authentication: give another one only "
  "in a trusted network.")
_COMPOSITION = flags.DEFINE_list(
  "composition", None, "Learning players, one entry a race: "
  f"{compositions.FORM}. Those that the league does not have are added. Default: the league's own.")
_SNAPSHOT_STEPS = flags.DEFINE_float(
  "snapshot_steps", 2e9, "Agent steps between two snapshots of a player, at least.", lower_bound=0)
_TIMEOUT_STEPS = flags.DEFINE_float(
  "timeout_steps", 4e9, "Agent steps after which a snapshot is due at any score.", lower_bound=0)
_LEASE_S = flags.DEFINE_float(
  "lease_s", coordinator.DEFAULT_OPTIONS.lease_s, "Seconds after which the games of an actor that "
  "is not heard of are given to another one.", lower_bound=1)
_MATCHMAKING = flags.DEFINE_enum(
  "matchmaking", "pfsp", list(matchmaking.SCHEMES), "How main agents choose opponents: pfsp, the "
  "published mixture; pfsp_alone, PFSP over the league's past; fsp, the past uniformly; self_play, "
  "live main agents; pfsp_self_play, half PFSP and half self-play.")
_SCRIPTED = flags.DEFINE_list(
  "scripted", [], "Scripted players that belong to the league's past. Those that it does not have "
  "are added.")
_OWN = flags.DEFINE_string(
  "own_matchmaking", "", "Schemes of main agents that differ, PLAYER=SCHEME[,PLAYER=SCHEME...].")


def _own_schemes(league: Sequence[players.Player]) -> Mapping[str, str]:
  """Returns the own schemes of main agents, of an existing league or new ones."""
  if not _OWN.value:
    return {}
  mains = dict.fromkeys(player.name for player in league if player.kind == players.MAIN)
  try:
    return objectives.parse_matchmaking(_OWN.value, list(mains))
  except UserError as error:
    raise UserError(f"--own_matchmaking: {error}") from error


def _rules(scheme: str, league: Sequence[players.Player]) -> matchmaking.MatchRules:
  """Returns the rules of a scheme; the past has the scripted players of the league, if any."""
  return matchmaking.SCHEMES[scheme]._replace(
    scripted_are_past=any(player.kind == players.SCRIPTED for player in league))


def main() -> None:
  stop = stopping.stop_event()
  path = run_flags.given(_FILE)
  try:
    initial = compositions.parse(_COMPOSITION.value or [])
  except UserError as error:
    raise UserError(f"--composition: {error}") from error
  initial += [players.Player(name, players.SCRIPTED) for name in filter(None, _SCRIPTED.value)]
  rules = players.pseudocode_rules(_SNAPSHOT_STEPS.value, _TIMEOUT_STEPS.value)
  options = coordinator.Options(lease_s=_LEASE_S.value)
  try:
    existing = league_file.existing_players(path)
    if not existing and not initial:
      raise UserError(f"{path} has no players: give a --composition")
    everyone = [*existing, *initial]
    own = {name: _rules(scheme, everyone) for name, scheme in _own_schemes(everyone).items()}
    league = coordinator.Coordinator(
      path, initial, snapshot_rules=rules,
      match_rules=_rules(_MATCHMAKING.value, everyone), own_rules=own,
      seed=run_flags.SEED.value, options=options)
  except DatabaseFileError as error:  # a league need not start its coordinator again
    raise FinalError(str(error)) from error
  except sqlite3.Error as error:
    raise UserError(f"{path} cannot be opened: {error}") from error
  try:
    serving = server.Server(league, run_flags.PORT.value or 0, _LISTEN.value)
    print(f"coordinator at {serving.address}", flush=True)
    serving.run(stop)
  finally:
    league.close()


if __name__ == "__main__":
  entry.run(main, required=["league_file"])
