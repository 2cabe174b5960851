"""Assays: registered benchmarks with gates that pass or fail, their cohorts, and what was already seen of them."""
