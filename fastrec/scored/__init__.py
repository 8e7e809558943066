"""Statistics of scored rows over all users: curves, areas, confusion matrices, with their plots."""
