"""What every projection promises, tested once for all that `registry.CASES` lists."""
