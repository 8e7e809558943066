"""What a process goes through: threads, signals, forks, limits, compiled code, files written whole."""
