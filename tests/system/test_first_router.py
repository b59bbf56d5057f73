"""docs/first-router.md and docs/openflow.md are right: their commands are run as root, and what they print is compared with
the pages."""

import contextlib
import os
import pathlib
import signal

import netlab
import pytest
from test_docs import Walk, prefix  # noqa: F401  (a fixture)


def walk_with_hosts(page, folder, prefix, hosts):  # noqa: F811
    """Walks a page that makes network namespaces of these names, and removes them at its end."""
    taken = [host for host in hosts if pathlib.Path("/run/netns", host).exists()]
    if taken:
        pytest.skip(f"network namespaces of these names are there: {', '.join(taken)}")
    try:
        walk = Walk(page, folder, prefix).walk()
        assert not walk.problems, "\n".join(walk.problems)
        assert not any(pathlib.Path("/run/netns", host).exists() for host in hosts)
    finally:
        for host in hosts:
            for pid in netlab.call("ip", "netns", "pids", host, check=False).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            netlab.call("ip", "netns", "del", host, check=False)


def test_first_router_page(prefix, tmp_path):  # noqa: F811
    netlab.need("ping")
    walk_with_hosts("first-router.md", tmp_path, prefix, ["left", "router", "right"])


def test_openflow_page(prefix, tmp_path):  # noqa: F811
    netlab.need("ping", "ovs-ofctl", "ovs-testcontroller", "openssl")
    walk_with_hosts("openflow.md", tmp_path, prefix, ["h1", "h2", "switch"])
