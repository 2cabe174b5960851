"""Settings of the whole suite."""

from hypothesis import settings

# a busy machine is no reason to fail: examples are bounded by number, not by time
settings.register_profile("default", deadline=None)
settings.load_profile("default")
