"""ControlSocket, -p, -u, -R, and configurations that take over from running ones."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

LOADED = "s :: TrafficSource(uniform) -> {between} q :: Queue(200) -> Unqueue -> k :: TrafficSink;"


class Client:
    """One connection. `ask` returns the code, the lines of the answer without it, and the data of a read."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        deadline = time.monotonic() + 10
        while True:
            self.socket = socket.socket(family)
            try:
                self.socket.connect(address)
                break
            except OSError:
                self.socket.close()
                assert time.monotonic() < deadline, f"nobody listens at {address}"
                time.sleep(0.02)
        self.socket.settimeout(60)
        self.file = self.socket.makefile("rb")
        self.greeting = self.file.readline()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        lines = []
        while True:
            line = self.file.readline()
            assert re.match(rb"\d\d\d[ -].*\r\n", line), line
            lines.append(line[4:-2].decode())
            if line[3:4] == b" ":
                break
        code = int(line[:3])
        data = None
        if code == 200 and lines[0].startswith("Read handler") and not self.checking:
            size = self.file.readline()
            assert re.fullmatch(rb"DATA \d+\r\n", size)
            data = self.file.read(int(size.split()[1])).decode()
        return code, lines, data

    def ask(self, command, data=b"", end=b"\r\n"):
        self.checking = command.upper().startswith("CHECK")
        self.send(command.encode() + end + data)
        return self.answer()

    def read(self, handler):
        code, lines, data = self.ask(f"READ {handler}")
        assert code == 200, lines
        return data

    def write_text(self, handler, text):
        return self.ask(f"WRITEDATA {handler} {len(text.encode())}", text.encode())


@pytest.fixture
def running(headrace, click):
    """Starts programs and ends them."""
    started = []

    def start(*arguments, program=headrace):
        started.append(program.start(*arguments))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def quiet(running, click, tmp_path):
    """A click with a few elements, and a client of it."""
    path = str(tmp_path / "socket")
    running("-u", path, "-e", 'i :: Idle -> c :: Counter -> q :: Queue(7) -> Idle; e :: Script(TYPE PASSIVE, '
            'set x 5, return $(add $x 1)); DriverManager(pause)', program=click)
    return Client(path)


def test_greeting_and_reads(quiet):
    assert quiet.greeting == b"Click::ControlSocket/1.3\r\n"
    assert quiet.read("q.capacity") == "7"
    assert quiet.read("list").splitlines()[1] == "i"
    assert quiet.read("3.capacity") == "7"
    assert quiet.read("0.version") == quiet.read(".version") == quiet.read("version")
    assert quiet.ask("READDATA e.add 3", b"1 2")[2] == "3"
    assert quiet.ask("READUNTIL e.add STOP", b"1\n2\n  3 \nSTOP  \n")[2] == "6"
    assert quiet.ask("readuntil e.add", b"4\n4\n\n")[2] == "8"


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_line_ends(quiet, end):
    assert quiet.ask("READ q.capacity", end=end)[2] == "7"
    assert quiet.ask("READ q.length", end=end)[2] == "0"


def test_writes(quiet):
    assert quiet.ask("WRITE q.capacity 9") == (200, ["Write handler 'q.capacity' OK"], None)
    assert quiet.read("q.capacity") == "9"
    assert quiet.write_text("q.capacity", "11")[0] == 200
    assert quiet.ask("WRITEUNTIL q.capacity X", b"13\nX\n")[0] == 200
    assert quiet.read("q.capacity") == "13"
    code, lines, _ = quiet.ask("WRITE q.capacity many")
    assert code == 520 and lines[0] == "Write handler 'q.capacity' error:" and len(lines) > 1
    assert quiet.read("q.capacity") == "13"


