"""The OpenFlow switch under ovs-ofctl and os-ken: what controllers ask for happens to packets."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import netlab
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADRACE = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))

# A question by ARP, from 02:00:00:00:00:0a.
ARP = "ffffffffffff02000000000a0806000108000604000102000000000a0a00000a0000000000000a00000b" + "00" * 18
# UDP over IPv4 to 10.0.0.2, port 80.
UDP = "02000000000b02000000000a0800" "4500002e000040004011" "26bd0a0000010a000002" "1000005000 1a0000".replace(" ", "") + "00" * 18
VERSIONS = ["OpenFlow10", "OpenFlow13"]

# Each port has a capture of what leaves by it.
THREE_PORTS = """
ControlSocket(UNIX, control);
sw :: OpenFlowSwitch(%s);
%s
sw[0] -> ToDump(out1.pcap, UNBUFFERED true);
sw[1] -> ToDump(out2.pcap, UNBUFFERED true);
sw[2] -> ToDump(out3.pcap, UNBUFFERED true);
"""
NO_INPUTS = "Idle -> [0] sw; Idle -> [1] sw; Idle -> [2] sw;"


class Switch:
    """A running switch that listens at a socket in its folder."""

    def __init__(self, folder, arguments="1, LISTEN punix:mgmt", inputs=NO_INPUTS, options=(), graph=None, workers=1):
        if not HEADRACE.exists():
            pytest.skip(f"{HEADRACE} is not built")
        if shutil.which("ovs-ofctl") is None:
            pytest.skip("not installed: ovs-ofctl (openvswitch-common, tools/deps test)")
        self.folder = folder
        (folder / "switch.click").write_text(graph or THREE_PORTS % (arguments, inputs))
        self.errors = open(folder / "errors", "w")
        self.process = subprocess.Popen([HEADRACE, "run", "-q", "-w", str(workers), *options, "switch.click"], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.wait(lambda: (folder / "mgmt").exists())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.said, _ = self.process.communicate(timeout=10)
        finally:
            self.process.kill()
            self.errors.close()
        assert self.process.returncode == 0, (self.folder / "errors").read_text()

    def wait(self, ready, seconds=30):
        end = time.monotonic() + seconds
        while not ready():
            assert self.process.poll() is None, (self.folder / "errors").read_text()
            assert time.monotonic() < end, "it does not come to that"
            time.sleep(0.02)

    def ofctl(self, version, command, *arguments, status=0):
        end = time.monotonic() + 30
        while True:
            done = subprocess.run(["ovs-ofctl", "-O", version, command, f"unix:{self.folder}/mgmt", *arguments], cwd=self.folder,
                                  text=True, capture_output=True, timeout=20)
            # The socket has its name a moment before it listens.
            if "Connection refused" not in done.stderr or time.monotonic() > end:
                break
            time.sleep(0.02)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def flows(self, version="OpenFlow13"):
        """The entries, without times."""
        lines = self.ofctl(version, "dump-flows").splitlines()[1:]
        return sorted(re.sub(r"cookie=0x0, duration=[\d.]+s, |(?<!\S)table=0, |n_packets=\d+, n_bytes=\d+, ", "", line.strip())
                      for line in lines)

    def send(self, port, frame, version="OpenFlow13"):
        """A frame goes through the tables as if it had come by the port."""
        self.ofctl(version, "packet-out", f"in_port={port} packet={frame} actions=TABLE")

    def out(self, port):
        """The frames that have left by a port, in hexadecimal digits."""
        data, at, frames = (self.folder / f"out{port}.pcap").read_bytes(), 24, []
        while at < len(data):
            length = int.from_bytes(data[at + 8:at + 12], "little")
            frames.append(data[at + 16:at + 16 + length].hex())
            at += 16 + length
        return frames

    def leaves(self, port, *frames):
        self.wait(lambda: len(self.out(port)) >= len(frames))
        assert self.out(port) == list(frames)

    def ports(self):
        """Packets received and sent by port."""
        text = self.ofctl("OpenFlow13", "dump-ports")
        return {int(port): (int(rx), int(tx))
                for port, rx, tx in re.findall(r"port +(\d+): rx pkts=(\d+),.*?tx pkts=(\d+),", text, re.S)}

    def control(self, command, data=""):
        """What the control socket answers to a command: the data, if it has some."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(self.folder / "control"))
            client.sendall(f"{command}\n{data}QUIT\n".encode())
            answer = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        assert re.search(r"^200 (Read|Write) handler", answer, re.M), answer
        found = re.search(r"^DATA (\d+)\r\n", answer, re.M)
        return answer[found.end():found.end() + int(found[1])] if found else ""

    def read(self, handler):
        return self.control(f"READ {handler}")

    def write(self, handler, value):
        self.control(f"WRITEDATA {handler} {len(value)}", value)

    def monitor(self, version, *arguments):
        """ovs-ofctl that prints what comes; messages() reads it."""
        self.log = open(self.folder / "monitor", "w+")
        environment = {**os.environ, "OVS_RUNDIR": str(self.folder)}
        process = subprocess.Popen(["ovs-ofctl", "-O", version, "monitor", f"unix:{self.folder}/mgmt", *arguments], cwd=self.folder,
                                   env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        # It answers when it has said what it wants, and asks for a barrier behind that.
        answers = ["ovs-appctl", "-t", self.folder / f"ovs-ofctl.{process.pid}.ctl", "ofctl/barrier"]
        self.wait(lambda: subprocess.run(answers, cwd=self.folder, env=environment, capture_output=True, timeout=20).returncode == 0)
        return process

    def messages(self):
        return (self.folder / "monitor").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_move_packets(tmp_path, version):
    with Switch(tmp_path) as switch:
        shown = switch.ofctl(version, "show")
        assert "dpid:0000000000000001" in shown and "3(port3)" in shown and "n_tables:255" in shown
        assert "frags=normal" in shown
        switch.ofctl(version, "add-flow", "in_port=1,udp,nw_dst=10.0.0.0/24,actions=mod_nw_dst:10.9.9.9,output:2")
        switch.ofctl(version, "add-flow", "priority=1,actions=output:3")
        assert len(switch.flows(version)) == 2
        switch.send(1, UDP, version)
        switch.send(1, ARP, version)
        switch.send(3, ARP, version)  # never back by the port where it came in
        switch.leaves(3, ARP)
        switch.wait(lambda: len(switch.out(2)) == 1)
        assert switch.out(2)[0][60:68] == "0a090909"
        switch.ofctl(version, "mod-flows", "udp,actions=output:3")
        switch.send(1, UDP, version)
        switch.leaves(3, ARP, UDP)
        text = switch.ofctl(version, "dump-aggregate")
        assert "packet_count=4" in text and "flow_count=2" in text
        assert "lookup=4, matched=4" in switch.ofctl(version, "dump-tables")
        assert switch.ports() == {1: (0, 0), 2: (0, 1), 3: (0, 2)}
        switch.ofctl(version, "del-flows", "udp")
        assert len(switch.flows(version)) == 1
        assert "Headrace" in switch.ofctl(version, "dump-desc")


def test_groups_and_meters(tmp_path):
    with Switch(tmp_path) as switch:
        run = lambda *words: switch.ofctl("OpenFlow13", *words)
        run("add-group", "group_id=1,type=all,bucket=output:2,bucket=output:3")
        run("add-group", "group_id=2,type=ff,bucket=watch_port:1,output:1,bucket=watch_port:2,output:2")
        run("add-meter", "meter=7,pktps,burst,band=type=drop,rate=1,burst_size=2")
        run("add-flow", "in_port=1,actions=group:1")
        run("add-flow", "in_port=3,actions=meter:7,group:2")
        switch.send(1, ARP)
        switch.leaves(2, ARP)
        switch.leaves(3, ARP)
        switch.send(3, ARP)
        switch.leaves(1, ARP)
        run("mod-port", "1", "down")
        assert "PORT_DOWN" in run("dump-ports-desc")
        switch.send(3, UDP)
        switch.leaves(2, ARP, UDP)
        switch.send(3, UDP)
        switch.send(3, UDP)  # above the meter's rate
        switch.leaves(2, ARP, UDP, UDP)
        assert "packet_count:1" in run("meter-stats").splitlines()[-1]
        stats = run("dump-group-stats")
        assert re.search(r"group_id=1,.*ref_count=1,packet_count=1,", stats)
        assert re.search(r"group_id=2,.*packet_count=3,.*bucket0:packet_count=1,.*bucket1:packet_count=2", stats)
        assert "watch_port:2" in run("dump-groups") and "rate=1 burst_size=2" in run("dump-meters")
        assert "group_id=2,type=ff" in switch.read("sw/control.groups")
        assert "meter=7 pktps, packets=4" in switch.read("sw/control.meters")
        assert "OFPGMFC_GROUP_EXISTS" in switch.ofctl("OpenFlow13", "add-group", "group_id=1,type=all", status=1)
        assert run("del-groups") == "" and switch.flows() == []


def test_errors_change_nothing(tmp_path):
    with Switch(tmp_path) as switch:
        for version, flow, error in [
                ("OpenFlow13", "in_port=1,actions=output:9", "OFPBAC_BAD_OUT_PORT"),
                ("OpenFlow10", "in_port=1,actions=output:9", "OFPBAC_BAD_OUT_PORT"),
                ("OpenFlow13", "in_port=1,actions=group:9", "OFPBAC_BAD_OUT_GROUP"),
                ("OpenFlow13", "in_port=1,actions=set_queue:1,output:2", "OFPBAC_BAD_QUEUE"),
                ("OpenFlow13", "in_port=1,actions=meter:9", "OFPMMFC_INVALID_METER"),
        ]:
            assert error in switch.ofctl(version, "add-flow", flow, status=1)
        assert switch.flows() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_controllers_hear_of_packets_and_entries(tmp_path, version):
    with Switch(tmp_path) as switch:
        switch.ofctl(version, "add-flow", "in_port=3,actions=CONTROLLER:20")
        monitor = switch.monitor(version, "65534")
        try:
            # Long enough for the packet to come in time on a machine that has other work, too.
            switch.ofctl(version, "add-flow", "in_port=2,hard_timeout=3,send_flow_rem,actions=output:3")
            switch.send(2, ARP, version)
            switch.send(1, ARP, version)  # a miss: 1.0 hears of it, 1.3 does not
            switch.send(3, UDP, version)  # whose message is behind that of the miss
            switch.wait(lambda: "in_port=3" in switch.messages() and "reason=hard" in switch.messages())
            text = switch.messages()
            assert re.search(r"in_port=3 \(via action\) data_len=20 .*buffer=0x", text)
            assert ("in_port=1 (via no_match) data_len=60" in text) == (version == "OpenFlow10")
            removed = re.search(r"reason=hard .*duration([\d.]+)s .*pkts1 bytes60", text)
            assert removed and 3 <= float(removed[1]) < 4, text
            assert switch.flows(version) == ["in_port=3 actions=CONTROLLER:20"]
            switch.ofctl(version, "mod-port", "2", "no-flood" if version == "OpenFlow10" else "no-forward")
            switch.wait(lambda: "PORT_STATUS" in switch.messages())
        finally:
            monitor.terminate()
            monitor.wait()


def test_idle_entries_stay_while_they_are_used(tmp_path):
    source = "s :: TrafficSource(RATE 200) -> [0] sw; Idle -> [1] sw; Idle -> [2] sw;"
    with Switch(tmp_path, inputs=source) as switch:
        begun = time.monotonic()
        switch.ofctl("OpenFlow13", "add-flow", "in_port=1,idle_timeout=1,actions=output:2")
        time.sleep(1.5)
        assert len(switch.flows()) == 1
        switch.write("s.active", "false")
        stopped = time.monotonic()
        switch.wait(lambda: not switch.flows())
        assert 0.8 < time.monotonic() - stopped < 1.6 and begun < stopped
        received, sent = switch.ports()[1][0], switch.ports()[2][1]
        assert 200 < sent <= received


class Client:
    """A controller of a few messages of 1.3, without pauses."""

    ECHO_REQUEST, FLOW_MOD, MULTIPART, BARRIER = 2, 14, 18, 20
    ADD, MODIFY = 0, 1
    PORT_STATS = 4

    def __init__(self, switch):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(str(switch.folder / "mgmt"))
        self.stream = self.socket.makefile("rb")
        self.send(0)
        assert self.receive()[0] == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, kind, body=b""):
        self.socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), 1) + body)

    def receive(self):
        _, kind, length, _ = struct.unpack("!BBHI", self.stream.read(8))
        return kind, self.stream.read(length - 8)

    def barrier(self):
        self.send(self.BARRIER)
        assert self.receive() == (21, b"")

    def output_of_port_1(self, command, port):
        match = struct.pack("!HHIII", 1, 12, 0x80000004, 1, 0)
        apply = struct.pack("!HHIHHIH6x", 4, 24, 0, 0, 16, port, 0xffff)
        self.send(self.FLOW_MOD, struct.pack("!QQBBHHHIIIHxx", 0, 0, 0, command, 0, 0, 5, 0xffffffff, 0xffffffff, 0xffffffff, 0)
                  + match + apply)

    def sent(self):
        """Packets that have left, by port."""
        self.send(self.MULTIPART, struct.pack("!HHIII", self.PORT_STATS, 0, 0, 0xffffffff, 0))
        _, body = self.receive()
        return {struct.unpack_from("!I", body, at)[0]: struct.unpack_from("!Q", body, at + 16)[0]
                for at in range(8, len(body), 112)}


