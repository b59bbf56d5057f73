"""docs/first-router.md is right: its commands are run as root, and what they print is compared with the page."""

import contextlib
import os
import pathlib
import signal

import netlab
import pytest
from test_docs import Walk, prefix  # noqa: F401  (a fixture)

HOSTS = ["left", "router", "right"]


def test_first_router_page(prefix, tmp_path):  # noqa: F811
    netlab.need("ping")
    taken = [host for host in HOSTS if pathlib.Path("/run/netns", host).exists()]
    if taken:
        pytest.skip(f"network namespaces of these names are there: {', '.join(taken)}")
    try:
        walk = Walk("first-router.md", tmp_path, prefix).walk()
        assert not walk.problems, "\n".join(walk.problems)
        assert not any(pathlib.Path("/run/netns", host).exists() for host in HOSTS)
    finally:
        for host in HOSTS:
            for pid in netlab.call("ip", "netns", "pids", host, check=False).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            netlab.call("ip", "netns", "del", host, check=False)
