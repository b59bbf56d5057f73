#!/usr/bin/env python3
"""Measures what device ports add to a packet, over packets that a TrafficSource writes and a TrafficSink takes in the same memory.

    bench/pipeline/port_cost.py [--headrace NAME=build/headrace]... [--repeat 5] [--seconds 1] [--burst 64] [--only WAY]...
                                [--out FILE]

memory   source -> sink
ring     source -> ToDPDKDevice(net_ring0), FromDPDKDevice(net_ring0) -> sink: the ports pass buffers on, so what is added is
         Headrace's, and a ring's
null     source -> ToDPDKDevice(net_null0), FromDPDKDevice(net_null0) -> sink: the port frees what it gets and allocates what it
         gives, one by one. Packets are counted once, not at both ends
router, router-ring
         conf/ipv4-router.click as it is, and with the ring behind its source
af_xdp   source -> Queue -> ToDevice, FromDevice -> sink by AF_XDP over a veth pair, in a network namespace. Most of it is the
         kernel's, which copies frames from socket to socket; samples (perf) tell it from the program's. Needs root and perf

One worker does all of it, on CPU 1. Nanoseconds are of the CPU time of that thread, so that other work disturbs it little. Several
binaries are measured in turn.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "system"))
import netlab  # noqa: E402

SOURCE = "TrafficSource(uniform, LENGTH 64, BURST {burst}) "
TEXTS = {
    "memory": SOURCE + "-> k :: TrafficSink;",
    "ring": SOURCE + "-> ToDPDKDevice(net_ring0, BLOCKING false); FromDPDKDevice(net_ring0, BURST {burst}) -> k :: TrafficSink;",
    "null": SOURCE + "-> ToDPDKDevice(net_null0, BLOCKING false); FromDPDKDevice(net_null0, BURST {burst}) -> k :: TrafficSink;",
    "af_xdp": SOURCE + "-> Queue(512) -> ToDevice(out, METHOD af_xdp, BURST {burst});"
              "FromDevice(in, METHOD af_xdp, SNIFFER false, PROMISC true, BURST {burst}) -> k :: TrafficSink;",
}
# What each way is compared with.
OVER = {"ring": "memory", "null": "memory", "router-ring": "router", "af_xdp": "memory"}
WAYS = ["memory", "ring", "null", "router", "router-ring", "af_xdp"]
SCRIPT = 'Script(TYPE ACTIVE, wait 700ms, print "AT" {counts}, wait {seconds}s, print "AT" {counts}, wait 300ms, stop);'
KERNEL = 1 << 63


def text_of(way, options):
    """The configuration, which prints how many packets arrived, twice."""
    counts = ["k"]
    if way.startswith("router"):
        text = (ROOT / "conf" / "ipv4-router.click").read_text()
        own = re.search(r"TrafficSource\(\$TRAFFIC, LENGTH \$LENGTH\)", text)
        ring = "-> ToDPDKDevice(net_ring0, BLOCKING false); FromDPDKDevice(net_ring0, BURST {burst}) " if way == "router-ring" else ""
        text = text.replace(own[0], (SOURCE + ring).format(burst=options.burst))
        text = text.replace("data/", str(ROOT / "conf" / "data") + "/")
        counts = [f"sink{i}" for i in range(4)]
    else:
        text = TEXTS[way].format(burst=options.burst)
    return text + "\n" + SCRIPT.format(counts=" ".join(f"$({name}.count)" for name in counts), seconds=options.seconds)


def cpu_times(pid):
    """The CPU nanoseconds of each thread of a process."""
    return {task: int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
            for task in os.listdir(f"/proc/{pid}/task")}


def program_share(samples, thread):
    """The part of a thread's samples that lies in the program, not in the kernel."""
    done = subprocess.run(["perf", "script", "-F", "tid,ip", "-i", samples], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in done.stdout.splitlines())
    places = collections.Counter(int(ip, 16) >= KERNEL for tid, ip in pairs if tid == thread)
    return places[False] / places.total()


