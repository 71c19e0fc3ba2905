"""Constants of a game: tiers, maps, tables of units, products and functions."""
