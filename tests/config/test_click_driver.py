"""The command line of Click's user-level driver."""

import os
import re
import signal
import time

import pytest

TWO = "i1, i2 :: Idle; i1 -> i2; s :: Script(TYPE PASSIVE, export n 7, export yes true, return a);"


def test_expression_runs_until_stopped(click):
    done = click("-e", "Script(print hello $(add 1 2), print \"bye\", stop)", status=0)
    assert done.stdout == "bye\n"
    assert done.stderr == "While executing 'Script@1 :: Script':\n  no 'hello' handler\n"


def test_file_and_landmarks(click):
    (click.folder / "x.click").write_text("i :: Idle\n  -> Nowhere;\n")
    assert "x.click:2: undeclared element 'Nowhere'" in click("x.click", status=1).stderr
    assert "x.click:2: " in click("-f", "x.click", status=1).stderr
    assert click("missing.click", status=1).stderr == "missing.click: No such file or directory\n"


def test_standard_input(click):
    text = "Script(print \"in\", stop);"
    assert click(stdin=text).stdout == "in\n"
    assert click("-", stdin=text).stdout == "in\n"
    assert click("-", stdin="Idle -> Nowhere;", status=1).stderr.startswith("<stdin>:1: ")


def test_errors_of_elements_are_all_reported(click):
    done = click("-q", "-e", "a :: Switch(x); b :: Script(frob);\nIdle -> a -> Idle;", status=1)
    assert done.stderr.splitlines()[0] == "config:1: While configuring 'a :: Switch':"
    assert "config:1: While configuring 'b :: Script':\n  syntax error at 'frob'\n" in done.stderr
    assert done.stderr.endswith("Router could not be initialized!\n")


def test_one_handler_prints_bare_and_several_with_names(click):
    assert click("-q", "-e", TWO, "-h", "s.n").stdout == "7\n"
    assert click("-q", "-e", TWO, "-h", "s.n", "--handler=i1.class").stdout == "s.n:\n7\n\ni1.class:\nIdle\n\n"
    assert click("-q", "-e", TWO, "-h", "i*.class").stdout == "i1.class:\nIdle\n\ni2.class:\nIdle\n\n"
    assert click("-q", "-e", TWO, "-h", "Idle.name").stdout == "i1.name:\ni1\n\ni2.name:\ni2\n\n"
    assert click("-q", "-e", TWO, "-h", "list").stdout == "3\ni1\ni2\ns\n"


def test_handlers_that_do_not_exist(click):
    done = click("-q", "-e", TWO, "-h", "x.y", "-h", "x*.y", "-h", "i1.foo", "-h", "s.step", "-h", "foo", status=1)
    assert done.stderr.splitlines() == ["no element 'x'", "no element matching 'x*'", "no 'i1.foo' handler",
                                        "'s.step' is a write handler", "no 'foo' handler"]


def test_exit_status_from_a_handler(click):
    click("-q", "-e", TWO, "-x", "s.n", status=7)
    click("-q", "-e", TWO, "-x", "s.yes", status=0)
    assert "exit handler value should be integer" in click("-q", "-e", TWO, "-x", "s.run", status=255).stderr
    click("-q", "-e", TWO, "-x", "nothing.here", status=255)


def test_flat_configuration(click):
    click("-q", "-e", "c :: { Idle -> output }; c -> Idle", "-o", "flat.click")
    assert (click.folder / "flat.click").read_text() == "Idle@2 :: Idle;\nc/Idle@1 :: Idle;\n\nc/Idle@1 -> Idle@2;\n"
    assert click("-q", "-e", "Idle -> Idle", "-o", "-").stdout.startswith("Idle@1 :: Idle;\n")
    assert "nowhere/x: No such file or directory" in click("-q", "-e", "Idle -> Idle", "-o", "nowhere/x", status=1).stderr


def test_variables(click):
    text = "define($A one) Script(print \"$A $B\", stop)"
    assert click("-e", text, "A=two", "B=three").stdout == "two three\n"
    assert "parameter 'A' multiply defined" in click("-e", text, "A=1", "A=2", status=1).stderr


