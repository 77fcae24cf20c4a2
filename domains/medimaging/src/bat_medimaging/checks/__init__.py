"""Deterministic checks, one file a stage. They recompute; no command's name earns anything."""
