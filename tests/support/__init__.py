"""Helpers that tests share: the naive oracle, worked cases, strategies, calls and checks."""
