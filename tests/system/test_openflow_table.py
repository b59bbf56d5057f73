"""The lists of docs/openflow.md about messages, multipart messages, capabilities and configuration of ports, asked of a
running switch: what they say is refused is refused with that error, and what they say is answered is answered. The rest of
the lists is made by the unit test OpenFlowPage."""

import os
import pathlib
import re
import socket
import struct
import subprocess
import time

import pytest

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
DATA = ROOT / "tests" / "data" / "openflow"
WAIT_S = 20
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
VERSIONS = {"1.0": 1, "1.3": 4}
BARRIER = {"1.0": 18, "1.3": 20}


def lists():
    """Rows of the page's lists by title: {"1.3": (name, number), "1.0": (name, number), "says": text}; errors by name."""
    text = (ROOT / "docs" / "openflow.md").read_text()
    found = {}
    for part in text.split("\n### ")[1:]:
        title, _, body = part.partition("\n")
        rows = []
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) != 5 or cells[0] == "---" or cells[-1] in ("Headrace", "set-field"):
                continue
            rows.append(cells)
        found[title] = rows
    return found


def rows_of(title, version):
    for cells in lists()[title]:
        name, number = cells[:2] if version == "1.3" else cells[2:4]
        if name:
            yield name.strip("`"), int(number, 0), cells[4]


def error_numbers(says, version):
    """Type and code of "refused, BAD_REQUEST/BAD_TYPE: ..." in a version; None: it is not refused."""
    named = re.match(r"refused, (\w+)/(\w+)", says) or re.search(r"gets (\w+)/(\w+)", says)
    if named is None:
        return None
    kinds = {row[0].strip("`"): int(row[1], 0) for row in lists()["Types of errors"] if row[0]}
    kind = kinds[f"OFPET_{named[1]}"]
    for cells in lists()["Errors"]:
        if int(cells[1].split(",")[0]) == kind and cells[0].strip("`").split("_", 1)[1] == named[2]:
            return tuple(int(number) for number in cells[1 if version == "1.3" else 3].split(","))
    raise AssertionError(says)


class Controller:
    """A connection of one version. Requests are followed by a barrier, so that silence is an answer, too."""

    def __init__(self, path, version):
        self.version = version
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(WAIT_S)
        self._socket.connect(str(path))
        self._buffer = b""
        self.send(HELLO, 1, b"")
        assert self.receive()[0] == HELLO

    def close(self):
        self._socket.close()

    def send(self, kind, xid, body):
        self._socket.sendall(struct.pack("!BBHI", VERSIONS[self.version], kind, 8 + len(body), xid) + body)

    def receive(self):
        """Type, xid and body of the next message."""
        while len(self._buffer) < 8 or len(self._buffer) < struct.unpack_from("!H", self._buffer, 2)[0]:
            more = self._socket.recv(65536)
            assert more, "the switch has closed the connection"
            self._buffer += more
        _, kind, length, xid = struct.unpack_from("!BBHI", self._buffer)
        body, self._buffer = self._buffer[8:length], self._buffer[length:]
        return kind, xid, body

    def ask(self, kind, body):
        """What is answered to a message, as a list of (type, body)."""
        self.send(kind, 7, body)
        self.send(BARRIER[self.version], 8, b"")
        answers = []
        while True:
            got, xid, content = self.receive()
            if (got, xid) == (BARRIER[self.version] + 1, 8):
                return answers
            if got == ECHO_REQUEST:
                self.send(ECHO_REPLY, xid, content)
            elif xid == 7:
                answers.append((got, content))


def samples(version):
    """(type, body) of all messages that the codec's tests have written."""
    for name in (f"samples_{version.replace('.', '')}.bin", "samples_13_more.bin" if version == "1.3" else None):
        stream = (DATA / name).read_bytes() if name else b""
        while stream:
            _, kind, length = struct.unpack_from("!BBH", stream)
            yield kind, stream[8:length]
            stream = stream[length:]


