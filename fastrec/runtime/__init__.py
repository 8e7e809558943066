"""The process around an evaluation: threads, forks, signals, limits, compiled code, files written whole."""
