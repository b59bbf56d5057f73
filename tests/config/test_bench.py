"""`headrace bench`: sequence numbers, settings compared in one process, and steps of load, traffic and settings."""

import json
import statistics

import pytest

CONF = "source :: TrafficSource(uniform, FLOWS 4096) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Unstrip(14) -> {} TrafficSink;"
WHOLE = CONF.format("")
REFERENCE = ("--backend", "reference", "--workers", "1")


def test_sequences_are_whole(headrace):
    for options in ([], ["--mode", "device", *REFERENCE], ["--traffic", "zipf", "--workers", "2"]):
        answer = json.loads(headrace("bench", "-e", WHOLE, "--sequence", "-s", "0.2", "--json", *options).stdout)
        sequence = answer["sequence"]
        assert sequence.pop("checked") > 1000
        assert sequence == {"lost": 0, "doubled": 0, "reordered": 0}


def test_sequences_show_what_is_dropped(headrace):
    conf = CONF.format("RandomSample(0.9) -> ")
    answer = json.loads(headrace("bench", "-e", conf, "--sequence", "-s", "0.2", "--json").stdout)
    sequence = answer["sequence"]
    assert sequence["lost"] / (sequence["lost"] + sequence["checked"]) == pytest.approx(0.1, abs=0.03)
    assert sequence["doubled"] == sequence["reordered"] == 0
    assert "sequence" not in json.loads(headrace("bench", "-e", WHOLE, "-s", "0.1", "--json").stdout)


def test_elements_that_print_leave_json_whole(headrace):
    conf = 'Script(print "told by a script"); ' + WHOLE
    answer = headrace("bench", "-e", conf, "-s", "0.1", "--json")
    assert json.loads(answer.stdout)["mpps"] > 0
    assert answer.stderr == "told by a script\n"
    assert "told by a script" in headrace("bench", "-e", conf, "-s", "0.1").stdout


def test_frames_of_several_sources_are_not_compared(headrace):
    """They have the same flows, and their frames were due at other times."""
    conf = "TrafficSource -> sink :: TrafficSink; TrafficSource -> sink; TrafficSource -> sink;"
    answer = json.loads(headrace("bench", "-e", conf, "--rate", "0.5", "-s", "0.2", "--json").stdout)
    assert answer["reordered"] == 0 and answer["mpps"] > 0.1


def test_sweep(headrace):
    arguments = ("bench", "-e", WHOLE, "--sweep", "0.5x64,128x2", "-s", "0.1", "--settle", "0.02", *REFERENCE)
    answer = json.loads(headrace(*arguments, "--json", "--sequence", "--rounds", "2").stdout)
    sweep = answer["sweep"]
    points = sweep["points"]
    names = [(p["mode"], p.get("job"), p.get("places")) for p in points]
    assert names == [("cpu", None, None), ("fixed=0.5", 64, 2), ("fixed=0.5", 128, 2), ("device", 64, 2), ("device", 128, 2),
                     ("auto", None, None)]
    for p in points:
        runs = p["mpps"]["runs"]
        assert len(runs) == 2 and min(runs) > 0
        assert p["mpps"]["median"] == pytest.approx(statistics.median(runs))
        assert (p["mpps"]["min"], p["mpps"]["max"]) == (min(runs), max(runs))
    by_name = dict(zip(names, points))
    assert by_name["cpu", None, None]["on_devices"] == 0
    assert 0 < by_name["fixed=0.5", 64, 2]["on_devices"] < 0.8  # what finds no place goes to the CPU
    assert by_name["device", 64, 2]["on_devices"] > 0.9
    best = max(points[:-1], key=lambda p: p["mpps"]["median"])
    assert sweep["best"].startswith(best["mode"])
    assert best["final_mpps"]["median"] == pytest.approx(sweep["best_mpps"])
    assert sweep["auto_to_best"] == pytest.approx(sweep["auto_mpps"] / sweep["best_mpps"])
    assert sweep["auto_to_better_side"] == pytest.approx(sweep["auto_mpps"] / max(sweep["cpu_mpps"], sweep["device_mpps"]))
    assert answer["lost"] == 0 and answer["sequence"]["lost"] == 0
    # What could be reached is no more than both sides together, and no less than the better one.
    assert max(sweep["cpu_mpps"], sweep["device_mpps"]) <= sweep["r_star_mpps"] <= sweep["cpu_mpps"] + sweep["device_mpps"]
    assert sweep["r_star"].startswith(("as ", "the better side, as "))
    assert sweep["auto_to_r_star"] == pytest.approx(sweep["auto_mpps"] / sweep["r_star_mpps"])
    assert sweep["best_to_r_star"] == pytest.approx(sweep["best_mpps"] / sweep["r_star_mpps"])
    assert len(sweep["model_mpps"]["runs"]) == 2 and sweep["model_mpps"]["min"] > 0
    assert sweep["auto_to_model"] == pytest.approx(sweep["auto_mpps"] / sweep["model_mpps"]["median"])
    table = headrace(*arguments, "--rounds", "1").stdout
    assert "fixed=0.5, 2 jobs of 128" in table and "of the better side" in table
    assert "\nR* " in table and " Mpps by the balancer's model: auto " in table


