"""Explanations why other tools give other numbers: definitions, numbers, users."""
