"""``cluster=gpu_pool`` on a cluster of the node types of ``deploy/ray-up.yaml``, whose autoscaler adds them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import yaml
from ray.autoscaler._private.util import prepare_config

from tests.jobs.driver import REPOSITORY, environment, started
from tests.jobs.night_faults import JOB, check, lines, write
from tests.jobs.servers import AUTHENTICATED, free_port, ray_head, wait_for_port

HEAD = "ray.head.default"  # how the provider of nodes that are no machines calls it
STORE = {"object_store_memory": 100_000_000}


def autoscaling_config(address: str) -> dict[str, Any]:
    """The file for ``ray up`` with nodes that are processes of this machine, GPUs in name only."""
    config = prepare_config(yaml.safe_load((REPOSITORY / "deploy/ray-up.yaml").read_text()))
    types = config["available_node_types"]
    types[HEAD] = types.pop("head")
    for kind in types.values():
        kind |= {"node_config": {}, "resources": {**kind["resources"], **STORE}}
    provider = {"type": "fake_multinode", "gcs_address": address, "disable_node_updaters": True}
    return {**config, "head_node_type": HEAD, "provider": provider, "auth": {}, "docker": {}}


@contextmanager
def autoscaling(folder: Path, **settings: object) -> Iterator[str]:
    """The address of a head node whose monitor starts and ends nodes as they are asked for."""
    host, port = ray.util.get_node_ip_address(), free_port()
    (folder / "cluster.yaml").write_text(yaml.safe_dump(autoscaling_config(f"{host}:{port}")))
    scaled = {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
    options = {"port": port, "dashboard-port": free_port(), "num-cpus": 4, "num-gpus": 0} | {
        "object-store-memory": STORE["object_store_memory"],
        "autoscaling-config": folder / "cluster.yaml",
    }
    env = {**environment(**settings), **scaled, **AUTHENTICATED}
    with ray_head(folder, env, *(f"--{name}={value}" for name, value in options.items())) as head:
        wait_for_port(host, port, head)
        yield f"{host}:{port}"


def test_actors_wait_for_nodes_that_the_cluster_adds(tmp_path: Path) -> None:
    quiet, log = write(tmp_path, 500), tmp_path / "log"
    with autoscaling(tmp_path, FREE_LOG=log, FREE_DELAY=0.5) as address:
        job = (*JOB, "cluster=gpu_pool", f"cluster.address={address}", "actors.max_size=2")
        with started(tmp_path, *job, **AUTHENTICATED) as driver:
            assert driver.process.wait(300) == 0, driver.errors()
    check(tmp_path, quiet)
    assert len({line.split()[0] for line in lines(log)}) == 2, "two actors, each on a node that was added"