def test_a_sweep_says_what_is_not_measured(headrace):
    arguments = ("bench", "-e", WHOLE, "--sweep", "0x64x2", "-s", "0.1", "--settle", "0.02", "--rounds", "1", *REFERENCE)
    table = headrace(*arguments, "--rate", "0.05").stdout
    assert "\nR* not measured: sources have a rate\n" in table and " Mpps by the balancer's model\n" in table
    still = ("-e", WHOLE.replace("4096", "4096, ACTIVE false"), "--balancer", "CPUOnly")
    sweep = json.loads(headrace("bench", *still, *arguments[3:], "--json").stdout)["sweep"]
    assert sweep["r_star"] == "not measured: nothing passed on the CPU"
    assert sweep["r_star_mpps"] is sweep["model_mpps"] is None
    assert not {"auto_to_r_star", "best_to_r_star", "auto_to_model", "best_to_model"} & set(sweep)
    assert "\nthe balancer states no optimum\n" in headrace("bench", *still, *arguments[3:]).stdout


def test_sweep_with_a_bound(headrace):
    answer = json.loads(headrace("bench", "-e", WHOLE, "--sweep", "0x64x2", "-s", "0.1", "--settle", "0.02", "--rounds", "1",
                                 "--sweep-p99", "1000000", "--json", *REFERENCE).stdout)
    for point in answer["sweep"]["points"]:
        # A bound of a second is no bound, but a machine at work may not let a source send at any rate.
        assert 0 <= point["p99_kept"]["mpps"] <= max(point["mpps"]["runs"])
        assert point["p99_kept"]["p99_us"] <= 1000000
    bound = answer["sweep"]["p99_bound"]
    assert bound["us"] == 1000000
    if bound["best_mpps"] > 0:
        assert bound["auto_to_best"] == pytest.approx(bound["auto_mpps"] / bound["best_mpps"])
    # Most of the tries of a load decide.
    most = json.loads(headrace("bench", "-e", WHOLE, "--sweep", "0x64x2", "-s", "0.1", "--settle", "0", "--rounds", "3",
                                "--sweep-p99", "500", "--json", *REFERENCE).stdout)
    for point in most["sweep"]["points"]:
        loads = point["loads"]
        assert len(loads) == 6
        for load in loads:
            assert (load["kept"], load["tries"]) in ((2, 2), (2, 3), (1, 3), (0, 2))
        assert point["p99_kept"]["mpps"] == max([load["mpps"] for load in loads if load["kept"] == 2], default=0)
        for load, following in zip(loads, loads[1:]):
            assert (load["mpps"] < following["mpps"]) == (load["kept"] == 2)
    none = json.loads(headrace("bench", "-e", WHOLE, "--sweep", "0x64x2", "-s", "0.1", "--settle", "0", "--rounds", "1",
                               "--sweep-p99", "0.1", "--json", *REFERENCE).stdout)
    assert none["sweep"]["p99_bound"]["best"] == "none keeps it"


