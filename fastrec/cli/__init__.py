"""The command line: arguments become calls of the API, results go to files and terminals."""
