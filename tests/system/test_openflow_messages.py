"""OpenFlow messages as the codec writes them (tests/data/openflow), read by ovs-ofctl and tshark. The unit tests
OpenFlowSamples show that the codec still writes them."""

import pathlib
import re
import shutil
import struct
import subprocess

import pytest

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "openflow"


def messages(name):
    """The messages of a file, each with its header."""
    stream = (DATA / name).read_bytes()
    found = []
    while stream:
        (length,) = struct.unpack_from("!H", stream, 2)
        found.append(stream[:length])
        stream = stream[length:]
    return found


def ovs_ofctl(name):
    """What ovs-ofctl prints of each message, by its xid."""
    if shutil.which("ovs-ofctl") is None:
        pytest.skip("not installed: ovs-ofctl (openvswitch-common, tools/deps test)")
    done = subprocess.run(["ovs-ofctl", "ofp-parse", DATA / name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    texts = {}
    for line in done.stdout.splitlines():
        begin = re.match(r"(?:OFP|NX)\w+ .*?\(xid=0x([0-9a-f]+)\):", line)
        if begin and begin[1] != "0":  # 0: the message within an error
            xid = int(begin[1], 16)
            texts[xid] = line
        elif texts:
            texts[xid] += "\n" + line
    return [texts[xid] for xid in sorted(texts)]


# What ovs-ofctl must find in the messages, in their order: the numbers that sample_messages.hh put there.
COMMON = [
    "version bitmap: 0x01, 0x04", "OFPBRC_BAD_LEN", "68 69", "68 6f", "FEATURES_REQUEST",
    "dpid:0102030405060708\nn_tables:4, n_buffers:256\ncapabilities: FLOW_STATS TABLE_STATS PORT_STATS QUEUE_STATS",
    "GET_CONFIG_REQUEST", "frags=normal miss_send_len=98", "frags=drop miss_send_len=99",
    "total_len=42 in_port=32 (via action) data_len=42 buffer=0x0000001f\nudp,vlan_tci=0x0000,dl_src=02:00:00:00:00:01",
    "priority=43,in_port=41 reason=hard", "MOD: 3(eth3): addr:02:00:00:00:00:03\n     config:     NO_FWD",
    "in_port=51 actions=output:52,FLOOD data_len=42",
    "ADD priority=24,tcp,in_port=1,dl_vlan=10,dl_vlan_pcp=2,nw_src=10.0.0.0/8,nw_dst=10.1.2.3,nw_tos=184,tp_src=1,tp_dst=2 "
    "cookie:0x21 idle:22 hard:23 send_flow_rem check_overlap actions=output:2",
    "ADD priority=24 cookie:0x21 idle:22 hard:23 send_flow_rem check_overlap actions=drop", "DEL_STRICT priority=24,dl_vlan=10",
    "port: 3: addr:02:00:00:00:00:03\n     config: PORT_DOWN\n     mask:   PORT_DOWN NO_RECV\n     advertise: 10GB-FD",
    "OFPST_DESC request", "table=0 out_port=2 tcp,tp_dst=80", "OFPST_AGGREGATE request", "OFPST_TABLE request", "port_no=ANY",
    "port=3 queue=ALL", "Manufacturer: Headrace\nHardware: CPU\nSoftware: 0.1.0\nSerial Num: 42\nDP Description: br0",
    "flags=[more]\n cookie=0x16, duration=11.012s, table=0, n_packets=17, n_bytes=18, idle_timeout=14, hard_timeout=15, "
    "priority=13,arp,arp_tpa=10.0.0.9 actions=output:2\n",
    "packet_count=71 byte_count=72 flow_count=73", "active=81, lookup=82, matched=83",
    "rx pkts=101, bytes=103, drop=105, errs=107, frame=109, over=110, crc=111\n"
    "           tx pkts=102, bytes=104, drop=106, errs=108, coll=112",
    "port 3 queue 61: bytes=91, pkts=92, errors=93", "BARRIER_REQUEST", "BARRIER_REPLY", "port=3",
    "port=3\nqueue 61: min_rate:50.0%", "role=primary", "role=secondary",
]
ONLY_1_0 = [
    "udp,in_port=LOCAL", "priority=65535,tcp,in_port=4,vlan_tci=0x0000,",  # an entry without wildcards
]
ONLY_1_3 = [
    "priority=24,ip,in_port=1 cookie:0x21 idle:22 hard:23 send_flow_rem check_overlap actions=meter:6,push_vlan:0x88a8,"
    "set_field:4106->vlan_vid,pop_vlan,push_mpls:0x8847,set_mpls_ttl(63),dec_mpls_ttl,pop_mpls:0x0800,mod_nw_ttl:62,dec_ttl,"
    "set_field:10.9.8.7->ip_dst,set_queue:4,group:5,IN_PORT,CONTROLLER:128,clear_actions,write_actions(output:7),"
    "write_metadata:0x1200/0xff00,goto_table:9",
    "tun_id=0x4/0x7,metadata=0x30/0xf0,in_port=1,dl_src=02:00:00:00:00:05/ff:00:00:00:00:ff",
    "icmp,dl_vlan_pcp=3,nw_ecn=2,icmp_type=8,icmp_code=1", "udp,tp_src=1,tp_dst=2", "sctp,tp_src=3,tp_dst=4",
    "arp,arp_spa=10.0.0.1,arp_tpa=10.0.0.0/24,arp_op=2,arp_sha=02:00:00:00:00:06,arp_tha=02:00:00:00:00:07",
    "tcp6,ipv6_src=2001:db8::/32,ipv6_dst=2001:db8::1,ipv6_label=0x12345,tp_src=5,tp_dst=6",
    "icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=02:00:00:00:00:08", "icmp6,icmp_type=136,nd_tll=02:00:00:00:00:09",
    "mpls,mpls_label=100,mpls_tc=1,mpls_bos=1",
    "MOD group_id=111,type=select,bucket=weight:112,actions=output:1,bucket=weight:113,watch_port:114,watch_group:115,"
    "actions=set_field:02:00:00:00:00:0a->eth_dst,output:2",
    "table_id=5",
    "ADD meter=125 kbps burst bands=\ntype=drop rate=121 burst_size=122\ntype=dscp_remark rate=123 burst_size=124 prec_level=1",
    "GET_ASYNC_REQUEST", "FLOW_REMOVED: idle hard delete group_delete", "PACKET_IN: no_match action", "group_id=111",
    "OFPST_GROUP_DESC request", "OFPST_GROUP_FEATURES request", "meter=all", "meter=125", "OFPST_METER_FEATURES request",
    "OFPST_TABLE_FEATURES request", "OFPST_PORT_DESC request", "priority=13,ip,in_port=1 actions=meter:6,push_vlan:0x88a8",
    "group_id=111,duration=134.135s,ref_count=131,packet_count=132,byte_count=133,bucket0:packet_count=136,byte_count=137,"
    "bucket1:packet_count=138,byte_count=139",
    "group_id=111,type=ff,bucket=weight:112,actions=output:1,bucket=weight:113,watch_port:114,watch_group:115",
    "max_groups=0x8f\n       actions: output group",
    "meter:125 flow_count:151 packet_in_count:152 byte_in_count:153 duration:154.155s bands:\n"
    "0: packet_count:156 byte_count:157\n1: packet_count:158 byte_count:159",
    "meter=125 pktps stats bands=", "max_meter:161 max_bands:2 max_color:3\nband_types: drop dscp_remark",
    "metadata: match=0x171 write=0x172\n    max_entries=173", "speed: 10000 Mbps now, 40000 Mbps max",
]


@pytest.mark.parametrize("name, expected", [("samples_10.bin", COMMON + ONLY_1_0), ("samples_13.bin", COMMON + ONLY_1_3)])
def test_ovs_ofctl_reads_every_message(name, expected):
    texts = ovs_ofctl(name)
    assert len(texts) == len(expected) == len(messages(name))
    for text, part in zip(texts, expected):
        assert part in text
        assert "decode error" not in text and "***" not in text.replace("(***truncated to 8 bytes from 9***)", "")


def test_ovs_ofctl_sees_the_same_entries_in_both_versions():
    # The words of ovs-ofctl for actions that mean the same.
    same = [("mod_vlan_vid:10", "push_vlan:0x8100,set_field:4106->vlan_vid"), ("strip_vlan", "pop_vlan"),
            ("mod_dl_src:02:00:00:00:00:03", "set_field:02:00:00:00:00:03->eth_src"),
            ("mod_nw_dst:10.0.0.9", "set_field:10.0.0.9->ip_dst"), ("mod_tp_dst:8080", "set_field:8080->tcp_dst"),
            ("mod_nw_tos:184", "set_field:46->ip_dscp"), ("mod_tp_src:54", "set_field:54->udp_src"),
            ("vlan_tci=0x0000 ", "vlan_tci=0x0000/0x1fff ")]
    in_10, in_13 = ovs_ofctl("views_10.bin"), [text.replace(" (OF1.3)", "") for text in ovs_ofctl("views_13.bin")]
    assert len(in_10) == len(messages("views_10.bin")) == 9
    for old, new in same:
        assert any(old in text for text in in_10)
        in_10 = [text.replace(old, new) for text in in_10]
    assert in_10 == in_13


def tshark_misreads(message):
    """tshark 4.0 reads exactly one action in these messages of 1.0, and it reads past the end of an experimenter's
    multipart reply. It does so with the messages of os-ken, too, which has the same bytes."""
    version, kind = message[0], message[1]
    if version == 4:
        return kind == 19 and message[8:10] == b"\xff\xff"
    if kind not in (13, 14):
        return False
    actions = message[72:] if kind == 14 else message[16:16 + int.from_bytes(message[14:16], "big")]
    return len(actions) == 0 or len(actions) != int.from_bytes(actions[2:4], "big")


@pytest.mark.parametrize("name", ["samples_10.bin", "samples_13.bin", "samples_13_more.bin", "views_10.bin", "views_13.bin"])
def test_tshark_reads_every_message(name, tmp_path):
    if shutil.which("tshark") is None:
        pytest.skip("not installed: tshark (tools/deps test)")
    scapy = pytest.importorskip("scapy.all", reason="not installed: python3-scapy (tools/deps test)")
    sent, sequence, packets = messages(name), 1, []
    for message in sent:
        packets.append(scapy.Ether() / scapy.IP(src="10.0.0.1", dst="10.0.0.2") /
                       scapy.TCP(sport=6653, dport=40000, seq=sequence, ack=1, flags="PA") / message)
        sequence += len(message)
    capture = tmp_path / "messages.pcap"
    scapy.wrpcap(str(capture), packets)
    done = subprocess.run(["tshark", "-r", capture, "-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-e", "openflow.version",
                           "-e", "openflow_v4.version", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "_ws.col.Info"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(sent)
    for line, message in zip(lines, sent):
        old, new, malformed, expert, info = line.split(";", 4)
        assert f"0x{message[0]:02x}" in (old + "," + new).split(","), line
        assert "ype: OFPT_" in info, line
        if tshark_misreads(message):
            continue
        assert malformed == "", line
        # What tshark has not learned to read, it says; what else it notes is a mistake.
        notes = [note for note in expert.split(",") if note]
        assert all(note.endswith("not dissected yet") or re.fullmatch(r"Experimenter .*body\.", note) for note in notes), line
        assert not notes or old or message[1] in (4, 18, 19), line
