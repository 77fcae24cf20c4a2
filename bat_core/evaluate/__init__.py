"""Suites, the evaluator process, the firewall."""
