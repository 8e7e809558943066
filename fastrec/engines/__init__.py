"""Evaluation on clusters, for any engine that moves rows: users packed, evaluated in partitions, and merged."""