@pytest.mark.parametrize("options", [(), ("--mode", "device", "--backend", "reference"),
                                     ("--mode", "fixed=0.5", "--backend", "reference")], ids=["cpu", "reference", "mixed"])
def test_no_packet_behind_a_barrier_meets_the_old_entry(tmp_path, options):
    """Under traffic: what has left by a port when a barrier is answered is all that leaves by it."""
    source = "s :: TrafficSource(RATE 20000, ACTIVE false) -> [0] sw; Idle -> [1] sw; Idle -> [2] sw;"
    with Switch(tmp_path, inputs=source, options=options) as switch, Client(switch) as client:
        client.output_of_port_1(Client.ADD, 2)
        client.barrier()
        switch.write("s.active", "true")
        for _ in range(100):
            for port, old in (3, 2), (2, 3):
                client.output_of_port_1(Client.MODIFY, port)
                client.barrier()
                begin = now = client.sent()
                end = time.monotonic() + 30
                while now[port] == begin[port]:
                    assert time.monotonic() < end
                    now = client.sent()
                assert now[old] == begin[old]
        switch.write("s.active", "false")
        left = lambda: sum(client.sent()[port] for port in (2, 3))
        switch.wait(lambda: left() == int(switch.read("s.count")))
        entry = int(re.search(r"n_packets=(\d+)", switch.ofctl("OpenFlow13", "dump-flows"))[1])
        assert entry == left()


