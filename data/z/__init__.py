"""The statistics z of played games, and the conditioning of games on them."""
