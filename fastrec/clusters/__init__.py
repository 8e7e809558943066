"""Evaluation on clusters: users packed and moved by an engine, evaluated in its tasks, and merged by the driver."""