@pytest.mark.parametrize("command, code, text", [
    ("NONSENSE", 501, "Command 'NONSENSE' unimplemented"),
    ("READ", 500, "Wrong number of arguments"),
    ("READDATA q.capacity", 500, "Wrong number of arguments"),
    ("READDATA q.capacity -1", 500, "Syntax error in 'READDATA'"),
    ("WRITEDATA q.capacity 99999999999999999999", 500, "Syntax error in 'WRITEDATA'"),
    ("CHECKREAD", 500, "Wrong number of arguments"),
    ("READ nobody.count", 510, "No element named 'nobody'"),
    ("READ 99.count", 510, "No element named '99'"),
    ("READ q.nothing", 511, "No handler named 'q.nothing'"),
    ("READ nothing", 511, "No handler named 'nothing'"),
    ("READ q.reset", 530, "Handler 'q.reset' write-only"),
    ("WRITE q.length 3", 530, "Handler 'q.length' read-only"),
    ("READ e.cat /etc/hostname", 511, "No handler named 'e.cat'"),
    ("CHECKREAD q.length", 200, "Read handler 'q.length' OK"),
    ("CHECKWRITE q.length", 511, "Handler 'q.length' not writable"),
    ("CHECKWRITE q.capacity", 200, "Write handler 'q.capacity' OK"),
    ("CHECKREAD q.nothing", 511, "No handler named 'q.nothing'"),
    ("WRITE hotconfig Idle", 511, "No handler named 'hotconfig'"),
])
def test_codes(quiet, command, code, text):
    assert quiet.ask(command)[:2] == (code, [text])
    assert quiet.read("q.length") == "0"


def test_too_much_data_is_refused_and_skipped(quiet):
    size = (64 << 20) + 5
    quiet.checking = False
    quiet.send(b"WRITEDATA q.capacity %d\r\n" % size)
    quiet.send(b"9" * size)
    assert quiet.answer()[0] == 521
    assert quiet.read("q.capacity") == "7"


def test_quit_and_a_client_that_goes_away(quiet, tmp_path):
    other = Client(str(tmp_path / "socket"))
    other.send(b"READ q.capa")
    other.socket.close()
    third = Client(str(tmp_path / "socket"))
    assert third.ask("QUIT")[:2] == (200, ["Goodbye!"])
    assert third.file.read() == b""
    assert quiet.read("click_driver@@ControlSocket.connections") in "12"


def test_a_client_that_sends_all_before_it_reads(running, click, tmp_path):
    """It gets all answers, however much they are, and keeps nobody else waiting."""
    path, conf = str(tmp_path / "socket"), tmp_path / "conf.click"
    long = "x" * 400_000
    conf.write_text(f"i :: Idle -> q :: Queue(7) -> Idle; e :: Script(TYPE PASSIVE, return {long}); DriverManager(pause)")
    running("-u", path, str(conf), program=click)
    many, large, late, other = Client(path), Client(path), Client(path), Client(path)
    commands = 60_000
    many.send(b"READ q.capacity\r\n" * commands)
    large.send(b"READ e.run\r\n" * 1000)
    late.send(b"READ e.run\r\n" * 10)
    late.socket.shutdown(socket.SHUT_WR)
    assert other.read("q.capacity") == "7"
    time.sleep(1)
    assert other.read("q.capacity") == "7"
    one = b"200 Read handler 'q.capacity' OK\r\nDATA 1\r\n7"
    assert many.file.read(len(one) * commands) == one * commands
    for client, answers in (large, 1000), (late, 10):
        client.checking = False
        for _ in range(answers):
            code, _, data = client.answer()
            assert code == 200 and data == long
    assert late.file.read() == b""
    assert large.read("q.capacity") == "7"


def test_only_the_owner_may_use_the_socket_and_it_is_removed(running, click, tmp_path):
    path = tmp_path / "socket"
    process = running("-u", str(path), "-e", "DriverManager(pause)", program=click)
    Client(str(path))
    assert stat.S_IMODE(path.stat().st_mode) & 0o177 == 0
    process.send_signal(signal.SIGINT)
    process.wait(10)
    assert not path.exists()


def test_a_socket_left_behind_is_taken_but_no_file_and_none_in_use(running, click, tmp_path):
    path = tmp_path / "socket"
    first = running("-u", str(path), "-e", "DriverManager(pause)", program=click)
    Client(str(path))
    assert "Address already in use" in click("-u", path, "-e", "DriverManager(stop)", status=1).stderr
    first.kill()
    first.wait()
    assert path.exists()
    click("-u", path, "-e", "DriverManager(stop)")
    path.write_text("mine")
    assert "Address already in use" in click("-u", path, "-e", "DriverManager(stop)", status=1).stderr
    assert path.read_text() == "mine"


