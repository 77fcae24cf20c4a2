"""Where untrusted code runs: backends, the agent inside them, sealed workspaces and a pool."""
