#!/usr/bin/env python3
"""Measures the standard IP router and writes one JSON file.

usage: bench/pipeline/router.py [--headrace build/headrace] [--seconds S] [--repeat N] [--table280k FILE] [--out FILE]

Every point is the best of N runs of `headrace bench`, each run in turn with a source connected to a sink, so that the ratio
compares figures of the same minutes. FILE is a route table such as ../shared/peers/gen_tables.py makes. Two workers are
measured when there are two CPUs. Run it on an otherwise idle machine; the result records machine, commit and command.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> int:
    args = argparse.ArgumentParser(description="Measures the standard IP router.")
    args.add_argument("--headrace", default=os.path.join(ROOT, "build", "headrace"))
    args.add_argument("--seconds", default="2")
    args.add_argument("--repeat", default="5")
    args.add_argument("--table280k")
    args.add_argument("--out")
    options = args.parse_args()
    conf = "conf/ipv4-router.click"
    base = ["--seconds", options.seconds, "--repeat", options.repeat, "--json", "--ratio"]
    cpus = len(os.sched_getaffinity(0))

    points = [("64 bytes, uniform, real table", ["--size", "64", "--profile"], [])]
    if options.table280k:
        points.append(("64 bytes, uniform, 282,797 routes", ["--size", "64"], [f"ROUTES={os.path.abspath(options.table280k)}"]))
    points += [
        ("64 bytes, zipf", ["--size", "64", "--traffic", "zipf"], []),
        ("imix", ["--traffic", "imix"], []),
        ("1514 bytes, uniform", ["--size", "1514"], []),
    ]
    if cpus >= 2:
        points.append(("64 bytes, uniform, 2 workers", ["--size", "64", "--workers", "2"], []))

    results = []
    for name, flags, variables in points:
        command = [options.headrace, "bench", conf, *flags, *base, *variables]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode != 0:
            print(run.stderr, file=sys.stderr)
            return 1
        point = json.loads(run.stdout)
        shown = [os.path.relpath(c, ROOT) if c.startswith(ROOT) else c for c in command]
        results.append({"point": name, "command": " ".join(shown), **point})
        print(f"{name:<40} {point['mpps']:7.2f} Mpps  {point['cycles_per_packet']:6.1f} cycles/packet  "
              f"source to sink {point['source_to_sink_mpps']:7.2f}  ratio {point['ratio']:.3f}", flush=True)
    if cpus >= 2:
        one, two = results[0]["mpps"], results[-1]["mpps"]
        print(f"two workers: {two / one:.2f} times one")
    if options.out:
        with open(options.out, "w") as f:
            json.dump({"date": datetime.date.today().isoformat(), "points": results}, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
