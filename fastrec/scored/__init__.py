"""What the order of all rows gives: curves, areas, confusion matrices."""
