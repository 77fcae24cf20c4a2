"""Provider `docker`: a container a sandbox, driven through an attached stream; the SDK is imported when one is opened."""
