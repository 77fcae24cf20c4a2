"""From sealed evidence to a reward: integrity, items, evidence factor."""
