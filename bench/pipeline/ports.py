#!/usr/bin/env python3
"""Measures forwarding between two Linux interfaces: headrace by AF_XDP and by packet sockets, beside the kernel's own
forwarding and dpdk-testpmd on the same veth pairs, in turn.

    bench/pipeline/ports.py [--seconds 3] [--repeat 3] [--size 64] [--overload] [--out FILE]

In network namespaces of its own: a generator that is also the sink (one headrace process, on CPU 0), and a router with two veth
interfaces (on CPU 1). First as fast as the generator can; then, for headrace, at 10, 50 and 90 % of that rate, open loop: the time
that a frame was due is in its payload, and the sink has a histogram of what has gone by since. What the kernel does for a veth pair
it does on the CPU of the sender, so a part of every router's work is done on CPU 0, and the most of the kernel's own. Needs root.

--overload asks something else: what a router still forwards that gets ten times of what it can. Its way is made long by elements
that compute checksums again and again, so that the generator can send that much.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "system"))
import netlab  # noqa: E402

GENERATOR = """
TrafficSource(uniform, LENGTH {size}, FLOWS 1024, RATE {rate}, BURST 32, STAMP true) -> Strip(14)
  -> EtherEncap(0x0800, {source}, {destination}) -> q :: Queue(512) -> ToDevice(out, METHOD af_packet, BURST 32);
