"""Systems on the same users: pairing, differences, tests."""