@pytest.mark.parametrize("options", [("-R",), ("-R", "--mode", "device", "--backend", "reference")], ids=["cpu", "reference"])
def test_the_next_configuration_goes_on(tmp_path, options):
    source = "TrafficSource(RATE 5000) -> [0] sw; Idle -> [1] sw; Idle -> [2] sw;"
    with Switch(tmp_path, inputs=source, options=options) as switch:
        switch.ofctl("OpenFlow13", "add-flow", "in_port=1,actions=output:2")
        switch.ofctl("OpenFlow13", "add-group", "group_id=1,type=all,bucket=output:2")
        monitor = switch.monitor("OpenFlow13", "65534")
        try:
            count = lambda: int(re.search(r"n_packets=(\d+)", switch.ofctl("OpenFlow13", "dump-flows"))[1])
            switch.wait(lambda: count() > 100)
            before, ports = count(), switch.ports()
            for _ in range(3):
                switch.write("hotconfig", (tmp_path / "switch.click").read_text())
                time.sleep(0.1)
            assert count() > before
            assert all(now >= then for port in ports for now, then in zip(switch.ports()[port], ports[port]))
            assert "group_id=1" in switch.ofctl("OpenFlow13", "dump-groups")
            # One port less: controllers hear of it, and entries that name it drop.
            text = (tmp_path / "switch.click").read_text().replace("Idle -> [2] sw;", "").replace("sw[2] -> ToDump(out3.pcap, UNBUFFERED true);", "")
            switch.write("hotconfig", text)
            switch.wait(lambda: re.search(r"PORT_STATUS .*: DEL: 3\(port3\)", switch.messages()))
            assert set(switch.ports()) == {1, 2}
            switch.write("hotconfig", (tmp_path / "switch.click").read_text())
            switch.wait(lambda: re.search(r"PORT_STATUS .*: ADD: 3\(port3\)", switch.messages()))
            # The same connection hears of what the new configuration does.
            switch.ofctl("OpenFlow13", "add-flow", "in_port=3,actions=CONTROLLER:65535")
            switch.send(3, ARP)
            switch.wait(lambda: "in_port=3 (via action)" in switch.messages())
        finally:
            monitor.terminate()
            monitor.wait()


