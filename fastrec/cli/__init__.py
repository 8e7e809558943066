"""The command line: arguments to calls of the API, results to files and terminals."""
