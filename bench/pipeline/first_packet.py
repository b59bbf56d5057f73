#!/usr/bin/env python3
"""Measures how long the first packet after a pause takes through an idle router, and what the idle router costs.


In network namespaces of its own: a sender, a router with two veth interfaces (FromDevice -> Queue -> ToDevice both ways), a
receiver. Single UDP packets of 64 flows are sent with pauses between them, long enough for the router to sleep; the flows belong
to all workers, so a packet may pass from worker to worker on its way. The time is that from just before
the sender's system call to the kernel's time stamp at the receiver, so it contains the system call, both veth pairs, waking a
worker, and the way through the router. For comparison the same way through a bridge of the kernel. Needs root. The CPU time of
the router is measured over two seconds without any packet.
"""
import argparse
import datetime
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "system"))
import netlab  # noqa: E402

SO_TIMESTAMPNS = 35
PORT = 4739
WIRE = """
a :: FromDevice(left, METHOD {0}, SNIFFER false, PROMISC true) -> Queue -> ToDevice(right, METHOD {0});
b :: FromDevice(right, METHOD {0}, SNIFFER false, PROMISC true) -> Queue -> ToDevice(left, METHOD {0});
"""


def packet_socket(host, interface):
    with host.inside():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind((interface, netlab.ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.settimeout(1)
    return s


def udp_frame(number):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, 17, 0, bytes([10, 0, 0, 9]), bytes([20, 0, 0, 1]))
    head = head[:10] + struct.pack("!H", netlab.checksum(head)) + head[12:]
    return (bytes.fromhex("0200000000990200000000980800") + head + struct.pack("!HHHH", 1000 + number % 64, PORT, 26, 0)
            + struct.pack("!I14x", number))


def one(sender, receiver, number):
    """Microseconds that one frame took; None if it did not arrive."""
    frame = udp_frame(number)
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
    sender.send(frame)
    while True:
        try:
            got, auxiliary, _, _ = receiver.recvmsg(2048, 128)
        except TimeoutError:
            return None
        if got != frame:
            continue
        for level, kind, data in auxiliary:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                return (seconds * 10**9 + nanoseconds - begin) / 1000


def measure(sender, receiver, packets, pause):
    for number in range(50):  # until the router is there
        if one(sender, receiver, number) is not None:
            break
    times, lost = [], 0
    for number in range(1000, 1000 + packets):
        time.sleep(pause)
        took = one(sender, receiver, number)
        if took is None:
            lost += 1
        else:
            times.append(took)
    times.sort()
    at = lambda share: round(times[min(len(times) - 1, int(share * len(times)))], 1)
    return {"p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99), "max_us": round(times[-1], 1), "packets": len(times),
            "lost": lost}


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    args = argparse.ArgumentParser(description="Measures the first packet after a pause.")
    args.add_argument("--headrace", default=str(ROOT / "build" / "headrace"))
    args.add_argument("--packets", type=int, default=500)
    args.add_argument("--pause", type=float, default=10, help="milliseconds")
    args.add_argument("--out")
    options = args.parse_args()
    if os.geteuid() != 0:
        print("needs root: it makes network namespaces", file=sys.stderr)
        return 1
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], text=True, capture_output=True).stdout.strip()
    result = {"what": "first packet after a pause", "pause_ms": options.pause, "commit": commit,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "kernel": os.uname().release, "cpus": os.cpu_count(), "load_average": os.getloadavg()[0],
              "command": " ".join(sys.argv), "ways": {}}
    with netlab.Lab() as lab:
        left, router, right = (lab.host(name) for name in ("left", "router", "right"))
        lab.cable(left, "eth0", router, "left")
        lab.cable(right, "eth0", router, "right")
        sender, receiver = packet_socket(left, "eth0"), packet_socket(right, "eth0")
        for method in ("AF_XDP", "AF_PACKET", "PCAP"):
            process = router.start(options.headrace, "run", "-q", "-", stdin=subprocess.PIPE)
            process.stdin.write(WIRE.format(method))
            process.stdin.close()
            way = measure(sender, receiver, options.packets, options.pause / 1000)
            before = cpu_seconds(process.pid)
            time.sleep(2)
            way["idle_cpu_percent"] = round((cpu_seconds(process.pid) - before) * 50, 1)
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)
            result["ways"][method.lower()] = way
        router.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0")
        for port in ("left", "right"):
            router.ip("link", "set", port, "master", "br0")
        router.ip("link", "set", "br0", "up")
        time.sleep(0.5)
        result["ways"]["kernel bridge"] = measure(sender, receiver, options.packets, options.pause / 1000)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
