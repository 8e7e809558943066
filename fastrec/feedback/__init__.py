"""Logs in time: what a recommender shows, step by step, and whether it narrows."""