FromDevice(in, METHOD af_packet, PROMISC true, BURST 64) -> k :: TrafficSink(STAMP true);
"""
ROUTER = """
elementclass Way {{ $in, $out, $source, $destination |
  FromDevice($in, METHOD {method}, SNIFFER false, BURST 64) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
    -> StaticIPLookup(0.0.0.0/0 0) -> {work}DecIPTTL -> EtherEncap(0x0800, $source, $destination)
    -> Queue(1024) -> ToDevice($out, METHOD {method}, BURST 32);
}}
Way(left, right, {source}, {destination});
"""


class Bench:
    def __init__(self, lab, options):
        self.options = options
        self.generator, self.router = lab.host("generator"), lab.host("router")
        lab.cable(self.generator, "out", self.router, "left")
        lab.cable(self.generator, "in", self.router, "right")
        self.macs = {n: self.generator.mac(n) for n in ("out", "in")} | {n: self.router.mac(n) for n in ("left", "right")}

    def generate(self, rate=0):
        """(packets a second that came back, quantiles of microseconds)"""
        text = GENERATOR.format(size=self.options.size, rate=rate, source=self.macs["out"], destination=self.macs["left"])
        seconds = self.options.seconds
        process = self.generator.start("taskset", "-c", "0", self.options.headrace, "run", "-", "-w", "1", "--no-pin", "-q",
                                       "-d", seconds + 1, "-r", "k.latency", stdin=subprocess.PIPE)
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        # What the interface counts: at full rate the sink itself cannot take all that comes back.
        time.sleep(0.7)
        begin, before = time.monotonic(), self.returned()
        time.sleep(seconds - 0.4)
        rate = (self.returned() - before) / (time.monotonic() - begin)
        out, err = process.communicate(timeout=60)
        if process.returncode:
            raise SystemExit(f"the generator failed:\n{out}{err}")
        found = re.search(r"^k\.latency: p50 ([\d.]+) us, p99 ([\d.]+), p99.9 ([\d.]+), max ([\d.]+)", out, re.M)
        quantiles = dict(zip(("p50", "p99", "p999", "max"), map(float, found.groups()))) if found else {}
        return rate, quantiles

    def returned(self):
        return int(self.generator.run("cat", "/sys/class/net/in/statistics/rx_packets").stdout)

    def headrace(self, method, work=0):
        text = ROUTER.format(method=method, work="SetIPChecksum -> " * work, source=self.macs["right"], destination=self.macs["in"])
        process = self.router.start("taskset", "-c", "1", self.options.headrace, "run", "-", "-w", "1", "--no-pin", "-q",
                                    stdin=subprocess.PIPE)
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        return process

    def kernel(self):
        self.router.address("left", "198.18.1.254/24")
        self.router.address("right", "10.0.0.1/24")
        self.router.ip("neigh", "replace", "10.0.0.2", "lladdr", self.macs["in"], "dev", "right")
        self.router.ip("route", "replace", "default", "via", "10.0.0.2")
        self.router.sysctl("net.ipv4.ip_forward", 1)

    def kernel_off(self):
        self.router.sysctl("net.ipv4.ip_forward", 0)
        for interface in ("left", "right"):
            self.router.ip("addr", "flush", "dev", interface)

    def testpmd(self):
        devices = [word for i, name in enumerate(("left", "right"))
                   for word in ("--vdev", f"net_af_packet{i},iface={name}")]
        return self.router.start("dpdk-testpmd", "--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                                 "-l", "0,1", *devices, "--", "--forward-mode=io", "--auto-start", "--no-lsc-interrupt",
                                 "--total-num-mbufs=16384", "--stats-period=60")

    def stop(self, process):
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def write(options, results):
    if not options.out:
        return
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    pathlib.Path(options.out).write_text(json.dumps({
        "date": datetime.datetime.now().isoformat(timespec="seconds"), "commit": commit.stdout.strip(),
        "command": " ".join(sys.argv), "machine": f"{machine}, {os.cpu_count()} CPUs, Linux {os.uname().release}",
        "size": options.size} | results, indent=1) + "\n")


def overload(bench):
    """Packets a second that come out, by offered ones."""
    result = {}
    for method in "af_xdp", "af_packet":
        router = bench.headrace(method, work=1500)
        time.sleep(2)
        capacity = max(bench.generate(rate)[0] for rate in (15e3, 20e3, 25e3, 30e3, 40e3, 60e3))
        points = {times: bench.generate(times * capacity)[0] for times in (1, 2, 5, 10)}
        bench.stop(router)
        best = max(capacity, *points.values())
        result[method] = {"capacity_pps": best, "goodput_by_times": points}
        for times, rate in points.items():
            print(f"headrace {method:<10} offered {times:>2} times {capacity / 1000:.1f} thousand a second: "
                  f"{rate / 1000:.1f} out, {rate / best:.1%} of its most", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headrace", default=str(ROOT / "build" / "headrace"))
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--overload", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("needs root: it makes network namespaces")

    rates, latency = {}, {}
    with netlab.Lab() as lab:
        bench = Bench(lab, options)
        if options.overload:
            write(options, {"overload": overload(bench)})
            return
        ways = ["headrace af_xdp", "headrace af_packet", "kernel"]
        if shutil.which("dpdk-testpmd"):
            ways.append("testpmd af_packet")
        for _ in range(options.repeat):
            for way in ways:
                process = None
                if way == "kernel":
                    bench.kernel()
                elif way.startswith("testpmd"):
                    process = bench.testpmd()
                else:
                    process = bench.headrace(way.split()[1])
                time.sleep(2)
                rate, _ = bench.generate()
                rates.setdefault(way, []).append(rate)
                print(f"{way:<22}{rate / 1000:>10.0f} thousand packets a second", flush=True)
                if way != "kernel":
                    bench.stop(process)
                else:
                    bench.kernel_off()
        for way in ways[:3]:
            process = bench.kernel() if way == "kernel" else bench.headrace(way.split()[1])
            time.sleep(2)
            for load in 0.1, 0.5, 0.9:
                rate, quantiles = bench.generate(load * statistics.median(rates[way]))
                latency.setdefault(way, {})[str(load)] = {"pps": rate, **quantiles}
                print(f"{way:<22}load {load:.0%}: {rate / 1000:.0f} thousand a second, us {quantiles}", flush=True)
            if process:
                bench.stop(process)
            else:
                bench.kernel_off()
    median = {way: statistics.median(all_of) for way, all_of in rates.items()}
    for way, rate in median.items():
        print(f"{way:<22}median {rate / 1000:>8.0f} thousand a second, {rate / median['kernel']:.2f} of the kernel's")
    write(options, {"packets_per_second": rates, "latency_us_by_load": latency})


if __name__ == "__main__":
    main()
