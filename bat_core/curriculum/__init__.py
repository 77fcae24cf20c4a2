"""Weakest stage, exact mixture, promotion gate, rollback."""
