"""Scripts in several threads, in real time."""

SIGNALS = """
i :: InfiniteSource(LIMIT 10) -> s :: Script(TYPE PACKET, set y $(kill USR1 $$), end) -> Discard;
j :: InfiniteSource(LIMIT 30) -> s;
Script(TYPE SIGNAL USR1, init x 0, set x $(add $x 1), goto again $(gt $x 1), print "got USR1", label again, end);
Script(wait 20ms, stop);
StaticThreadSched(i 0, j 1);
"""

TANGLE = """
a :: InfiniteSource -> sa :: Script(TYPE PACKET, write m.run $input, write c.reset, end) -> c :: Counter -> Discard;
b :: InfiniteSource -> sb :: Script(TYPE PACKET, set z $(m.n), write sa.set q $z, end) -> Discard;
d :: InfiniteSource -> sd :: Script(TYPE PACKET, write sb.set q 1, write m.run 7, end) -> Discard;
m :: Script(TYPE PASSIVE, export n 0, set n $(add $n 1), write c.reset, return $n);
t :: Script(write m.run, write c.reset, wait 1ms, loop);
StaticThreadSched(a 0, b 1, d 2, t 3);
Script(wait 1s, stop);
"""


def test_a_signal_that_arrives_while_its_script_runs_does_not_kill(click):
    for _ in range(10):
        assert click("-j", "2", "-e", SIGNALS).stdout == "got USR1\n"


def test_after_exit_a_signal_kills_again(click):
    text = "Script(set y $(kill USR1 $$), wait 1ms, set y $(kill USR1 $$), wait 5s, stop); Script(TYPE SIGNAL USR1, exit);"
    assert click("-e", text, status=None).returncode == -10


def test_scripts_that_call_each_other_from_several_threads_do_not_lock_up(click):
    assert int(click("-j", "4", "-e", TANGLE, "-h", "m.n").stdout) > 100
