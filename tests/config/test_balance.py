"""`headrace balance`: traces, the closed loop, simulated machines."""

import json
import lzma
import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest
from test_compile import needs_compiler
from test_control import Client

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BINARY = os.environ.get("HEADRACE", str(ROOT / "build" / "headrace"))
MACHINE = str(ROOT / "bench" / "machines" / "two-sockets.json")


def run(*arguments, text=""):
    return subprocess.run([BINARY, "balance", *arguments], input=text, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def trace():
    done = run("--simulate", MACHINE, "--seconds", "0.1", "--trace")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 41
    return done.stdout


def test_a_trace_replays(trace, tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text(trace)
    done = run("--replay", str(file))
    assert (done.returncode, done.stdout) == (0, "20 decisions are the same\n")


@pytest.mark.parametrize("name", ["h100-ipv4-4-workers", "h100-matcher-15-workers"])
def test_traces_of_a_machine_with_a_gpu_replay(name):
    """Recorded by `--balance-trace`. Where Model decides otherwise on purpose, its answers to the same samples replace
    them (docs/balancing.md shows how)."""
    text = lzma.open(ROOT / "tests" / "data" / "balance" / f"{name}.jsonl.xz", "rt").read()
    done = run("--replay", "-", text=text)
    assert done.returncode == 0, done.stderr
    decisions = sum(line.startswith('{"decision"') for line in text.splitlines())
    assert done.stdout == f"{decisions} decisions are the same\n"


def test_the_first_difference_is_named(trace):
    lines = trace.splitlines()
    lines[4] = lines[4].replace('"places":16', '"places":15', 1)
    done = run("--replay", "-", text="\n".join(lines))
    assert done.returncode == 1 and "line 5: differs from byte" in done.stderr


def test_samples_are_answered_one_by_one(trace):
    lines = trace.splitlines()
    with subprocess.Popen([BINARY, "balance"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(lines[0] + "\n")
        for sample, decision in zip(lines[1::2], lines[2::2]):
            process.stdin.write(sample + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == decision + "\n"
        process.stdin.close()
        assert process.wait(10) == 0


def test_simulation_as_json():
    done = run("--simulate", MACHINE, "--balancer", "Fixed=0.5", "--json", "--seconds", "0.3")
    outcome = json.loads(done.stdout)
    assert outcome["balancer"] == "Fixed=0.5" and outcome["phases"][0]["share"] == pytest.approx(0.5, abs=0.01)


def test_seeds_are_noises_of_one_machine():
    done = run("--simulate", MACHINE, "--json", "--seconds", "0.3", "--seeds", "3-5")
    outcome = json.loads(done.stdout)
    assert [phase["seed"] for phase in outcome["phases"]] == [3, 4, 5]
    assert len({phase["mpps"] for phase in outcome["phases"]}) == 3
    assert outcome["score"]["phases"] == 3
    assert outcome["score"]["of_optimum_98"] == sum(phase["of_optimum"] >= 0.98 for phase in outcome["phases"])
    alone = json.loads(run("--simulate", MACHINE, "--json", "--seconds", "0.3", "--seeds", "4").stdout)
    assert alone["phases"] == outcome["phases"][1:2]
    text = run("--simulate", MACHINE, "--seconds", "0.3", "--seeds", "3-5").stdout.splitlines()
    assert [line.split()[0] for line in text[2:5]] == ["3", "4", "5"]
    assert text[5].startswith(f'of 3 phases, {outcome["score"]["of_optimum_98"]} reach 0.98 of the optimum')


@pytest.mark.parametrize("arguments, text, message", [
    (("--simulate", MACHINE, "--seeds", "5-3"), "", "--seeds: expected a number or two as in 1-100, found '5-3'"),
    (("--simulate", MACHINE, "--seeds", "1,2"), "", "--seeds: expected a number or two as in 1-100, found '1,2'"),
    (("--simulate", MACHINE, "--seeds", "1-2", "--trace"), "", "--seeds: a trace is of one seed"),
    ((), "", "<stdin>: expected a trace, found nothing"),
    ((), "{", "<stdin>: line 1: expected a JSON object"),
    (("--balancer", "Modle"), '{"setup":{"workers":1},"balancer":"Model"}', "--balancer: there is no balancer 'Modle'; there are"),
    ((), '{"setup":{"workers":1},"balancer":"Mine"}',
     "the balancer of <stdin>: there is no balancer 'Mine'; there are CPUOnly"),
    (("--replay", "/none"), "", "/none: cannot be read"),
    (("--simulate", "/none"), "", "/none: cannot be read"),
])
def test_mistakes(arguments, text, message):
    done = run(*arguments, text=text)
    assert done.returncode == 1 and message in done.stderr


@pytest.mark.parametrize("configuration", [
    "TrafficSource(LIMIT 1) -> Strip(14) -> CheckIPHeader -> TrafficSink;",  # a chain, but no device
    "InfiniteSource(LIMIT 1) -> Discard;",
])
def test_an_unknown_balancer_is_an_error_without_a_device(configuration):
    done = subprocess.run([BINARY, "run", "-e", configuration, "--balancer", "Nope", "--duration", "1"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "--balancer: there is no balancer 'Nope'; there are CPUOnly, DeviceOnly, Fixed, HillClimb, Model" in done.stderr


def test_a_trace_of_a_router_without_a_balancer_is_named(tmp_path):
    file = tmp_path / "trace.jsonl"
    conf = "TrafficSource(LIMIT 100) -> Strip(14) -> CheckIPHeader -> TrafficSink;"
    done = subprocess.run([BINARY, "run", "-e", conf, "--mode", "cpu", "--balance-trace", str(file), "--duration", "0.2"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--balance-trace: nothing is written, for packets are processed on the CPU only" in done.stderr
    assert not file.exists()


@pytest.mark.parametrize("balancer, states", [("Model", True), ("CPUOnly", False)])
def test_the_live_line_has_the_optimum_of_a_model(balancer, states):
    conf = "TrafficSource -> Strip(14) -> CheckIPHeader -> TrafficSink;"
    done = subprocess.run([BINARY, "run", "-e", conf, "--workers", "1", "--backend", "reference", "--balancer", balancer,
                           "--duration", "1.5", "--interval", "0.5"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " s  in " in line]
    assert bool(re.search(r"drops \S+( \S+)?  optimum [0-9.]+ Mpps$", lines[-1])) == states


def test_a_full_disk_ends_the_trace_and_not_the_router(tmp_path):
    file = tmp_path / "trace.jsonl"

    def limit_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    conf = "TrafficSource -> Strip(14) -> CheckIPHeader -> TrafficSink;"
    done = subprocess.run([BINARY, "run", "-e", conf, "--workers", "1", "--backend", "reference", "--compile", "off",
                           "--balance-trace", str(file), "--duration", "3"],
                          capture_output=True, text=True, timeout=60, preexec_fn=limit_files, restore_signals=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"--balance-trace: {file}: no more can be written (File too large), so the trace ends") == 1
    assert file.stat().st_size == 20_000


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path):
    conf = "TrafficSource -> Strip(14) -> CheckIPHeader -> TrafficSink;"
    done = subprocess.run([BINARY, "run", "-e", conf, "--workers", "1", "--backend", "reference", "--balance-trace",
                           str(tmp_path / "no" / "trace.jsonl"), "--duration", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "no/trace.jsonl: cannot be written (No such file or directory)" in done.stderr


CHAIN = "Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:1:1) -> TrafficSink;"


def record(headrace, configuration, *options):
    """The lines of a trace, and what its replay prints."""
    (headrace.folder / "router.click").write_text(configuration)
    headrace("run", "-q", "-R", "--workers", "1", "--backend", "reference", "--balance-trace", "run.jsonl", *options,
             "router.click")
    lines = [json.loads(line) for line in (headrace.folder / "run.jsonl").read_text().splitlines()]
    return lines, headrace("balance", "--replay", "run.jsonl").stdout


def test_a_trace_goes_on_after_a_hot_swap(headrace):
    text = "TrafficSource -> " + CHAIN + "Script(TYPE DRIVER, wait 0.5, {});"
    (headrace.folder / "second.click").write_text(text.format("write hotconfig $(cat third.click), wait 100"))
    (headrace.folder / "third.click").write_text(text.format("stop"))
    (headrace.folder / "run.jsonl").write_text("of another run\n")
    lines, replayed = record(headrace, text.format("write hotconfig $(cat second.click), wait 100"))
    heads = [i for i, line in enumerate(lines) if "setup" in line]
    assert len(heads) == 3 and heads[0] == 0
    assert "learnt" not in lines[0]
    for head in heads[1:]:
        assert json.loads(lines[head]["learnt"])[0]["cpu"] > 0
    decisions = [sum("decision" in line for line in lines[begin:end]) for begin, end in zip(heads, heads[1:] + [None])]
    assert min(decisions) > 0
    assert replayed == f"{sum(decisions)} decisions are the same\n"


def test_a_trace_has_all_balancers(headrace):
    lines, replayed = record(headrace, f"TrafficSource -> Offload(BALANCER Fixed=0.5) -> {CHAIN}"
                             f"TrafficSource -> {CHAIN} TrafficSource -> Offload(BALANCER CPUOnly) -> {CHAIN}",
                             "--duration", "0.5")
    heads = [line for line in lines if "setup" in line]
    names = [head["balancer"] for head in heads]
    assert sorted(names) == ["CPUOnly", "Fixed=0.5", "Model"]
    assert [head.get("beside", False) for head in heads] == [False, True, True]
    # Each chain has one of them.
    assert [sum(chains) for chains in zip(*([c["balanced"] for c in head["setup"]["chains"]] for head in heads))] == [1] * 3
    samples = [i for i, line in enumerate(lines) if "sample" in line]
    assert samples
    for i in samples:
        assert [line["balancer"] for line in lines[i + 1:i + 4] if "decision" in line] == names
    assert replayed == f"{3 * len(samples)} decisions are the same\n"


def test_samples_are_answered_by_all_balancers():
    setup = '{"setup":{"chains":[{"name":"a"},{"name":"b"}],"devices":[{"name":"gpu"}]},"balancer":"Fixed=%s"%s}\n'
    lines = run(text=setup % ("0.25", "") + setup % ("0.5", ',"beside":true') + '{"sample":{}}\n').stdout.splitlines()
    decisions = [json.loads(line) for line in lines]
    assert [d["balancer"] for d in decisions] == ["Fixed=0.25", "Fixed=0.5"]
    assert [d["decision"]["workers"][0][0]["shares"] for d in decisions] == [[0.25], [0.5]]


@pytest.mark.parametrize("option, element, bounds", [
    ([], "", [0, 0]), (["--p99", "50us"], "", [50, 50]), (["--p99", "0.2ms"], "P99 70us", [70, 200]), ([], "P99 1ms", [1000, 0])])
def test_bounds_come_to_the_balancer(headrace, option, element, bounds):
    """That of the command line for all chains, that of Offload for the chain behind it."""
    lines, _ = record(headrace, f"TrafficSource -> Offload({element}) -> {CHAIN} TrafficSource -> {CHAIN}", "--duration", "0.2", *option)
    assert [chain["p99_us"] for chain in lines[0]["setup"]["chains"]] == bounds


@pytest.mark.parametrize("wrong", ["fast", "-5us"])
def test_bounds_that_are_none(headrace, wrong):
    (headrace.folder / "router.click").write_text(f"TrafficSource -> Offload(P99 {wrong}) -> {CHAIN}")
    assert "router.click:1: " in headrace("check", "router.click", status=1).stderr
    (headrace.folder / "router.click").write_text(f"TrafficSource -> {CHAIN}")
    assert "--p99" in headrace("run", "--p99", wrong, "router.click", status=2).stderr


OWN = """
#include <cmath>
#include <headrace/balancer.hh>
#include <stdexcept>

class %(name)s : public headrace::Balancer {
 public:
  void start() override {
    if (%(start)d) throw std::runtime_error("my start");
  }
  headrace::BalanceDecision step(const headrace::BalanceSample&) override {
    if (%(step)d) throw std::runtime_error("my step");
    headrace::BalanceDecision decision = everything_on_cpu();
    decision.workers.at(0).at(0).shares.at(setup().first_device.at(0)) = %(share)s;
    return decision;
  }
};
HEADRACE_BALANCER(%(name)s, "a test's")
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Balancers of one's own, in packages of their names."""
    folder = tmp_path_factory.mktemp("packages")
    for name, start, step, share in (("Half", 0, 0, "0.5"), ("Nan", 0, 0, "NAN"), ("NoStart", 1, 0, "0"), ("NoStep", 0, 1, "0"),
                                     ("Fixed", 0, 0, "0")):
        source = folder / f"{name}.cc"
        source.write_text(OWN % {"name": name, "start": start, "step": step, "share": share})
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-I", ROOT / "include", "-o", folder / f"{name.lower()}.so", source],
                       check=True, timeout=120)
    return folder


@needs_compiler
def test_mistakes_of_a_balancer_of_ones_own(own):
    def simulated(name):
        return run("-C", str(own), "--package", name.lower(), "--balancer", name, "--simulate", MACHINE, "--seconds", "0.1")

    done = simulated("Half")
    assert (done.returncode, done.stderr) == (0, "")
    done = simulated("Nan")
    assert done.returncode == 0
    assert done.stderr == "headrace balance: Nan: corrected: expected a share that is a number (20 times, first at worker 0, chain 0)\n"
    done = simulated("NoStart")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr == "headrace balance: NoStart: start() threw: my start\n"
    done = simulated("NoStep")
    assert done.returncode == 0
    assert done.stderr == "headrace balance: NoStep: corrected: step() threw: my step (20 times, first at decision 1)\n"
    done = run("-C", str(own), "--package", "fixed", "--list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "package 'fixed': there is a balancer 'Fixed' already: its own needs another name\n"


@needs_compiler
def test_a_package_that_was_refused_is_refused_again(own, headrace, tmp_path):
    process = headrace.start("run", "-q", "-R", "-C", own, "-u", tmp_path / "s", "-e", "TrafficSource(RATE 0.01) -> Discard")
    client = Client(str(tmp_path / "s"))
    for _ in range(2):
        code, lines, _ = client.write_text("hotconfig", "require(fixed); TrafficSource -> Discard")
        assert code == 520 and any("there is a balancer 'Fixed' already" in line for line in lines), (code, lines)
    process.terminate()
    process.communicate()


@needs_compiler
def test_a_setup_without_first_devices_means_the_first(own):
    text = ('{"setup":{"workers":1,"chains":[{"name":"a"}],"devices":[{"name":"gpu"}]},"balancer":"Half"}\n'
            '{"sample":{"at_ns":10000000}}\n')
    done = run("-C", str(own), "--package", "half", text=text)
    assert done.returncode == 0 and '"shares":[0.5]' in done.stdout, done.stderr


@needs_compiler
def test_the_live_line_names_mistakes_once(own):
    conf = "require(nan); TrafficSource -> Strip(14) -> CheckIPHeader -> DecIPTTL -> TrafficSink"
    done = subprocess.run([BINARY, "run", "-C", own, "-e", conf, "--workers", "1", "--backend", "reference", "--mode", "auto",
                           "--balancer", "Nan", "--interval", "0.2", "--duration", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("balance: Nan: expected a share that is a number, first at worker 0, chain 0\n") == 1, done.stdout
