"""The version and the name of the distribution, written here and nowhere else in the package."""

__version__ = "0.2.0"
DISTRIBUTION = "fastrec-eval"  # what pip installs: on the public index, `fastrec` is another project
