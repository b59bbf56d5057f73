"""docs/openflow.md is right: its commands are run as root, and what they print is compared with the page."""

import netlab
from test_docs import Walk, prefix  # noqa: F401  (a fixture)
from test_first_router import walk_with_hosts


def test_openflow_page(prefix, tmp_path):  # noqa: F811
    netlab.need("ping", "ovs-ofctl", "ovs-testcontroller", "openssl")
    walk_with_hosts("openflow.md", tmp_path, prefix, ["h1", "h2", "switch"])
