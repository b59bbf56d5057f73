#!/usr/bin/env python3
"""Compares IPFilter with FlowClassifier on the same rules.

usage: bench/pipeline/classifiers.py [--headrace build/headrace] [--rules 1,3,8,30,100,1000] [--rounds 3] [--seconds 1]

Rules match a protocol and a destination port ("ports"), or both addresses under prefixes and most a port, too ("networks"). Traffic
is inside random rules. Printed are nanoseconds of a worker's CPU time per packet beyond those of the same router without a
classifier, as medians of rounds in which the three take turns. CPU time, so that others on the machine disturb little.
"""
import argparse
import os
import random
import socket
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUTS = 4


def address(bits):
    return ".".join(str(bits >> shift & 255) for shift in (24, 16, 8, 0))


def make_rules(count, kind):
    """Of each rule, what follows the protocol in the syntax of flows and of IPFilter."""
    choose, rules = random.Random(1), []
    for _ in range(count):
        protocol = choose.choice(("tcp", "udp"))
        flow, filter_ = [protocol], [f"ip proto {protocol}"]
        if kind == "networks":
            for side, lengths in (("src", (8, 16, 24, 32)), ("dst", (16, 24, 24, 32))):
                length = choose.choice(lengths)
                prefix = f"{address(choose.randrange(1 << 24, 223 << 24) >> (32 - length) << (32 - length))}/{length}"
                flow.append(f"nw_{side}={prefix}")
                filter_.append(f"{side} net {prefix}")
        if kind == "ports" or choose.random() < 0.7:
            port = choose.randrange(1, 65536)
            flow.append(f"tp_dst={port}")
            filter_.append(f"dst port {port}")
        rules.append((",".join(flow), " && ".join(filter_)))
    return rules


def configurations(rules, folder):
    flows = os.path.join(folder, "rules.flows")
    with open(flows, "w") as file:
        for i, (flow, _) in enumerate(rules):
            file.write(f"priority={60000 - i},{flow} actions=output:{i % OUTPUTS}\n")
        file.write(f"priority=0 actions=output:{OUTPUTS - 1}\n")
    head = (f"TrafficSource(uniform, RULES {flows}, MISS 0.1, CHECKSUM false, FLOWS 100000) -> Strip(14) -> CheckIPHeader\n-> ")
    tail = "".join(f"f[{i}] -> TrafficSink;\n" for i in range(OUTPUTS))
    patterns = ",\n".join([f"{i % OUTPUTS} {text}" for i, (_, text) in enumerate(rules)] + [f"{OUTPUTS - 1} all"])
    texts = {"none": head + "TrafficSink;\n", "IPFilter": head + f"f :: IPFilter({patterns});\n" + tail,
             "FlowClassifier": head + f"f :: FlowClassifier({flows});\n" + tail}
    paths = {name: os.path.join(folder, f"{name}.click") for name in texts}
    for name, text in texts.items():
        with open(paths[name], "w") as file:
            file.write(text)
    return paths


class Router:
    def __init__(self, headrace, path, folder):
        control = os.path.join(folder, "control")
        self.process = subprocess.Popen([headrace, "run", path, "--workers", "1", "--quiet", "-u", control],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(control)
                break
            except OSError:  # not yet
                assert self.process.poll() is None, path
                time.sleep(0.05)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.sinks = [name for name in self.read("list").split()[1:] if name.startswith("TrafficSink")]
        # Until its chain is compiled.
        while "compiled: " not in self.read("chains") or self.look()[0] < 1e6:
            time.sleep(0.1)

    def read(self, handler):
        self.socket.sendall(f"READ {handler}\r\n".encode())
        line = self.file.readline()
        assert line.startswith(b"200"), line
        return self.file.read(int(self.file.readline().split()[1])).decode()

    def look(self):
        """Packets, and by thread the nanoseconds of CPU time."""
        tasks = f"/proc/{self.process.pid}/task"
        used = {}
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat") as file:
                used[task] = int(file.read().split()[0])
        return sum(int(self.read(f"{sink}.count")) for sink in self.sinks), used

    def stop(self):
        self.process.kill()
        self.process.wait()


def ns_per_packet(headrace, path, folder, seconds):
    router = Router(headrace, path, folder)
    try:
        packets, used = router.look()
        time.sleep(seconds)
        packets_then, used_then = router.look()
        # The worker is the thread that used most.
        return max(used_then[task] - used[task] for task in used) / (packets_then - packets)
    finally:
        router.stop()


def main():
    parser = argparse.ArgumentParser(description="Compares IPFilter with FlowClassifier on the same rules.")
    parser.add_argument("--headrace", default=os.path.join(ROOT, "build", "headrace"))
    parser.add_argument("--rules", default="1,3,8,30,100,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    print(f"{'rules':<16}{'IPFilter':>16}{'FlowClassifier':>16}  ns per packet")
    for kind in ("ports", "networks"):
        for count in map(int, options.rules.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                paths = configurations(make_rules(count, kind), folder)
                times = {name: [] for name in paths}
                for _ in range(options.rounds):
                    for name, path in paths.items():
                        times[name].append(ns_per_packet(options.headrace, path, folder, options.seconds))
            of = {name: statistics.median(runs) for name, runs in times.items()}
            print(f"{f'{count} {kind}':<16}{of['IPFilter'] - of['none']:>16.1f}{of['FlowClassifier'] - of['none']:>16.1f}", flush=True)


main()