def test_a_slow_configuration_holds_nothing_up(tmp_path):
    """While the next configuration is being made, which waits for a file here, the switch answers and obeys."""
    with Switch(tmp_path, options=("-R",)) as switch, Client(switch) as client:
        fifo = tmp_path / "slow"
        os.mkfifo(fifo)
        text = (tmp_path / "switch.click").read_text().replace("1, LISTEN", f"1, FLOWS {fifo}, LISTEN")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            swap = pool.submit(switch.write, "hotconfig", text)
            with open(fifo, "w") as file:  # waits until somebody reads it
                for i in range(100):
                    client.send(Client.ECHO_REQUEST, b"%d" % i)
                    assert client.receive() == (3, b"%d" % i)
                client.output_of_port_1(Client.ADD, 2)
                client.barrier()
                switch.send(1, ARP)
                switch.leaves(2, ARP)
                assert len(switch.flows()) == 1
                assert not swap.done()
                file.write("in_port=2,actions=output:3\n")
            swap.result(timeout=20)
        # The switch is there already, so what its file says is not for it. Captures begin anew.
        assert len(switch.flows()) == 1
        switch.send(1, ARP)
        switch.leaves(2, ARP)


def test_flows_of_a_file(tmp_path):
    (tmp_path / "my.flows").write_text("# entries\nin_port=1,arp actions=output:2\n"
                                       "table=1,priority=7,tcp,tp_dst=80,actions=dec_ttl,set_field:02:00:00:00:00:09->eth_dst,3\n"
                                       "in_port=LOCAL,dl_vlan=5 actions=strip_vlan,NORMAL\n")
    with Switch(tmp_path, "1, LISTEN punix:mgmt, FLOWS my.flows") as switch:
        switch.send(1, ARP)
        switch.leaves(2, ARP)
        assert switch.flows() == ["arp,in_port=1 actions=output:2", "in_port=LOCAL,dl_vlan=5 actions=pop_vlan,NORMAL",
                                  "table=1, priority=7,tcp,tp_dst=80 actions=dec_ttl,set_field:02:00:00:00:00:09->eth_dst,output:3"]
        # What the handler prints can be read again, by us and by ovs-ofctl.
        text = switch.read("sw/control.flows")
        (tmp_path / "again.flows").write_text(re.sub(r"(duration|n_packets|n_bytes)=[^,]*, ", "", text))
        switch.ofctl("OpenFlow13", "del-flows")
        switch.ofctl("OpenFlow13", "add-flows", "again.flows")
        assert len(switch.flows()) == 3
    (tmp_path / "bad.flows").write_text("in_port=1 actions=output:9\n")
    (tmp_path / "bad.click").write_text(THREE_PORTS % ("2, FLOWS bad.flows", NO_INPUTS))
    done = subprocess.run([HEADRACE, "run", "bad.click"], cwd=tmp_path, text=True, capture_output=True, timeout=20)
    assert done.returncode == 1 and "bad.flows:1: BAD_ACTION/BAD_OUT_PORT" in done.stderr


