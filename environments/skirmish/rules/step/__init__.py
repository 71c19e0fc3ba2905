"""The phases of a step: economy, construction, movement, combat, recovery."""
