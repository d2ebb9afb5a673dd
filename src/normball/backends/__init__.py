"""One module for each kind of array."""