def test_sweep_at_a_rate(headrace):
    arguments = ("bench", "-e", WHOLE, "--sweep", "0x64x2", "-s", "0.1", "--settle", "0.02", "--rate", "0.05", *REFERENCE)
    sweep = json.loads(headrace(*arguments, "--json").stdout)["sweep"]
    assert sweep["offered_mpps"] == 0.05
    for point in sweep["points"]:
        assert len(point["p99_us"]["runs"]) == len(point["final_p99_us"]["runs"]) == 3
        # After a pause of its worker a source catches up.
        assert point["mpps"]["median"] < 0.2
    assert sweep["auto_to_cpu_p99"] >= 0
    assert "p99: cpu" in headrace(*arguments, "--rounds", "1").stdout


@pytest.mark.parametrize("points, error", [
    ("1.5", "expected a fraction from 0 to 1, got '1.5'"),
    ("0.5,", "expected a fraction from 0 to 1, got ''"),
    ("half", "expected a fraction from 0 to 1, got 'half'"),
    ("0.5x0", "expected packets of a job, from 1 to 65536, got '0'"),
    ("0.5x64x257", "expected jobs on a device, from 1 to 256, got '257'"),
    ("0.5x64x2x1", "expected FRACTIONSxJOBSxPLACES, got '1' behind them"),
])
def test_mistakes_in_a_sweep(headrace, points, error):
    assert f"headrace bench: --sweep: {error}\n" == headrace("bench", "-e", WHOLE, "--sweep", points, status=2).stderr


def test_what_does_not_go_together(headrace):
    def error(*arguments):
        return headrace("bench", "-e", WHOLE, *arguments, status=2).stderr

    assert "two measurements" in error("--sweep", "default", "--steps", "steps.txt")
    assert "--load does not go with --sweep" in error("--sweep", "default", "--load", "0.5")
    assert "--repeat does not go with --steps" in error("--steps", "steps.txt", "--repeat", "2")
    assert "--sweep-p99 needs --sweep" in error("--sweep-p99", "50")
    nothing = headrace("bench", "-e", "TrafficSource -> TrafficSink;", "--sweep", "default", *REFERENCE, status=1)
    assert "--sweep needs a device and a chain" in nothing.stderr


STEPS = """# A step of load, then of traffic
200 rate=0.1
400 length=512 payload=random   # bytes
600 mode=device handler source.rate 20000
"""


def test_steps(headrace):
    (headrace.folder / "steps.txt").write_text(STEPS)
    arguments = ("bench", "-e", WHOLE, "--steps", "steps.txt", "--rate", "0.2", "-s", "0.2", "--sequence", *REFERENCE)
    answer = json.loads(headrace(*arguments, "--json").stdout)
    phases = answer["steps"]["phases"]
    assert [p["step"] for p in phases] == ["as configured", "200 rate=0.1", "400 length=512 payload=random",
                                           "600 mode=device handler source.rate 20000"]
    assert all(p["out_mpps"] >= 0 for p in phases)
    assert phases[0]["begin_ms"] == 0
    for before, after in zip(phases, phases[1:]):
        assert before["end_ms"] == after["begin_ms"]
    for phase, at in zip(phases[1:], (200, 400, 600)):
        assert at <= phase["begin_ms"]
    windows = answer["steps"]["windows"]
    assert len(windows) >= 4
    # Where others use the machine, a source catches up after pauses, but not with what was due before a change.
    last = [w for w in windows if w["ms"] >= phases[-1]["begin_ms"]]
    assert 0 < statistics.fmean(w["in_mpps"] for w in last) < 0.1
    assert all(w["ms"] < v["ms"] for w, v in zip(windows, windows[1:]))
    assert any(w["p99_us"] for w in windows)
    sequence = answer["sequence"]
    assert sequence.pop("checked") > 1000 and sequence == {"lost": 0, "doubled": 0, "reordered": 0}
    assert answer["lost"] == 0 and answer["reordered"] == 0
    assert answer["offload"]["job_packets"] > 1000
    table = headrace(*arguments).stdout
    assert "to 0.95" in table and "400 length=512 payload=random" in table


