"""The calls that evaluate, their variants, and evaluators of batches."""
