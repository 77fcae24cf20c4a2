"""Provider `docker`: a container a sandbox, its agent on an attached stream. The SDK is imported at the first call."""
