"""Games, behind the two-player protocol of `base`."""
