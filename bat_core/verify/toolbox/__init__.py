"""Checks to build checks from: for authors of domains. One idea a file; see docs/how-to/verify.md."""
