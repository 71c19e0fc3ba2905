# %% [markdown]
# # A league in ten minutes
#
# This notebook runs a league of Terran players on this machine, from the weights that ship with `mini`: a main agent,
# a main exploiter and two league exploiters. It needs the whole stack of `make setup`, with Reverb. Then it reads
# the league's file: players, payoff matrix, Elo ratings and the Nash equilibrium. `make league` begins with
# imitation instead, and takes twice as long.

# %%
import importlib.util
import pathlib
import subprocess
import sys

import numpy as np

from starleague import league

if importlib.util.find_spec("reverb") is None:
  sys.exit("error: this notebook needs Reverb, which is not installed: make setup, or "
           "pip install --no-deps -r requirements.txt on Python 3.11")

seconds = float(sys.argv[1]) if sys.argv[1:] else 420.0
run_dir = pathlib.Path("runs/notebook-league")
subprocess.run(
  [sys.executable, "-m", "starleague.experiments.league", "--run", run_dir.name,
   "--config.init=pretrained",  # the first frozen player, and the teacher of all
   "--config.actor.pseudo_probability=0",  # shipped weights have no library of z
   "--config.league.snapshot_steps=10000", "--config.league.timeout_steps=20000",
   f"--config.league.seconds={seconds}"], check=True)

# %% [markdown]
# The file of a league is read while it runs, or afterwards. The league's own page, `league.html` in the run's
# directory, shows the same and more.

# %%
league_file = run_dir / "league.sqlite"
players = league.open_league_file(league_file).players()
for player in players:
  print(f"{player.name}: {player.kind}, from {player.parent or 'the shipped weights'}")

# %% [markdown]
# A payoff holds the results of all pairs. Ratings are of maximum likelihood, with 95% intervals; the first frozen
# player has rating 0. In the Nash equilibrium, a player that another one beats everywhere has probability 0.

# %%
payoff = league.Payoff(league_file)
names = [player.name for player in players]
counts = payoff.count_matrix(names, names)
games, points = counts[..., 0], counts[..., 1] + 0.5 * counts[..., 2]
np.fill_diagonal(games, 0.0)
np.fill_diagonal(points, 0.0)
played = np.flatnonzero(games.sum(1))
names = [names[i] for i in played]
games, points = games[np.ix_(played, played)], points[np.ix_(played, played)]
frozen = [player.name for player in players if player.kind == league.HISTORICAL]
anchor = next(i for i, name in enumerate(names) if name in frozen)
ratings = league.elo_estimate(points, games, anchor)
equilibrium = league.nash(payoff.matrix(names, names))
for i in np.argsort(-ratings.value):
  print(f"{names[i]}: Elo {ratings.value[i]:.2f} ({ratings.low[i]:.2f} to {ratings.high[i]:.2f}) "
        f"games={games[i].sum():.0f} nash={equilibrium[i]:.2f}")
payoff.close()
assert games.sum() > 0 and abs(equilibrium.sum() - 1) < 1e-6
print(f"page={run_dir / 'league.html'}")
