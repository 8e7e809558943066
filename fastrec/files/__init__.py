"""Evaluation of users that lie on disk."""
