"""The benchmark's measuring code: planning beside the published package, a run beside its ceiling, growth."""
