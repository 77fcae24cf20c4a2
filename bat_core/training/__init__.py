"""Policy checkpoints, tiny base policies, SFT and GRPO on TRL, KL."""
