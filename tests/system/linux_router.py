"""The binary in a network namespace, as a router between two Linux hosts, and what it prints."""

import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import netlab
import pytest

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
CONF = ROOT / "conf"
WAIT_S = 20

# A wire: what comes at one side leaves at the other.
WIRE = """
define($METHOD AF_PACKET);
a :: FromDevice(left, METHOD $METHOD, SNIFFER false, PROMISC true) -> qa :: Queue(10000) -> tb :: ToDevice(right, METHOD $METHOD);
b :: FromDevice(right, METHOD $METHOD, SNIFFER false, PROMISC true) -> qb :: Queue(10000) -> ta :: ToDevice(left, METHOD $METHOD);
"""


class Headrace:
    """The binary, running in a namespace. `text` is what it has printed so far."""

    def __init__(self, host, *arguments, cwd):
        path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
        if not path.exists():
            pytest.skip(f"{path} is not built")
        self.text = ""
        self._process = host.start("stdbuf", "-oL", path.resolve(), "run", "-q", *arguments, cwd=cwd,
                                   stderr=subprocess.STDOUT)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_for(" ready in ")

    def _read(self):
        for line in self._process.stdout:
            self.text += line

    def wait_for(self, what, times=1):
        deadline = time.monotonic() + WAIT_S
        while self.text.count(what) < times:
            assert time.monotonic() < deadline and self._reader.is_alive(), f"no {what!r} in\n{self.text}"
            time.sleep(0.01)

    def signal(self, number):
        self._process.send_signal(number)

    def stop(self):
        """Ends it; returns all that it printed."""
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
        self._process.wait(timeout=WAIT_S)
        self._reader.join(timeout=WAIT_S)
        assert self._process.returncode == 0, self.text
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self._process.kill()
            self._reader.join(timeout=WAIT_S)


@pytest.fixture
def lab():
    netlab.need()
    with netlab.Lab() as made:
        yield made


@pytest.fixture
def hosts(lab):
    """Left and right host with the router between; the router has the cables `left` and `right`."""
    left, router, right = (lab.host(name) for name in ("left", "router", "right"))
    lab.cable(left, "eth0", router, "left")
    lab.cable(right, "eth0", router, "right")
    return left, router, right


def wire(router, tmp_path, *arguments, text=WIRE):
    (tmp_path / "wire.click").write_text(text)
    return Headrace(router, "wire.click", *arguments, cwd=tmp_path)


def number(text):
    return int(text.replace(",", ""))


def port_packets(text):
    return {name: number(n) for name, n in re.findall(r"^(?:in |out) +(\S+) +([\d,]+) ", text, re.M)}


def drops(text):
    _, _, table = text.partition("\ndrops at ")
    return {(name, reason): number(n) for name, n, reason in re.findall(r"^(\S+) +([\d,]+)  (.+)$", table, re.M)}


def value(text, handler):
    return re.search(rf"^{re.escape(handler)}: (.*)$", text, re.M)[1]
