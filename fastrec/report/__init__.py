"""Reports: numbers, intervals, export, save and load."""
