"""Evaluation of checked input: plan, kernels, exact sums, estimates."""
