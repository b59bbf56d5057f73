"""A flood of packets that go to controllers: what else the switch does is not delayed.

The machine may have other work. So bounds of rates count from the beginning, since sources and buckets make up for the time that
they did not get, and answers are compared with those that a switch without a flood gives meanwhile.
"""

import re
import statistics
import time

from test_openflow_switch import Switch

RATE, BURST, WIRE_RATE = 500, 50, 5000

# Port 1 floods, as fast as it can; port 2 is a wire to port 3.
FLOOD = f"""
ControlSocket(UNIX, control);
sw :: OpenFlowSwitch(1, LISTEN punix:mgmt, PACKET_IN_RATE {RATE}, PACKET_IN_BURST {BURST});
TrafficSource() -> [0] sw; wire :: TrafficSource(RATE {WIRE_RATE}, ACTIVE false) -> [1] sw; Idle -> [2] sw;
sw[0] -> Discard; sw[1] -> Discard; sw[2] -> Discard;
"""
QUIET = "sw :: OpenFlowSwitch(1, LISTEN punix:mgmt); Idle -> [0] sw; sw[0] -> Discard;"


def echo_times(switch):
    """In milliseconds."""
    return list(map(float, re.findall(r"time=([\d.]+) ms", switch.ofctl("OpenFlow13", "ping"))))


def test_a_flood_delays_neither_forwarding_nor_echo(tmp_path):
    (tmp_path / "flood").mkdir(), (tmp_path / "quiet").mkdir()
    with Switch(tmp_path / "flood", graph=FLOOD) as switch, Switch(tmp_path / "quiet", graph=QUIET) as other:
        wire_began = time.monotonic()
        switch.ofctl("OpenFlow13", "add-flow", "in_port=2,actions=output:3")
        switch.write("wire.active", "true")
        monitor = switch.monitor("OpenFlow13", "65534")
        try:
            said = lambda: switch.messages().count("OFPT_PACKET_IN")
            flood_began, before = time.monotonic(), switch.ports()
            switch.ofctl("OpenFlow13", "add-flow", "in_port=1,actions=CONTROLLER:64")
            switch.wait(lambda: said() > 0)
            flooded, quiet, end = [], [], time.monotonic() + 2
            while time.monotonic() < end or len(flooded) < 10:
                flooded += echo_times(switch)
                quiet += echo_times(other)
                time.sleep(0.1)
            assert statistics.median(flooded) < 5 * statistics.median(quiet) + 20, (quiet, flooded)
            # Far more came than controllers hear of.
            messages, seconds = said(), time.monotonic() - flood_began
            assert messages < RATE * seconds * 1.2 + BURST
            assert switch.ports()[1][0] - before[1][0] > 10 * messages
            # What was due has come, and nothing is lost.
            due = lambda: WIRE_RATE * (time.monotonic() - wire_began)
            switch.wait(lambda: int(switch.read("wire.count")) > due() * 0.5)
            switch.write("wire.active", "false")
            switch.wait(lambda: switch.ports()[3][1] == int(switch.read("wire.count")))
            sent = int(switch.read("wire.count"))
            assert sent < due() * 1.1 and switch.ports()[2][0] == sent
        finally:
            monitor.terminate()
            monitor.wait()
