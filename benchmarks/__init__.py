"""Measurements, each a ratio to a limit measured in the same process."""
