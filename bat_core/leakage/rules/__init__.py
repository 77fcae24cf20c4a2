"""The built-in rules, one a file; each is a driver of `bat_core.leakage_rules`."""
