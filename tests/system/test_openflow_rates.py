"""Meters of the OpenFlow switch under real traffic, shared by two workers: what they let pass is within 5 % of their rates.

Elements behind the switch count what has left. Buckets hold as much as comes in a second, so that a worker that does not run
for a while takes it later; a window that a busy machine has disturbed is measured again.
"""

import time

import pytest
from test_openflow_switch import Switch

BYTES = 500
OFFERED, RATE = 40000, 8000  # packets/s
WINDOW_S, WINDOWS = 1.5, 4

GRAPH = f"""
ControlSocket(UNIX, control);
sw :: OpenFlowSwitch(1, LISTEN punix:mgmt);
// Each worker runs the source, and sends its flows.
TrafficSource(FLOWS 1024, LENGTH {BYTES}, RATE {OFFERED}) -> MarkIPHeader(14) -> SetIPDSCP(10) -> [0] sw;
Idle -> [1] sw;
sw[0] -> Discard;
sw[1] -> MarkIPHeader(14) -> dscp :: IPClassifier(ip dscp 10, ip dscp 12);
dscp[0] -> low :: Counter -> Discard;
dscp[1] -> raised :: Counter -> Discard;
"""


class MeteredSwitch(Switch):
    def __init__(self, folder):
        super().__init__(folder, options=["--no-pin"], graph=GRAPH, workers=2)

    def counts(self):
        """When the packets of low and of raised drop precedence were counted, and how many there were."""
        while True:
            before = time.monotonic()
            low, raised = int(self.read("low.count")), int(self.read("raised.count"))
            after = time.monotonic()
            if after - before < 0.01 * WINDOW_S:
                return (before + after) / 2, low, raised


@pytest.mark.parametrize("band", ["drop", "dscp_remark"])
@pytest.mark.parametrize("unit", ["pktps", "kbps"])
def test_lets_its_rate_pass(tmp_path, unit, band):
    rate = RATE if unit == "pktps" else RATE * BYTES * 8 // 1000
    level = ",prec_level=1" if band == "dscp_remark" else ""
    above = OFFERED - RATE if band == "dscp_remark" else 0
    with MeteredSwitch(tmp_path) as switch:
        switch.ofctl("OpenFlow13", "add-meter",
                     f"meter=1,{unit},burst,stats,band=type={band},rate={rate},burst_size={rate}{level}")
        switch.ofctl("OpenFlow13", "add-flow", "in_port=1,actions=meter:1,output:2")
        # Until the bucket is empty.
        switch.wait(lambda: "packet_count:0" not in switch.ofctl("OpenFlow13", "meter-stats"))
        seen = []
        for _ in range(WINDOWS):
            begin, low, raised = switch.counts()
            time.sleep(WINDOW_S)
            end, low_end, raised_end = switch.counts()
            seen.append([(low_end - low) / (end - begin), (raised_end - raised) / (end - begin)])
            if abs(seen[-1][0] - RATE) <= 0.05 * RATE and abs(seen[-1][1] - above) <= 0.05 * above:
                return
        pytest.fail(f"packets/s below and above the rate: {seen}, not {RATE} and {above}")
