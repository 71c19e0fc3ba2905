# %% [markdown]
# # Load weights and look into a game
#
# The weights of `mini` ship with the package. This notebook plays a minute of Skirmish with them. It prints the
# agent's most probable functions on the way, and writes the game as a page. It took 35 s of processor time, most of it
# compilation (two shared cores, JAX 0.7.1).

# %%
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from starleague import agent
from starleague.agent import vocabulary
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.viewers.watch import page

weights = agent.load_pretrained("mini")
for score in weights.origin.scores:
  print(f"{score.opponent}: score {score.score:.3f} ({score.low:.3f} to {score.high:.3f})")
print("parameters", sum(x.size for x in jax.tree.leaves(weights.params)))

# %% [markdown]
# A controller decides for one player of a game. `LivePlayer` keeps its core state, `LiveGame` the game. Both
# players act when the delay of their last action is over.

# %%
game = GAME_CONFIGS["mini"]
policy = agent.make_policy(weights.config)
pair = (replays.policy_player("pretrained", policy, weights.params, game, weights.origin.mmr),
        replays.scripted_player("rusher", game))
played = live.LiveGame(game, live.with_controllers(replays.make_match_up(), pair), seed=7)
players = [live.LivePlayer(each, game) for each in pair]


# %% [markdown]
# `policy.step` takes parameters, a random key, an observation and the core state. Its logits are those of the
# action it drew. Here a second copy of the agent looks at the same observations as the player.

# %%
@jax.jit
def look(params, key, observation, state):
  output = policy.step(params, key, observation, state)
  return jax.nn.softmax(output.logits.function), output.state


state = policy.initial_state()
for number in range(168):  # of 8 game loops each: a minute
  due = np.flatnonzero(played.due).tolist()
  if 0 in due:
    observation = live.observe(played, 0)
    probabilities, state = look(weights.params, jax.random.key(number), observation, state)
    if number % 24 == 0:
      best = np.argsort(-np.asarray(probabilities))[:3]
      names = ", ".join(f"{vocabulary.FUNCTIONS.names[i]} {probabilities[i]:.2f}" for i in best)
      print(f"loop={played.steps * 8} minerals={observation.player[0]} {names}")
  played.step({player: players[player].act(played, player) for player in due})
assert jnp.isclose(jnp.sum(probabilities), 1.0, atol=1e-3)

# %% [markdown]
# A replay holds the players' actions. The game is computed again from them, and drawn on a page that needs no
# network.

# %%
replay = played.replay(tuple(each.name for each in pair))
path = page.write_page(pathlib.Path(tempfile.mkdtemp()) / "game.html", replay,
                       replays.resimulate(replay))
print(f"page={path} kilobytes={path.stat().st_size / 1000:.0f} steps={replay.steps}")
