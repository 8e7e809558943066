"""Findings: what in the input suggests that it means something else than a call takes it for."""
