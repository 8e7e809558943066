"""Plan, kernels, exact sums, estimates: what an evaluation does with checked input."""
