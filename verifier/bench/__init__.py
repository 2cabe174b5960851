"""The benchmark's measuring code: planning beside the published package, runs and families beside ceilings, growth."""