def listens(path):
    """A socket's file is there a moment before anybody listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


@pytest.fixture(scope="module")
def switch(tmp_path_factory):
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    folder = tmp_path_factory.mktemp("switch")
    (folder / "switch.click").write_text("sw :: OpenFlowSwitch(1, LISTEN punix:mgmt);\n" +
                                         "".join(f"Idle -> [{i}] sw [{i}] -> Discard;\n" for i in range(4)))
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([BINARY.resolve(), "run", "-q", "switch.click"], cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + WAIT_S
        while not listens(folder / "mgmt"):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.02)
        yield folder / "mgmt"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(params=VERSIONS)
def controller(request, switch):
    made = Controller(switch, request.param)
    yield made
    made.close()


def errors_in(answers):
    return [struct.unpack_from("!HH", body) for kind, body in answers if kind == ERROR]


def test_messages(controller):
    version = controller.version
    bodies = {}
    for kind, body in samples(version):
        bodies.setdefault(kind, []).append(body)
    experimenter = {"1.0": 4, "1.3": 4}[version]
    bodies[experimenter] = [struct.pack("!II", 0x123456, 1)]
    multipart = 16 if version == "1.0" else 18
    for name, number, says in rows_of("Messages", version):
        if number in (HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, BARRIER[version], multipart):
            continue  # what ask() lives by; multipart messages are asked below
        for body in bodies[number]:
            errors = errors_in(controller.ask(number, body))
            expected = error_numbers(says, version)
            if expected:
                assert errors == [expected], (name, says)
            else:
                # Samples name ports, groups and buffers that are not here, but the message is known.
                assert (1, 1) not in errors and len(errors) <= 1, (name, errors)
                if says.startswith("host: answered"):
                    assert errors or controller.ask(number, body), name


def test_unknown_messages(controller):
    last = 21 if controller.version == "1.0" else 29
    for number in (last + 1, 99, 255):
        assert errors_in(controller.ask(number, bytes(8))) == [(1, 1)]
    assert controller.ask(ERROR, struct.pack("!HH", 1, 1)) == []
    assert controller.ask(ECHO_REQUEST, b"hello") == [(ECHO_REPLY, b"hello")]


def test_multipart_messages(controller):
    version = controller.version
    kind = 16 if version == "1.0" else 18
    head = "!HH" if version == "1.0" else "!HH4x"
    bodies = {struct.unpack_from("!H", body)[0]: body for sample, body in samples(version) if sample == kind}
    bodies[0xffff] = struct.pack(head, 0xffff, 0) + struct.pack("!II", 0x123456, 1)
    for name, number, says in rows_of("Multipart messages", version):
        answers = controller.ask(kind, bodies[number])
        expected = error_numbers(says, version)
        if expected:
            assert errors_in(answers) == [expected], (name, says)
        elif errors_in(answers):
            # The sample asks for a meter that is not there, and changes tables in a way that none can have.
            assert name in ("OFPMP_METER", "OFPMP_METER_CONFIG", "OFPMP_TABLE_FEATURES"), (name, errors_in(answers))
        else:
            assert answers and {struct.unpack_from("!H", body)[0] for _, body in answers} == {number}, name
    assert errors_in(controller.ask(kind, struct.pack(head, 77, 0))) == [(1, 2)]


def test_capabilities(controller):
    (_, features), = controller.ask(5, b"")
    announced = struct.unpack_from("!I", features, 16)[0]
    expected = 0
    for _, number, says in rows_of("Capabilities of switches", controller.version):
        if says.startswith("host: announced"):
            expected |= number
        else:
            assert says.startswith("not used: ")
    assert announced == expected


def test_configuration_of_ports(controller):
    version = controller.version
    if version == "1.0":
        (_, features), = controller.ask(5, b"")
        number, address = struct.unpack_from("!H6s", features, 24)
        mod, form = 15, "!H6sIII4x"
    else:
        (_, ports), = controller.ask(18, struct.pack("!HH4x", 13, 0))
        number, address = struct.unpack_from("!I4x6s", ports, 8)
        mod, form = 16, "!I4x6s2xIII4x"
    seen = 0
    for name, bit, says in rows_of("Configuration of ports", version):
        assert not says.startswith("refused"), name
        for on in (bit, 0):
            assert controller.ask(mod, struct.pack(form, number, address, on, bit, 0)) == [], name
        seen |= bit
    assert errors_in(controller.ask(mod, struct.pack(form, number, address, 0, ~seen & 0xff, 0))) != []
