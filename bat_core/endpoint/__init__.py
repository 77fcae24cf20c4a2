"""Models behind OpenAI-compatible endpoints: one client for judges and teachers."""
