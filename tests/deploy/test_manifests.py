"""What stands in ``deploy/`` is what Kubernetes, KubeRay and ``ray up`` take, and what the jobs take."""

import copy
import json
import shlex
import string
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import ray
import yaml
from hydra import compose, initialize_config_module
from ray.autoscaler._private.util import prepare_config, validate_config

from tests.jobs.driver import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
RAYJOB = yaml.safe_load((DEPLOY / "kuberay-rayjob.yaml").read_text())
RAY_UP = yaml.safe_load((DEPLOY / "ray-up.yaml").read_text())
CLUSTER = RAYJOB["spec"]["rayClusterSpec"]


def check_rayjob(manifest: Any) -> None:
    jsonschema.validate(manifest, json.loads((Path(__file__).parent / "rayjob.schema.json").read_text()))
    spec = manifest["spec"]["rayClusterSpec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **group["template"]}
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def test_the_rayjob_is_one() -> None:
    check_rayjob(RAYJOB)
    assert CLUSTER["rayVersion"] == ray.__version__
    groups = CLUSTER["workerGroupSpecs"]
    assert [group["groupName"] for group in groups] == ["cpu", "gpu"]
    assert all(group["minReplicas"] <= group["replicas"] <= group["maxReplicas"] for group in groups)


def test_the_check_sees_what_is_wrong() -> None:
    wrong = copy.deepcopy(RAYJOB)
    wrong["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["minReplica"] = 1
    with pytest.raises(jsonschema.ValidationError, match="minReplica"):
        check_rayjob(wrong)
    wrong = copy.deepcopy(RAYJOB)
    wrong["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["img"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError, match="img"):
        check_rayjob(wrong)


def test_the_entrypoint_is_a_configuration_and_its_actors_fit_the_nodes() -> None:
    values = yaml.safe_load(RAYJOB["spec"]["runtimeEnvYAML"])["env_vars"]
    command = shlex.split(string.Template(RAYJOB["spec"]["entrypoint"]).substitute(values))
    assert command[:3] == ["python", "-m", "jobs.verify"]
    with initialize_config_module("conf", version_base=None):
        cfg = compose("verify", command[3:])
    gpu = CLUSTER["workerGroupSpecs"][1]
    limits = gpu["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert cfg.actors.num_gpus == int(limits["nvidia.com/gpu"]) == 1 and cfg.actors.num_cpus < int(limits["cpu"])
    assert cfg.actors.autoscaled and cfg.actors.max_size <= gpu["maxReplicas"]
    assert RAY_UP["available_node_types"]["gpu"]["resources"]["CPU"] > cfg.actors.num_cpus


def test_ray_up_takes_its_file() -> None:
    config = prepare_config(copy.deepcopy(RAY_UP))
    validate_config(config)
    types = config["available_node_types"]
    assert types.keys() == {"head", "cpu", "gpu"} and types["gpu"]["resources"]["GPU"] == 1
    assert sum(kind["max_workers"] for kind in types.values()) <= config["max_workers"]
    with pytest.raises(Exception, match="max_wokers"):
        validate_config(prepare_config(copy.deepcopy(RAY_UP) | {"max_wokers": 3}))


def test_nobody_submits_without_a_token() -> None:
    assert CLUSTER["authOptions"] == {"mode": "token"}
    assert "--env=RAY_AUTH_MODE=token" in RAY_UP["docker"]["run_options"]


def test_no_file_holds_a_credential() -> None:
    for path in DEPLOY.iterdir():
        text = path.read_text().lower()
        assert not any(word in text for word in ("secret_access_key", "password", "token:", "akia")), path
