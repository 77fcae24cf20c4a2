"""K rollouts of a state: agent loop, tools, receipts, generation engines."""
