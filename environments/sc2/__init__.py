"""StarCraft II: its protocol, observations and actions, through pysc2."""
