"""One module a job: thin Hydra entry points."""