def test_normal_learns(tmp_path):
    with Switch(tmp_path) as switch:
        switch.ofctl("OpenFlow13", "add-flow", "actions=NORMAL")
        switch.send(1, UDP)  # from ...0a to ...0b, not known yet
        switch.leaves(2, UDP)
        switch.leaves(3, UDP)
        answer = UDP[12:24] + UDP[:12] + UDP[24:]
        switch.send(3, answer)
        switch.leaves(1, answer)
        switch.send(1, UDP)
        switch.leaves(3, UDP, UDP)
        switch.leaves(2, UDP)
        assert switch.read("sw/control.addresses") == "02-00-00-00-00-0A 1 0\n02-00-00-00-00-0B 3 0\n"


def test_standalone_until_a_controller_comes(tmp_path):
    if shutil.which("ovs-testcontroller") is None:
        pytest.skip("not installed: ovs-testcontroller (openvswitch-testcontroller, tools/deps test)")
    arguments = "1, LISTEN punix:mgmt, CONTROLLER unix:controller, FAIL standalone, LOST_AFTER 0.5s, MAX_BACKOFF 1s"
    source = "TrafficSource(RATE 1000) -> [0] sw; Idle -> [1] sw; Idle -> [2] sw;"
    with Switch(tmp_path, arguments, source) as switch:
        environment = {**os.environ, "OVS_RUNDIR": str(tmp_path)}
        floods = lambda: switch.ports()[3][1]
        switch.wait(lambda: floods() > 100)  # nobody has ever been there
        controller = subprocess.Popen(["ovs-testcontroller", "--mute", "punix:controller"], cwd=tmp_path, env=environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            switch.wait(lambda: "unix:controller connected" in switch.read("sw/control.controllers"))
            switch.ofctl("OpenFlow13", "add-flow", "in_port=1,actions=output:2")
            before, by_table = floods(), switch.ports()[2][1]
            switch.wait(lambda: switch.ports()[2][1] > by_table + 20)
            assert floods() == before
        finally:
            controller.kill()
            controller.wait()
        switch.wait(lambda: floods() > before + 100)
        assert "in_port=1 actions=output:2" in switch.flows()


HOSTS = """
ControlSocket(UNIX, control);
sw :: OpenFlowSwitch(a1, LISTEN punix:mgmt, LOCAL true);
FromDevice(left, SNIFFER false, PROMISC true) -> [0] sw; sw[0] -> Queue -> ToDevice(left);
FromDevice(right, SNIFFER false, PROMISC true) -> [1] sw; sw[1] -> Queue -> ToDevice(right);
FromDevice(spare, SNIFFER false, PROMISC true) -> [2] sw; sw[2] -> Queue -> ToDevice(spare);
sw[3] -> KernelTap(10.0.0.3/24, DEVNAME br0) -> [3] sw;
"""


def test_between_hosts(tmp_path):
    """Interfaces are ports with their names, addresses and links; LOCAL is the host; groups fail over."""
    netlab.need("ping", "ovs-ofctl")
    with netlab.Lab() as lab:
        left, router, right = lab.host("left"), lab.host("router"), lab.host("right")
        lab.cable(left, "eth0", router, "left")
        lab.cable(right, "eth0", router, "right")
        lab.cable(right, "eth1", router, "spare")
        left.address("eth0", "10.0.0.1/24")
        right.address("eth0", "10.0.0.2/24")
        (tmp_path / "hosts.click").write_text(HOSTS)
        headrace = router.start(HEADRACE, "run", "-q", "-w", "1", "hosts.click", cwd=tmp_path)
        ofctl = lambda *words: netlab.call("ovs-ofctl", "-O", "OpenFlow13", words[0], f"unix:{tmp_path}/mgmt", *words[1:]).stdout
        end = time.monotonic() + 10
        while not (tmp_path / "mgmt").exists():
            assert time.monotonic() < end and headrace.poll() is None
            time.sleep(0.02)
        time.sleep(0.2)
        shown = ofctl("dump-ports-desc")
        for number, name in enumerate(["left", "right", "spare"], 1):
            assert f"{number}({name}): addr:{router.mac(name)}" in shown
        assert "LOCAL(br0)" in shown and shown.count("LIVE") == 4
        ofctl("add-flow", "actions=NORMAL")
        left.run("ping", "-c", "2", "-i", "0.2", "-W", "2", "10.0.0.2")
        left.run("ping", "-c", "2", "-i", "0.2", "-W", "2", "10.0.0.3")
        # A link that dies is seen, and the next bucket is alive.
        ofctl("add-group", "group_id=1,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3")
        ofctl("add-flow", "priority=40000,in_port=1,actions=group:1")
        port = right.port("eth1")
        with port, left.port("eth0") as sender:
            right.ip("link", "set", "eth0", "down")
            time.sleep(0.05)  # ONF asks for none, we for this
            frame = bytes.fromhex(ARP)
            port.drain()
            sender.send(frame)
            while (got := port.receive(2)) != frame:
                assert got is not None
        assert re.search(r"2\(right\):.*\n.*\n +state: +LINK_DOWN", ofctl("dump-ports-desc"))
