"""Mounted read-only at /toolbelt in the sandbox; `phx` inside also runs on its own."""
