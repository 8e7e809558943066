"""What position does to clicks, and what another ranking would have earned."""
