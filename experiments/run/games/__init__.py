"""The games that runs play, an entry each; `registry` finds them."""
