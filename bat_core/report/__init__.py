"""A run as one self-contained web page."""