def test_tcp_ports(click, tmp_path, running):
    running("-e", "a :: ControlSocket(TCP, 42900+, READONLY true); b :: ControlSocket(TCP, 42900+, VERBOSE true); "
            "q :: Idle -> c :: Counter -> Idle; DriverManager(print >ports $(a.port), print >>ports $(b.port), pause)",
            program=click)
    file = click.folder / "ports"
    deadline = time.monotonic() + 10
    while not file.exists() or len(file.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    a, b = map(int, file.read_text().split())
    # The same place is one server: what the first element says holds for both.
    assert a == b
    client = Client(("127.0.0.1", a))
    assert client.ask("WRITE c.reset_counts")[:2] == (530, ["Permission denied for 'c.reset_counts'"])
    assert client.ask("CHECKWRITE c.reset_counts")[0] == 530
    assert client.read("c.count") == "0"


@pytest.mark.parametrize("arguments, text", [
    ("SCTP, 4", "TYPE: expected TCP, UNIX or SOCKET"),
    ("TCP, 70000", "PORT: expected a TCP port"),
    ("TCP, x+", "PORT: expected a TCP port"),
    ("UNIX, /nonexistent/socket", "No such file or directory"),
    ("UNIX, " + "x" * 200, "at most 107 characters"),
    ("TCP", "required argument"),
])
def test_wrong_arguments(click, arguments, text):
    assert text in click("-e", f"ControlSocket({arguments})", status=1).stderr


def test_retries(click, tmp_path):
    done = click("-e", "ControlSocket(UNIX, /nonexistent/socket, RETRIES 1)")
    assert "/nonexistent/socket: No such file or directory" in done.stderr


def test_hotconfig(running, click, tmp_path):
    path = str(tmp_path / "socket")
    process = running("-R", "-u", path, "-e", "Idle -> s :: Switch(0) -> Idle; DriverManager(pause)", program=click)
    client = Client(path)
    assert client.ask("WRITE hotconfig Idle -> s :: Switch(0) -> Discard; DriverManager(wait_stop, print \"bye\", stop)")[0] == 200
    assert "Discard" in client.read("flatconfig")
    code, lines, _ = client.ask("WRITE hotconfig Print")
    assert code == 520 and any("'Print@1 :: Print' input 0 unused" in line for line in lines)
    assert client.ask("WRITE hotconfig x -> y")[0] == 520
    assert client.ask("WRITE hotconfig Counter(")[0] == 520
    assert "Discard" in client.read("flatconfig")
    assert client.read("hotswaps").splitlines()[0] == "count 1"
    assert client.ask("WRITE stop")[0] == 200
    assert process.communicate(timeout=10)[0] == "bye\n"
    assert process.returncode == 0


def test_a_script_may_replace_its_own_configuration(click):
    done = click("-R", "-e", "DriverManager(writeq hotconfig 'DriverManager(print \"second\", stop)', wait 5s, print \"first\", stop)")
    assert done.stdout == "second\n"


def test_a_hundred_swaps_under_load(running, headrace, tmp_path):
    """Everything that came in went out or is counted, and workers stand for a moment only."""
    path = str(tmp_path / "socket")
    first = tmp_path / "first.click"
    first.write_text(LOADED.format(between=""))
    process = running("run", str(first), "-u", path, "-R", "-q", "-w", "2")
    client = Client(path)
    bad = 0
    for n in range(100):
        between = f"CheckIPHeader(14) -> c{n} :: Counter -> " if n % 2 else f"Paint({n}) -> "
        assert client.write_text("hotconfig", LOADED.format(between=between))[0] == 200
        if n % 10 == 0:
            bad += client.write_text("hotconfig", LOADED.format(between="Nonsense -> "))[0] == 520
    assert bad == 10
    swaps = dict(line.split() for line in client.read("hotswaps").splitlines())
    assert swaps["count"] == "100"
    # What stands in the queue in the end is neither out nor dropped.
    queued = 200
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    number = lambda pattern: sum(int(x.replace(",", "")) for x in re.findall(pattern, out, re.M))
    came = number(r"^in  s +([\d,]+)")
    went = number(r"^out k +([\d,]+)")
    dropped = number(r"^q +([\d,]+)  queue full")
    assert came > 100_000 and went > 0
    assert 0 <= came - went - dropped <= queued, out


def swap_often(client, text, count):
    """Writes `text` to hotconfig; a router that hangs does not answer within the client's 20 s."""
    for _ in range(count):
        assert client.write_text("hotconfig", text)[0] == 200


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_swaps_while_a_script_writes_handlers_and_workers_sleep(running, headrace, tmp_path, workers):
    """A worker in a handler waits for the others to stand, a swap holds those that sleep: both must go on."""
    path = str(tmp_path / "socket")
    text = ("RatedSource(RATE 100) -> c :: Counter -> q :: Queue -> Idle;"
            "Script(label again, write c.reset, write q.reset, wait 0.2ms, goto again);")
    (tmp_path / "conf.click").write_text(text)
    process = running("run", str(tmp_path / "conf.click"), "-u", path, "-R", "-q", "-w", str(workers))
    client = Client(path)
    swap_often(client, text, 100)
    assert client.read("hotswaps").splitlines()[0] == "count 100"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err


def test_a_script_run_by_a_client_may_replace_the_configuration(running, headrace, tmp_path):
    """The control thread runs the handler as the exclusive thread, for which a worker's timer script waits."""
    path = str(tmp_path / "socket")
    text = ("Idle -> c :: Counter -> Idle;"
            "s :: Script(TYPE PASSIVE, write hotconfig 'Idle -> d :: Counter -> Discard');"
            "t :: Script(label again, write c.reset, wait 0.1ms, goto again);")
    (tmp_path / "conf.click").write_text(text)
    process = running("run", str(tmp_path / "conf.click"), "-u", path, "-R", "-q", "-w", "2")
    client = Client(path)
    for _ in range(10):
        assert client.ask("WRITE s.run")[0] == 200
        deadline = time.monotonic() + 20
        while "Discard" not in client.read("flatconfig"):
            assert time.monotonic() < deadline, "the configuration did not take over"
        assert client.write_text("hotconfig", text)[0] == 200
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err


def test_many_more_workers_than_cpus_end_in_time(running, headrace, tmp_path):
    """Threads that wait for one that lost its CPU must let it have one; this took minutes when they did not."""
    (tmp_path / "conf.click").write_text("TrafficSource(uniform) -> c :: Counter -> TrafficSink;")
    process = running("run", str(tmp_path / "conf.click"), "-q", "-w", "200", "-d", "1")
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert re.search(r"200 workers on \d+ CPUs?", err), err


def test_commands_that_arrive_together_share_an_update(running, headrace, tmp_path):
    path = str(tmp_path / "socket")
    text = "Idle -> rt :: RadixIPLookup(0.0.0.0/0 0) -> Discard; rt[1] -> Discard;"
    running("run", "-e", text, "-u", path, "-q", "-w", "1", "--backend", "reference", "--mode", "device", program=headrace)
    client = Client(path)

    def updates():
        return int(re.search(r"^tables: \d+ MB, (\d+) updates$", client.read("offload"), re.M).group(1))

    before = updates()
    commands = [f"WRITE rt.add 10.0.{n}.0/24 1\r\n" for n in range(200)]
    client.send("".join(commands).encode())
    for _ in commands:
        assert client.answer()[0] == 200
    assert 1 <= updates() - before <= 10
    before = updates()
    assert client.ask("WRITE rt.add 10.1.0.0/24 1")[0] == 200
    assert updates() - before == 1


def test_swaps_scripts_sleeping_workers_and_clients_on_a_device(running, headrace, tmp_path):
    """Everything at once. HEADRACE_SOAK_SWAPS makes it long."""
    swaps = int(os.environ.get("HEADRACE_SOAK_SWAPS", "120"))
    path = str(tmp_path / "socket")
    # Two flows are sent by two workers at most; the others sleep, or run scripts.
    text = """
        s :: TrafficSource(uniform, FLOWS 2) -> Strip(14) -> check :: CheckIPHeader -> {between}
          rt :: RadixIPLookup(0.0.0.0/0 0, 1.0.0.0/8 0) -> DecIPTTL -> Unstrip(14) -> k :: TrafficSink;
        Idle -> c :: Counter -> Idle;
        a :: Script(label again, write c.reset, write rt.set 1.0.0.0/8 0, wait 0.5ms, goto again);
        b :: Script(label again, write c.reset, wait 0.3ms, goto again);
        StaticThreadSched(a 1, b 2);
        """
    (tmp_path / "conf.click").write_text(text.format(between=""))
    process = running("run", str(tmp_path / "conf.click"), "-u", path, "-R", "-q", "-w", "4", "--backend", "reference",
                      "--mode", "device", "--reference", "delay=30")
    stop = threading.Event()
    failures = []

    def come_and_go(number):
        try:
            while not stop.is_set():
                client = Client(path)
                assert client.greeting.startswith(b"Click::ControlSocket/")
                for _ in range(1 + number):
                    client.read("rt.count")
                    assert client.ask("WRITE rt.set 1.0.0.0/8 0")[0] == 200
                    assert client.ask("WRITE c.reset")[0] == 200
                client.file.close()
                client.socket.close()
        except Exception as e:  # reported by the test
            failures.append(e)

    clients = [threading.Thread(target=come_and_go, args=(n,)) for n in range(4)]
    control = Client(path)
    for thread in clients:
        thread.start()
    try:
        for n in range(swaps):
            between = ["", "Paint(3) -> ", f"d{n} :: Counter -> "][n % 3]
            assert control.write_text("hotconfig", text.format(between=between))[0] == 200
    finally:
        stop.set()
        for thread in clients:
            thread.join(60)
    assert not failures, failures
    assert control.read("hotswaps").splitlines()[0] == f"count {swaps}"
    assert "failed" not in control.read("offload")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    number = lambda pattern: sum(int(x.replace(",", "")) for x in re.findall(pattern, out, re.M))
    came = number(r"^in  s +([\d,]+)")
    went = number(r"^out k +([\d,]+)")
    dropped = number(r"^[a-z]\S* +([\d,]+)  \S")
    assert came > 10_000 and went > 0, out
    assert came == went + dropped, out


def test_hangup_reads_the_file_again(running, headrace, tmp_path):
    path = str(tmp_path / "socket")
    file = tmp_path / "router.click"
    file.write_text("Idle -> a :: Counter -> Discard;")
    process = running("run", str(file), "-u", path, "-q")
    client = Client(path)
    file.write_text("Idle -> b :: Counter -> Discard;")
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while client.ask("READ b.count")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    file.write_text("Idle -> b :: Counte -> Discard;")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert client.read("b.count") == "0"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert "in effect after" in out
    assert "unknown element class 'Counte'" in err and "the running configuration goes on" in err


def test_netcat(click, running, tmp_path):
    nc = shutil.which("nc")
    if not nc:
        pytest.skip("nc is not installed (netcat-openbsd)")
    path = str(tmp_path / "socket")
    running("-u", path, "-e", "Idle -> q :: Queue(7) -> Idle; DriverManager(pause)", program=click)
    Client(path)
    done = subprocess.run([nc, "-U", "-q", "1", path], input="READ q.capacity\nWRITE q.capacity 8\nREAD q.capacity\nQUIT\n",
                          text=True, capture_output=True, timeout=20)
    assert done.stdout.replace("\r", "").splitlines() == [
        "Click::ControlSocket/1.3", "200 Read handler 'q.capacity' OK", "DATA 1",
        "7200 Write handler 'q.capacity' OK", "200 Read handler 'q.capacity' OK", "DATA 1", "8200 Goodbye!"]


def test_a_socket_that_click_was_started_with(click):
    ours, theirs = socket.socketpair()
    process = click.start("-e", "Idle -> c :: Counter -> Discard;", "--socket", theirs.fileno(), pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        ours.settimeout(20)
        file = ours.makefile("rwb")
        assert file.readline().startswith(b"Click::ControlSocket/")
        file.write(b"READ c.count\r\nREAD c.nothing\r\nWRITE stop\r\n")
        file.flush()
        assert [file.readline() for _ in range(2)] == [b"200 Read handler 'c.count' OK\r\n", b"DATA 1\r\n"]
        assert file.readline().startswith(b"0511 ")  # the datum has no line end
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        ours.close()


def test_what_is_no_connection_is_refused(click):
    assert "file descriptor 99: Bad file descriptor" in click("-e", "Idle -> Idle", "--socket", "99", status=1).stderr
    assert "file descriptor 0: not a stream socket" in click("-e", "Idle -> Idle", "--socket", "0", status=1).stderr
