"""Elements that rewrite headers do the same to packets on the CPU and on a device."""

import pytest

CHAIN = """
FromIPSummaryDump(packets.txt, CHECKSUM true, STOP true)
  -> MarkIPHeader -> SetIPDSCP(10) -> SetIPECN(ect1) -> MarkIPCE -> IPMirror
  -> o :: IPOutputCombo(1, 9.0.0.9, 1500)
  -> CheckIPHeader -> ResetIPChecksum
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
  -> VLANEncap(5, 3) -> VLANDecap -> VLANEncap(ANNO) -> EtherRewrite(3:3:3:3:3:3, 4:4:4:4:4:4)
  -> StripEtherVLANHeader -> SetVLANAnno(7) -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, ANNO)
  -> StripEtherVLANHeader -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
  -> IPInputCombo(5) -> CheckPaint(5) -> CheckLength(1000)
  -> ToIPSummaryDump(out.txt, HEADER false, FIELDS ip_src ip_dst ip_dscp ip_ecn ip_ttl ip_len ip_sum);
"""
PACKETS = 500


def results(headrace, *arguments):
    done = headrace("run", "-w", "1", "chain.click", "-r", "o.drop_reasons", *arguments)
    return sorted((headrace.folder / "out.txt").read_text().splitlines()), done.stdout


@pytest.fixture
def chain(headrace):
    lines = ["!data ip_src ip_dst ip_proto ip_tos ip_ttl ip_len"]
    lines += [f"10.0.{i % 7}.{i % 250} 10.1.{i % 5}.{i % 200} {'TUI'[i % 3]} {i % 256} {1 + i % 64} {60 + i}"
              for i in range(PACKETS)]
    (headrace.folder / "packets.txt").write_text("\n".join(lines) + "\n")
    (headrace.folder / "chain.click").write_text(CHAIN)
    return headrace


def test_a_device_gives_the_same_packets(chain):
    expired = len(range(0, PACKETS, 64))
    cpu, _ = results(chain, "--mode", "cpu")
    assert len(cpu) == PACKETS - expired
    assert all(line.split()[2:4] == ["10", "ce"] for line in cpu)
    device, log = results(chain, "--mode", "device", "--backend", "reference", "-r", "offload_counts")
    assert device == cpu
    assert f"job_packets: {PACKETS}\n" in log and "resumed: 0\n" in log and "escaped: 0\n" in log
    assert f"{expired}\tttl expired" in log