def measure(binary, way, options, lab_host):
    """Nanoseconds a packet, and those of the program alone where the kernel has a part."""
    command = ["taskset", "-c", "1", binary, "run", "-", "-w", "1", "--no-pin", "-q"]
    if "--compile " in subprocess.run([binary, "run", "--help"], capture_output=True, text=True, check=True).stdout:
        command += ["--compile", "wait"]
    with tempfile.TemporaryDirectory() as folder:
        samples = os.path.join(folder, "samples")
        if way == "af_xdp":
            command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4999", "-o", samples, "--",
                       "ip", "netns", "exec", lab_host.netns, *command]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(text_of(way, options))
        process.stdin.close()
        process.stdin = None
        marks, pid = [], process.pid
        for line in process.stdout:
            if line.startswith("AT "):
                if way == "af_xdp":  # the process that perf has started
                    pid = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
                marks.append((sum(map(int, line.split()[1:])), cpu_times(pid)))
        error = process.stderr.read()
        if process.wait() or len(marks) != 2 or marks[1][0] == marks[0][0]:
            raise SystemExit(f"{binary}, {way}: no rate\n{error}")
        # The worker is the thread that was the busiest in between.
        (first, before), (last, after) = marks
        spent = {task: after[task] - before.get(task, 0) for task in after}
        worker = max(spent, key=spent.get)
        ns = spent[worker] / (last - first)
        return {way: ns} if way != "af_xdp" else {way: ns, "af_xdp, program": ns * program_share(samples, worker)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headrace", action="append", metavar="NAME=PATH")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--burst", type=int, default=64)
    parser.add_argument("--only", action="append", choices=WAYS, metavar="WAY")
    parser.add_argument("--out")
    options = parser.parse_args()
    binaries = dict(word.split("=", 1) for word in options.headrace or [f"now={ROOT / 'build' / 'headrace'}"])
    ways = options.only or WAYS
    if "af_xdp" in ways and (os.geteuid() != 0 or not shutil.which("perf")):
        print("af_xdp is left out: it needs root and perf")
        ways = [way for way in ways if way != "af_xdp"]
    results = {name: collections.defaultdict(list) for name in binaries}
    with netlab.Lab() as lab:
        host = None
        if "af_xdp" in ways:
            host = lab.host("ports")
            lab.cable(host, "out", host, "in")
        for _ in range(options.repeat):
            for way in ways:
                for name, binary in binaries.items():
                    for what, ns in measure(binary, way, options, host).items():
                        results[name][what].append(ns)
                line = "  ".join(f"{name} {results[name][way][-1]:.2f}" for name in binaries)
                print(f"{way:<12} ns a packet: {line}", flush=True)
    median = {name: {what: statistics.median(all_of) for what, all_of in of.items()} for name, of in results.items()}
    for what in results[next(iter(results))]:
        below = OVER.get(what.split(",")[0])
        cells = []
        for name in binaries:
            added = f" (+{median[name][what] - median[name][below]:.2f})" if below in median[name] else ""
            cells.append(f"{name} {median[name][what]:8.2f}{added}")
        print(f"{what:<16} median: {'   '.join(cells)}", flush=True)
    if options.out:
        cpu = pathlib.Path("/proc/cpuinfo").read_text()
        field = lambda name: re.search(rf"^{name}\s*: (.*)$", cpu, re.M)[1]  # noqa: E731
        versions = {name: subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.strip()
                    for name, path in binaries.items()}
        pathlib.Path(options.out).write_text(json.dumps({
            "date": datetime.date.today().isoformat(), "versions": versions,
            "command": " ".join(["bench/pipeline/port_cost.py", *sys.argv[1:]]),
            "machine": f"{field('model name')}, family {field('cpu family')}, model {field('model')}, {os.cpu_count()} CPUs, "
                       f"Linux {os.uname().release}",
            "ns_per_packet": results, "median_ns_per_packet": median}, indent=1) + "\n")


if __name__ == "__main__":
    main()
