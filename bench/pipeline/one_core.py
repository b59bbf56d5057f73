#!/usr/bin/env python3
"""Measures what one core forwards from memory to memory, beside an older build and a loop by hand, in turn.

    bench/pipeline/one_core.py [--headrace build/headrace] [--before BINARY] [--by-hand COMMAND]
                               [--repeat 7] [--seconds 0.4] [--cpu 1] [--only CASE]... [--out FILE]

CASE is one of: router, router-64 (in batches of 64), router-off and router-off-64 (without compiled chains), ipv6, nat, nat-few (16,384
flows), ids, ids-1024, alone (one packet a batch), no-op. BINARY, an older `headrace`, measures the same but router-off and
router-off-64; cases of which it does not know an option are left out. COMMAND is a program that forwards like conf/ipv4-router.click and
prints "N Mpps"; {batch} and {routes}, a file of lines "PREFIX HOP", are replaced. Printed are medians in Mpps, and the medians of the
ratios of neighboring runs. Run it on an otherwise idle machine.
"""
import argparse
import datetime
import json
import lzma
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROUTER = "conf/ipv4-router.click"
IDS = ["conf/ids-router.click", "TRAFFIC=uniform", "ALERTS=/dev/null"]
CASES = {
    "router": [ROUTER],
    "router-64": [ROUTER, "--batch", "64"],
    "router-off": [ROUTER, "--compile", "off"],
    "router-off-64": [ROUTER, "--compile", "off", "--batch", "64"],
    "ipv6": ["conf/ipv6-forward.click"],
    "nat": ["bench/pipeline/nat.click"],
    "nat-few": ["bench/pipeline/nat.click", "FLOWS=16384"],
    "ids": [*IDS, "LENGTH=64"],
    "ids-1024": [*IDS, "LENGTH=1024", "PAYLOAD=random"],
    "alone": [ROUTER, "--batch", "1"],
    "no-op": ["bench/pipeline/no-op.click"],
}


def pinned(cpu, command):
    return subprocess.run([shutil.which("taskset"), "-c", cpu, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def bench(binary, case, options):
    """Mpps and what else `headrace bench` says; None if an older binary does not know an option."""
    done = pinned(options.cpu, [binary, "bench", *CASES[case], "-w", "1", "-s", options.seconds, "--json"])
    if done.returncode != 0 or not done.stdout.startswith("{"):
        return None, done.stderr
    # What elements print comes behind it.
    said = json.JSONDecoder().raw_decode(done.stdout)[0]
    return round(said["mpps"], 2), said


def by_hand(case, routes, options):
    # What Headrace takes without --batch.
    cache = subprocess.run(["getconf", "LEVEL1_DCACHE_SIZE"], capture_output=True, text=True, check=False).stdout.strip()
    usual = 64 if cache.isdigit() and int(cache) < 48 << 10 else 128
    command = options.by_hand.format(batch=64 if case.endswith("-64") else usual, routes=routes).split()
    done = pinned(options.cpu, command)
    rates = re.findall(r"([\d.]+) Mpps", done.stdout)
    if not rates:
        sys.exit(f"{command[0]}: expected 'N Mpps'\n{done.stdout}{done.stderr}")
    return float(rates[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headrace", default=str(ROOT / "build" / "headrace"))
    parser.add_argument("--before")
    parser.add_argument("--by-hand")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seconds", default="0.4")
    parser.add_argument("--cpu", default="1")
    parser.add_argument("--only", action="append", choices=list(CASES))
    parser.add_argument("--out")
    options = parser.parse_args()
    options.headrace = str(pathlib.Path(options.headrace).resolve())
    if options.before:
        options.before = str(pathlib.Path(options.before).resolve())
    result = {"date": datetime.date.today().isoformat(), "command": " ".join(["bench/pipeline/one_core.py", *sys.argv[1:]])}
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        routes = pathlib.Path(folder) / "routes"
        if options.by_hand:
            prefixes = lzma.open(ROOT / "conf" / "data" / "bgp-full-ipv4.txt.xz", "rt").read().split()
            routes.write_text("".join(f"{prefix} {1 + i % 4}\n" for i, prefix in enumerate(prefixes)))
        for case in options.only or CASES:
            rates = {"now": []}
            if options.before and "-off" not in case:
                rates["before"] = []
            if options.by_hand and case.startswith("router"):
                rates["by hand"] = []
            for turn in range(options.repeat):
                for name in list(rates) if turn % 2 == 0 else reversed(list(rates)):
                    if name == "by hand":
                        rates[name].append(by_hand(case, routes, options))
                        continue
                    mpps, said = bench(options.headrace if name == "now" else options.before, case, options)
                    if mpps is None and name == "now":
                        sys.exit(f"{case}: {said}")
                    if mpps is None:
                        print(f"{case}, {name}: {said.strip()}", file=sys.stderr)
                        continue
                    rates[name].append(mpps)
                    if name == "before":
                        result["before"] = said.get("commit")
                    else:
                        result.update({field: said[field] for field in ("commit", "build", "cpu_chains", "machine") if field in said})
            rates = {name: those for name, those in rates.items() if those}
            line = f"{case:<14}" + "".join(f"{name} {statistics.median(those):>6.1f} Mpps   " for name, those in rates.items())
            cases[case] = {"Mpps": rates}
            for other in rates:
                if other != "now" and len(rates[other]) == len(rates["now"]):
                    ratio = round(statistics.median(n / o for n, o in zip(rates["now"], rates[other])), 3)
                    cases[case][f"to {other}"] = ratio
                    line += f"to {other} {ratio:.2f}   "
            print(line, flush=True)
    result["cases"] = cases
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
