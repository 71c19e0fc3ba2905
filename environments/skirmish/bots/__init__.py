"""Scripted players of Skirmish, demonstrators and tournaments."""
