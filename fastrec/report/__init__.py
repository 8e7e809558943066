"""The result: numbers, intervals, export, save and load."""
