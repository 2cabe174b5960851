"""The configuration groups; importing this registers the resolvers that they use."""

from omegaconf import OmegaConf

from verifier.demo import demo_path

OmegaConf.register_new_resolver("dashed", lambda name: f"-{name}" if name else "", replace=True)
OmegaConf.register_new_resolver("demo_path", lambda name="claims": str(demo_path(name)), replace=True)
