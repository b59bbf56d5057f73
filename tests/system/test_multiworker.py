"""Several workers: each flow keeps its order, also across a queue to another worker, and nothing is lost."""

import collections
import re
import struct

import pytest

FLOWS = 48
ROUND = 40  # frames of a flow in the capture
LIMIT = 3 * FLOWS * ROUND + 17

ROUTER = """
define($IN in.pcap, $OUT out.pcap, $LIMIT 1000);

source :: TrafficSource($IN, LIMIT $LIMIT, STOP false)
    -> Classifier(12/0800) -> Paint(1) -> Strip(14)
    -> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24)
    -> rt :: RadixIPLookup(20.0.0.0/9 0, 20.128.0.0/9 10.0.1.2 1);

elementclass Output { $router, $paint |
    input -> DropBroadcasts -> tee :: PaintTee($paint) -> IPGWOptions($router) -> FixIPSrc($router) -> DecIPTTL
        -> IPFragmenter(1500) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:1:1) -> output;
    tee[1] -> Discard;
}
"""


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(flow, number):
    """A frame of a flow, which its UDP source port tells, with its number in the payload."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 48, number, 0, 64, 17, 0, bytes([10, 0, 0, 9]), bytes([20, flow * 5 & 255, 0, 1]))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return (bytes.fromhex("0200000000010200000001010800") + head + struct.pack("!HHHH", 1000 + flow, 2000, 28, 0)
            + struct.pack("!HI14x", flow, number))


def write_capture(path, frames):
    records = b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames)
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + records)


def read_capture(path):
    data, at = path.read_bytes(), 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16: at + 16 + length]
        at += 16 + length


PATHS = {
    "no queue": "rt[0] -> Output(10.0.0.1, 2) -> d :: ToDump($OUT); rt[1] -> Output(10.0.1.1, 3) -> d;",
    "one queue": "rt[0] -> Output(10.0.0.1, 2) -> q :: Queue(20000) -> Unqueue -> d :: ToDump($OUT); rt[1] -> Output(10.0.1.1, 3) -> q;",
    "queue to another worker": "rt[0] -> Output(10.0.0.1, 2) -> q :: Queue(20000) -> u :: Unqueue(BURST 16) -> d :: ToDump($OUT);"
                               "rt[1] -> Output(10.0.1.1, 3) -> q; StaticThreadSched(u 1);",
    "queue for each output": "rt[0] -> Output(10.0.0.1, 2) -> Queue(20000) -> u :: Unqueue -> d :: ToDump($OUT);"
                             "rt[1] -> Output(10.0.1.1, 3) -> Queue(20000) -> v :: Unqueue -> d; StaticThreadSched(u 0, v 1);",
    "pulled by the dump": "rt[0] -> Output(10.0.0.1, 2) -> q :: Queue(20000) -> d :: ToDump($OUT); rt[1] -> Output(10.0.1.1, 3) -> q;",
}


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_flows_keep_their_order(headrace, tmp_path, path, workers):
    if workers == 1 and "StaticThreadSched" in path:
        pytest.skip("there is no second worker")
    frames = [frame(flow, number) for number in range(ROUND) for flow in range(FLOWS)]
    write_capture(tmp_path / "in.pcap", frames)
    # The router stops once everything came out.
    stop = "Script(TYPE ACTIVE, label again, wait 10ms, goto again $(lt $(d.count) $LIMIT), stop);"
    (tmp_path / "router.click").write_text(ROUTER + path + stop)
    text = headrace("run", "-q", "--duration", "60", "-w", workers, tmp_path / "router.click", f"LIMIT={LIMIT}",
                    f"IN={tmp_path / 'in.pcap'}", f"OUT={tmp_path / 'out.pcap'}").stdout
    assert "\nno drops\n" in text
    by_worker = [int(n.replace(",", "")) for n in re.findall(r"^\d+ +([\d,]+) +[\d.]+% ", text, re.M)]
    assert len(by_worker) == workers and all(by_worker) and sum(by_worker) == LIMIT

    numbers = collections.defaultdict(list)
    for got in read_capture(tmp_path / "out.pcap"):
        flow, number = struct.unpack_from("!HI", got, 42)
        ip = got[14:34]
        assert ip[8] == 63 and checksum(ip) == 0 and struct.unpack_from("!H", got, 34)[0] == 1000 + flow
        numbers[flow].append(number)
    assert sum(map(len, numbers.values())) == LIMIT and len(numbers) == FLOWS
    for flow, got in numbers.items():
        assert got == [(got[0] + i) % ROUND for i in range(len(got))] and got[0] == 0, f"flow {flow}"
