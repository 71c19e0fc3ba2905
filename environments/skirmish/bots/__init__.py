"""Scripted players of Skirmish, demonstrators and tournaments between them."""
