"""Expectation-maximization over blocks of tasks: the contract, the loop, executors, memory and kernels."""
