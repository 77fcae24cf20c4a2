"""What every room speaks of: frozen types without behaviour, one noun a file."""
