"""Servers that the tests of the night start on this machine, and end with all that those started."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil

AUTHENTICATED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for_port(host: str, port: int, server: "subprocess.Popen[bytes]") -> None:
    """Return as soon as something listens there; the server must not end before."""
    deadline = time.monotonic() + 90
    while True:
        with closing(socket.socket()) as knock:
            if knock.connect_ex((host, port)) == 0:
                return
        assert time.monotonic() < deadline and server.poll() is None, f"nothing listens at {host}:{port}"
        time.sleep(0.2)


@contextmanager
def ray_head(folder: Path, env: Mapping[str, str], *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The head node of a Ray cluster, which lives as long as the block."""
    ray = Path(sys.executable).with_name("ray")
    with (folder / "ray.log").open("wb") as log:
        command = [str(ray), "start", "--head", "--block", *options]
        head = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield head
    finally:
        family = [process := psutil.Process(head.pid), *process.children(recursive=True)]
        head.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            head.wait(20)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