def test_libraries(click):
    folder = click.folder / "lib"
    folder.mkdir()
    (folder / "mine.click").write_text("elementclass Mine { -> Null -> }\n")
    text = "require(library mine.click) Idle -> Mine -> Idle"
    click("-q", "-e", text, "-C", folder)
    click("-q", "-e", text, env={"CLICKPATH": str(folder)})
    assert "config:1: " in click("-q", "-e", text, status=1).stderr


def test_packages_that_are_missing(click):
    assert "required package 'nosuch' not found" in click("-q", "-e", "require(package nosuch) Idle -> Idle", status=1).stderr


def test_simulated_time(click):
    begin = time.monotonic()
    text = "Script(print $(now), wait 1000s, print $(now), stop)"
    first, second = click("--simtime", "-e", text).stdout.split()
    assert first.startswith("1000000000.0") and second.startswith("1000001000.0")
    assert click("--simtime=5", "-e", text).stdout.startswith("5.0")
    assert click("--simtime", "-e", "Idle -> Idle; Script(stop)", "-h", "timewarp").stdout == "simulation\n"
    assert time.monotonic() - begin < 60


def test_threads(click):
    text = "StaticThreadSched(s 1); s :: Script(wait 10ms, stop);"
    assert click("-j", "2", "-e", text, "-h", "s.home_thread", "-h", "threads").stdout == "s.home_thread:\n1\n\nthreads:\n2\n\n"
    assert click("-j0", "-e", "Script(stop)", "-h", "threads").stdout == "1\n"
    assert "expects an integer" in click("-j", "x", status=1).stderr
    assert "at most" in click("-j", "100000", "-e", "Script(stop)", status=1).stderr


def _affinity(pid):
    return os.sched_getaffinity(pid)


def test_affinity(click):
    cpus = sorted(os.sched_getaffinity(0))
    if cpus[0] != 0 or len(cpus) < 2:
        pytest.skip("needs CPUs 0 and 1")
    for options, wanted in ((["-a"], {0}), (["--affinity=1"], {1}), (["-a1"], {1}), (["-a1", "--no-affinity"], set(cpus)),
                            ([], set(cpus))):
        process = click.start(*options, "-e", "Script(print \"up\", wait 10s, stop)")
        assert process.stdout.readline() == "up\n"
        assert _affinity(process.pid) == wanted, options
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_signals_stop_the_router_and_handlers_are_still_read(click):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = click.start("-e", "Script(print \"up\", wait 100s, stop)", "-h", "driver")
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "userlevel\n", "")


def test_time_report(click):
    assert re.fullmatch(r"\d+\.\d{3}u \d+\.\d{3}s \d+:\d\d\.\d\d\n", click("-t", "-e", "Script(stop)").stdout)


def test_empty_configuration(click):
    assert click("-e", "").stderr == "config: warning: configuration has no elements, exiting\n"
    assert click("-w", "-e", "").stderr == ""
    assert click("--no-warnings", "-e", "").stderr == ""


def test_help_and_version(click):
    assert "--exit-handler" in click("--help").stdout
    assert re.match(r"click \(Headrace\) \d+\.\d+\.\d+\n", click("-v").stdout)


@pytest.mark.parametrize("arguments, message", [
    (["-Z"], "unrecognized option '-Z'"),
    (["--nonsense"], "unrecognized option '--nonsense'"),
    (["-h"], "'-h' requires an argument"),
    (["--s"], "option '--s' is ambiguous"),
    (["--quit=1"], "can't take an argument"),
    (["-e", "Idle", "x.click"], "router configuration specified twice"),
    (["-o", "a", "-o", "b"], "output file specified twice"),
    (["-x", "a", "-x", "b"], "--exit-handler specified twice"),
])
def test_wrong_options(click, arguments, message):
    done = click(*arguments, status=1)
    assert message in done.stderr
    assert "Try 'click --help' for more information." in done.stderr


def test_letters_join_and_long_names_shorten(click):
    assert click("-qh", "s.n", "--expr", TWO).stdout == "7\n"
    assert click("-qe", "Idle -> Idle", "-hversion").stdout != ""
    assert "router configuration specified twice" in click("-qe", "Idle", "--", "-file", status=1).stderr


def test_broken_pipe_is_no_crash(click):
    process = click.start("-e", "Script(wait 0.2s, print \"x\", stop)")
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    process.stderr.close()


def test_runs_as_a_command_of_headrace(headrace):
    assert headrace("click", "-e", "Script(print \"x\", stop)").stdout == "x\n"
