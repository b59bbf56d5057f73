"""A flood of packets that go to controllers: what else the switch does is not delayed."""

import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import time

import pytest

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
HEADRACE = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
RATE, BURST, WIRE_RATE = 500, 50, 5000

# Port 1 floods, as fast as it can; port 2 is a wire to port 3.
CONFIG = f"""
sw :: OpenFlowSwitch(1, LISTEN punix:mgmt, PACKET_IN_RATE {RATE}, PACKET_IN_BURST {BURST});
TrafficSource() -> [0] sw; TrafficSource(RATE {WIRE_RATE}) -> [1] sw; Idle -> [2] sw;
sw[0] -> Discard; sw[1] -> Discard; sw[2] -> Discard;
"""


def test_a_flood_delays_neither_forwarding_nor_echo(tmp_path):
    if not HEADRACE.exists():
        pytest.skip(f"{HEADRACE} is not built")
    if shutil.which("ovs-ofctl") is None:
        pytest.skip("not installed: ovs-ofctl (openvswitch-common, tools/deps test)")
    (tmp_path / "flood.click").write_text(CONFIG)
    target = f"unix:{tmp_path}/mgmt"

    def ofctl(*words):
        command = ["ovs-ofctl", "-O", "OpenFlow13", *words]
        done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=20)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ports():
        """Packets received and sent by port."""
        text = ofctl("dump-ports", target)
        return {int(port): (int(rx), int(tx)) for port, rx, tx in
                re.findall(r"port +(\d+): rx pkts=(\d+),.*?tx pkts=(\d+),", text, re.S)}

    def echo_times(seconds):
        """In milliseconds."""
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or len(times) < 10:
            times += map(float, re.findall(r"time=([\d.]+) ms", ofctl("ping", target)))
            time.sleep(0.1)
        return times

    router = subprocess.Popen([HEADRACE, "run", "-q", "-w", "1", "flood.click"], cwd=tmp_path)
    monitor = None
    try:
        while not (tmp_path / "mgmt").exists():
            assert router.poll() is None
            time.sleep(0.02)
        ofctl("add-flow", target, "in_port=2,actions=output:3")
        quiet = echo_times(0.5)
        ofctl("add-flow", target, "in_port=1,actions=CONTROLLER:64")
        with open(tmp_path / "monitor", "w") as log:
            monitor = subprocess.Popen(["ovs-ofctl", "-O", "OpenFlow13", "monitor", target, "65534"], cwd=tmp_path, stdout=log,
                                       stderr=subprocess.STDOUT, env={**os.environ, "OVS_RUNDIR": str(tmp_path)})
        said = lambda: (tmp_path / "monitor").read_text().count("OFPT_PACKET_IN")
        while said() == 0:
            assert router.poll() is None and monitor.poll() is None
            time.sleep(0.02)
        begun, before, said_before = time.monotonic(), ports(), said()
        flooded = echo_times(2)
        after, said_after = ports(), said()
        seconds = time.monotonic() - begun
        messages = said_after - said_before
        assert 0 < messages < RATE * seconds * 1.2 + BURST
        # Far more came than controllers hear of.
        assert after[1][0] - before[1][0] > 100 * messages
        # The machine may have other work, but nothing is lost.
        received, sent = after[2][0] - before[2][0], after[3][1] - before[3][1]
        assert WIRE_RATE * seconds * 0.5 < received < WIRE_RATE * seconds * 1.1
        assert abs(received - sent) <= 256  # on their way when they were counted
        assert statistics.median(flooded) < 5 * statistics.median(quiet) + 20, (quiet, flooded)
    finally:
        for process in filter(None, (monitor, router)):
            process.send_signal(signal.SIGINT)
            process.wait(timeout=10)
    assert router.returncode == 0
