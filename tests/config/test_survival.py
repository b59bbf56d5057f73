"""A router outlives its clients, the readers of its log and files, and a second start of itself."""

import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

IDLE = "Idle -> c :: Counter -> Discard;"
CLIENTS = 200


def wait_for(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def running(headrace):
    started = []

    def start(*arguments, **options):
        started.append(headrace.start(*arguments, **options))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream and not stream.closed:
                stream.close()


def connect(address):
    client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    client.settimeout(20)
    client.connect(address)
    return client


def read_handler(address, handler):
    with connect(address) as client, client.makefile("rb") as file:
        assert file.readline().startswith(b"Click::ControlSocket/")
        client.sendall(b"READ %s\r\n" % handler.encode())
        assert file.readline().startswith(b"200 ")
        return file.read(int(file.readline().split()[1])).decode()


def wait_for_listener(path):
    """The file is there a moment before the router listens."""

    def listens():
        try:
            connect(path).close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    wait_for(listens, "no socket")


def stop(process):
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out, err


def test_unix_clients_that_leave_at_once(headrace, running, tmp_path):
    path = str(tmp_path / "socket")
    process = running("run", "-e", IDLE, "-u", path, "-q", "-w", "1")
    wait_for_listener(path)
    for _ in range(CLIENTS):
        connect(path).close()
    assert read_handler(path, "c.count") == "0"
    stop(process)


def test_tcp_clients_that_leave_at_once(headrace, running, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = running("run", "-e", IDLE, "-p", str(port), "-w", "1")
    while "ready in" not in process.stdout.readline():
        assert process.poll() is None
    for _ in range(CLIENTS):
        client = connect(("127.0.0.1", port))
        # Closing with a reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.shutdown(socket.SHUT_WR)
        client.close()
    assert read_handler(("127.0.0.1", port), "c.count") == "0"
    stop(process)


def test_many_clients_at_once(headrace, running, tmp_path):
    path = str(tmp_path / "socket")
    process = running("run", "-e", IDLE, "-u", path, "-q", "-w", "1")
    wait_for_listener(path)
    process.send_signal(signal.SIGSTOP)
    clients = []
    for _ in range(64):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect(path)
        clients.append(client)
    process.send_signal(signal.SIGCONT)
    for client in clients:
        client.setblocking(True)
        client.settimeout(20)
        assert client.recv(64).startswith(b"Click::ControlSocket/")
        client.close()
    stop(process)


def test_a_router_that_says_it_is_ready_can_be_stopped(running):
    for _ in range(20):
        process = running("run", "-e", IDLE, "-q", "-w", "1")
        while "ready in" not in process.stdout.readline():
            assert process.poll() is None
        stop(process)


def test_a_second_start_leaves_the_first_alone(headrace, running, tmp_path):
    path = str(tmp_path / "socket")
    process = running("run", "-e", IDLE, "-u", path, "-q", "-w", "1")
    wait_for_listener(path)
    for _ in range(10):
        assert "Address already in use" in headrace("run", "-e", IDLE, "-u", path, "-q", status=1).stderr
        assert read_handler(path, "c.count") == "0"
    stop(process)
    assert not os.path.exists(path)


def test_a_second_start_does_not_wait_for_a_router_that_is_busy(headrace, running, tmp_path):
    """A router that accepts no connections for a while is still there."""
    path = str(tmp_path / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(0)
    waiting = []
    while True:  # fills the backlog
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        waiting.append(client)
        try:
            client.connect(path)
        except BlockingIOError:
            break
    assert "Address already in use" in headrace("run", "-e", IDLE, "-u", path, "-q", status=1).stderr
    assert os.path.exists(path)
    for client in (*waiting, listener):
        client.close()


def test_the_reader_of_the_log_leaves(headrace, running, tmp_path):
    path = str(tmp_path / "socket")
    process = running("run", "-e", "RatedSource(RATE 100) -> c :: Counter -> Print(x) -> Discard;", "-u", path, "-i", "0.1",
                      "-w", "1")
    assert process.stdout.readline()
    process.stdout.close()
    process.stderr.close()
    before = int(read_handler(path, "c.count"))
    time.sleep(0.5)
    assert process.poll() is None
    assert int(read_handler(path, "c.count")) > before
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.mark.parametrize("sink", [
    'IDSMatcher(RULES {rules}, ALERTS {fifo}) -> Discard',
    'ToDump({fifo})',
    'ToIPSummaryDump({fifo}, FIELDS ip_src)',
])
def test_the_reader_of_a_fifo_leaves(headrace, running, tmp_path, sink):
    fifo, rules, path = tmp_path / "fifo", tmp_path / "rules", str(tmp_path / "socket")
    os.mkfifo(fifo)
    rules.write_text('alert udp any any -> any any (msg:"x"; content:"needle"; sid:1;)\n')
    source = 'RatedSource(DATA "needle", RATE 2000) -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> c :: Counter'
    text = f"{source} -> {sink.format(rules=rules, fifo=fifo)};"
    reader = []
    opener = threading.Thread(target=lambda: reader.append(open(fifo, "rb")))
    opener.start()
    process = running("run", "-e", text, "-u", path, "-q", "-w", "1")
    opener.join(20)
    assert reader, process.communicate()[1]
    assert reader[0].read(1)
    reader[0].close()
    wait_for_listener(path)
    before = int(read_handler(path, "c.count"))
    wait_for(lambda: int(read_handler(path, "c.count")) > before + 1000, "the router has stopped")
    stop(process)


def test_bench_outlives_the_reader_of_its_log(headrace, running):
    """What it measured is lost, but it ends as it does with a reader, not by a signal."""
    process = running("bench", "-e", "TrafficSource -> TrafficSink;", "--seconds", "0.5", "--repeat", "2")
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0


def test_printing_into_head(headrace):
    """Commands that only print end as other programs do when their reader has had enough."""
    for command in ("elements", "check -e Idle"):
        done = subprocess.run(["bash", "-c", f"{headrace._path} {command} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"],
                              capture_output=True, text=True, timeout=60, cwd=headrace.folder)
        assert done.stderr == "" and done.stdout.strip() in ("0", str(128 + signal.SIGPIPE))
