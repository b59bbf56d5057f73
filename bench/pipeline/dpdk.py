#!/usr/bin/env python3
"""Measures forwarding between two DPDK ports beside dpdk-testpmd on the same virtual devices.

usage: bench/pipeline/dpdk.py [--headrace build/headrace] [--seconds S] [--repeat N] [--out FILE]

null   frames that net_null makes and swallows: the cost of moving packets between ports, on one core
memif  frames through shared memory from another process and back to it; that process, which makes and takes them, has a
       core of its own and is the same for both, so the figure is the less of what the two can do

Both forward as they come (testpmd's io mode), in bursts of 64, on CPU 1, in turn; a point is the best of N runs. Needs two
CPUs and dpdk-testpmd. Run it on an otherwise idle machine.
"""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONF = os.path.join(ROOT, "conf", "dpdk-forward.click")
BURST = 64

PEER = """
TrafficSource(uniform, LENGTH 64, BURST 64)
    -> to :: ToDPDKDevice("net_memif0,role=server,id=0,socket=%s,socket-abstract=no", BLOCKING false);
from :: FromDPDKDevice("net_memif1,role=server,id=1,socket=%s,socket-abstract=no", BURST 64) -> sink :: TrafficSink;
"""


def number(text, pattern):
    found = re.search(pattern, text, re.M)
    if not found:
        raise RuntimeError(f"no '{pattern}' in\n{text}")
    return int(found[1].replace(",", ""))


def ours(options, ports):
    """Packets that headrace sends by the second port in a second, and the seconds it ran."""
    done = subprocess.run(["taskset", "-c", "1", options.headrace, "run", CONF, f"A={ports[0]}", f"B={ports[1]}",
                           f"BURST={BURST}", "--workers", "1", "--quiet", "--duration", str(options.seconds)],
                          capture_output=True, text=True, check=True)
    seconds = float(re.search(r"^ran ([\d.]+) s", done.stdout, re.M)[1])
    return [number(done.stdout, rf"^out {port} +([\d,]+)") / seconds for port in "ab"]


def theirs(options, ports):
    """The same of testpmd, which counts from `start` to `stop`. Port 0 sends what port 1 received."""
    command = ["dpdk-testpmd", "-l", "0,1", "--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"]
    for port in ports:
        command += ["--vdev", port]
    command += ["--", "-i", "--forward-mode=io", f"--burst={BURST}", "--total-num-mbufs=16384"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # testpmd is ready, and memif connected, long before.
    time.sleep(2)
    process.stdin.write("start\n")
    process.stdin.flush()
    begin = time.monotonic()
    time.sleep(options.seconds)
    process.stdin.write("stop\n")
    process.stdin.flush()
    seconds = time.monotonic() - begin
    text, _ = process.communicate("quit\n", timeout=60)
    sent = [number(text.split(f"Forward statistics for port {port}")[1], r"TX-packets: (\d+)") for port in (0, 1)]
    return [n / seconds for n in sent]


def null_point(options, run):
    return sum(run(options, ["net_null0,size=64", "net_null1,size=64"]))


def memif_point(options, run):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memif.sock")
        conf = os.path.join(folder, "peer.click")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(PEER % (path, path))
        peer = subprocess.Popen(["taskset", "-c", "0", options.headrace, "run", conf, "--workers", "1", "--quiet"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2)
            ports = [f"net_memif{i},role=client,id={i},socket={path},socket-abstract=no" for i in (0, 1)]
            return run(options, ports)[1]
        finally:
            peer.terminate()
            peer.wait(timeout=30)


def main() -> int:
    args = argparse.ArgumentParser(description="Measures forwarding between DPDK ports beside dpdk-testpmd.")
    args.add_argument("--headrace", default=os.path.join(ROOT, "build", "headrace"))
    args.add_argument("--seconds", type=float, default=3)
    args.add_argument("--repeat", type=int, default=5)
    args.add_argument("--out")
    options = args.parse_args()
    version = subprocess.run([options.headrace, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    results = []
    for name, point in (("null", null_point), ("memif", memif_point)):
        runs = [(point(options, ours), point(options, theirs)) for _ in range(options.repeat)]
        headrace, testpmd = (max(r[i] for r in runs) * 1e-6 for i in (0, 1))
        ratio = headrace / testpmd
        print(f"{name:<6} headrace {headrace:6.2f} Mpps  testpmd {testpmd:6.2f} Mpps  ratio {ratio:.3f}", flush=True)
        results.append({"point": name, "headrace_mpps": headrace, "testpmd_mpps": testpmd, "ratio": ratio,
                        "runs_mpps": [[a * 1e-6, b * 1e-6] for a, b in runs]})
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            json.dump({"date": datetime.date.today().isoformat(), "version": version,
                       "command": " ".join(["bench/pipeline/dpdk.py", *sys.argv[1:]]), "machine": os.uname().release,
                       "cpus": os.cpu_count(), "frame_bytes": 64, "burst": BURST, "points": results}, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