def test_steps_beside_the_optimum(headrace):
    """The model states it in mode auto, and sources that send less than that are to get through."""
    (headrace.folder / "steps.txt").write_text("0 rate=0\n300 rate=0.01\n500 mode=cpu\n")
    arguments = ("bench", "-e", WHOLE, "--steps", "steps.txt", "-s", "0.1", *REFERENCE)
    full, less, cpu = json.loads(headrace(*arguments, "--json").stdout)["steps"]["phases"]
    assert (full["aim"], less["aim"], cpu["aim"]) == ("optimum", "load", None)
    assert full["of_optimum"] == pytest.approx(full["out_mpps"] / full["optimum_mpps"])
    assert less["optimum_mpps"] > 0.01 and less["of_optimum"] is None
    assert cpu["optimum_mpps"] is cpu["of_optimum"] is None
    of_it = [line.split()[7] for line in headrace(*arguments).stdout.splitlines()[2:5]]
    assert float(of_it[0]) >= 0 and of_it[1:] == ["load", "-"]
    nothing = json.loads(headrace(*arguments, "--balancer", "CPUOnly", "--json").stdout)["steps"]["phases"]
    assert [(p["aim"], p["optimum_mpps"]) for p in nothing] == [(None, None)] * 3


def test_steps_without_devices(headrace):
    (headrace.folder / "steps.txt").write_text("0 rate=0.1\n")
    answer = json.loads(headrace("bench", "-e", WHOLE, "--steps", "steps.txt", "-s", "0.1", "--json").stdout)
    assert len(answer["steps"]["phases"]) == 1 and "offload" not in answer
    (headrace.folder / "steps.txt").write_text("0 mode=cpu\n")
    nothing = headrace("bench", "-e", "TrafficSource -> TrafficSink;", "--steps", "steps.txt", *REFERENCE, status=1)
    assert nothing.stderr == "steps.txt:1: 'mode=cpu': nothing runs on a device here\n"


WRONG = """rate=1
0 rate=-1
10 rate=fast length=59
20 payload=any mode=gpu
15 length=64
20 speed=3
25
30 rate=1 rate=2
30 length=64
40 handler
50 handler nowhere.rate 1
60 handler source.count 1
70 handler source.frob 1
99999999 rate=1
"""


def test_every_mistake_in_the_steps_is_told(headrace):
    (headrace.folder / "wrong.txt").write_text(WRONG)
    lines = headrace("bench", "-e", WHOLE, "--steps", "wrong.txt", status=1).stderr.splitlines()
    expected = [
        (1, "rate=1", "expected a time in milliseconds"),
        (1, "rate=1", "nothing behind it to change"),
        (2, "rate=-1", "expected millions of packets per second"),
        (3, "rate=fast", "expected millions of packets per second"),
        (3, "length=59", "expected bytes of a frame, from 60 to 1514"),
        (4, "payload=any", "expected text or random"),
        (4, "mode=gpu", "expected auto, cpu, device or fixed=FRACTION"),
        (5, "15", "earlier than the step before it, at 20 ms"),
        (6, "speed=3", "expected rate=, length=, payload=, mode= or handler NAME VALUE"),
        (7, "25", "nothing behind it to change"),
        (8, "rate=2", "rate is there twice"),
        (9, "30", "two steps at one time"),
        (10, "handler", "expected the name of a handler behind it"),
        (14, "99999999", "expected a time in milliseconds"),
        (11, "nowhere.rate", "no element named 'nowhere'"),
        (12, "source.count", "no 'source.count' write handler"),
        (13, "source.frob", "no 'source.frob' handler"),
    ]
    assert len(lines) == len(expected), "\n".join(lines)
    for line, (number, word, what) in zip(lines, expected):
        assert line.startswith(f"wrong.txt:{number}: '{word}': {what}"), line


def test_files_of_steps(headrace):
    assert headrace("bench", "-e", WHOLE, "--steps", "none.txt", status=1).stderr == "none.txt: No such file or directory\n"
    (headrace.folder / "empty.txt").write_text("# nothing\n\n")
    assert headrace("bench", "-e", WHOLE, "--steps", "empty.txt", status=1).stderr == "empty.txt: no steps\n"
    # What only shows when it is written.
    (headrace.folder / "late.txt").write_text("0 handler source.length 7\n")
    late = headrace("bench", "-e", WHOLE, "--steps", "late.txt", status=1).stderr.splitlines()
    assert late[-1] == "late.txt:1: 'source.length': could not be written"
