"""One file for each ball: its projection, its norm, its class."""
