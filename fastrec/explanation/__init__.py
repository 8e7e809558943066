"""Why the number of another tool differs: definitions, numbers, users."""
