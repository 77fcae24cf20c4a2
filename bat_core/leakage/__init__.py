"""The leakage preflight: nothing that is held out may reach training data."""
