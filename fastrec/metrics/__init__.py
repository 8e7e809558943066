"""The list of metrics: importing this package declares them."""

from fastrec.metrics import ranking

__all__ = ["ranking"]
