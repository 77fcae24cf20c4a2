"""What runs inside a sandbox: an agent of standard-library Python that is its first process.

Nothing here may import a third-party package or the rest of bat-core but `tree` and `tarball`: the sources
are handed to an interpreter that has neither (see `bundle.py`).
"""
