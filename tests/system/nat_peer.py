"""What runs inside the namespaces of test_nat.py, as `python3 nat_peer.py COMMAND ...`."""

import asyncio
import os
import random
import socket
import struct
import sys
import time

TCP_PORT, UDP_PORT, CLOSED_PORT = 8000, 9000, 9


async def echo(reader, writer):
    """The peer's address in a line, then whatever is sent."""
    writer.write(("%s %d\n" % writer.get_extra_info("peername")[:2]).encode())
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


class UdpEcho(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(f"{address[0]} {address[1]}\n".encode() + data, address)


async def serve(address):
    server = await asyncio.start_server(echo, address, TCP_PORT, backlog=1024)
    await asyncio.get_running_loop().create_datagram_endpoint(UdpEcho, (address, UDP_PORT))
    print("ready", flush=True)
    await server.serve_forever()


async def exchange(address, size, barrier=None):
    """Sends random bytes and compares what comes back; returns the address that the server has seen."""
    reader, writer = await asyncio.wait_for(asyncio.open_connection(address, TCP_PORT), 20)
    seen = (await asyncio.wait_for(reader.readline(), 20)).decode().split()
    if barrier:
        await barrier()
    data = os.urandom(size)
    writer.write(data)
    back = await asyncio.wait_for(reader.readexactly(size), 30)
    assert back == data, "other bytes came back"
    writer.close()
    await writer.wait_closed()
    return seen


def tcp(address, size):
    print(*asyncio.run(exchange(address, int(size))))


def many(address, count):
    """Connections that are all open at the same time."""
    count = int(count)

    async def run():
        everybody = asyncio.Event()
        waiting = 0

        async def barrier():
            nonlocal waiting
            waiting += 1
            if waiting == count:
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 30)

        seen = await asyncio.gather(*(exchange(address, 2000, barrier) for _ in range(count)))
        print(len({tuple(s) for s in seen}), *sorted({s[0] for s in seen}))

    asyncio.run(run())


def udp(address, size):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        data = random.randbytes(int(size))
        s.sendto(data, (address, UDP_PORT))
        seen, _, back = s.recv(65536).partition(b"\n")
        assert back == data, "other bytes came back"
        print(seen.decode())


def refused(address):
    """The error that a port unreachable message about our packet makes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.connect((address, CLOSED_PORT))
        s.send(b"anybody there?")
        try:
            s.recv(100)
        except ConnectionRefusedError:
            print("refused")


def keep(address):
    """A connection that sends a line whenever it is told to, and says whether the same came back."""
    with socket.create_connection((address, TCP_PORT), 10) as s:
        stream = s.makefile("rwb")
        stream.readline()
        print("ready", flush=True)
        for line in sys.stdin.buffer:
            stream.write(line)
            stream.flush()
            print("same" if stream.readline() == line else "other", flush=True)


def flood(device, gateway, address, count):
    """TCP SYNs from that many addresses in 10.0.0.0/8, as frames."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((device, 0))
        ether = bytes.fromhex(gateway.replace(":", "")) + s.getsockname()[4] + b"\x08\x00"
        dst = socket.inet_aton(address)
        # The TCP checksum is wrong, so that the server does not answer.
        segment = struct.pack("!HHIIBBHHH", 1000, TCP_PORT, 1, 0, 0x50, 2, 1000, 0, 0)
        header = struct.Struct("!BBHHHBBHI4s")
        rest = 0x4500 + 40 + 0x4006 + sum(struct.unpack("!2H", dst))
        for n in range(int(count)):
            src = 0x0a100000 + n
            total = rest + (src >> 16) + (src & 0xffff)
            total = (total & 0xffff) + (total >> 16)
            checksum = ~((total & 0xffff) + (total >> 16)) & 0xffff
            s.send(ether + header.pack(0x45, 0, 40, 0, 0, 64, 6, checksum, src, dst) + segment)
            if n % 2048 == 0:
                time.sleep(0.001)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "serve":
        asyncio.run(serve(*arguments))
    else:
        {"tcp": tcp, "many": many, "udp": udp, "refused": refused, "keep": keep, "flood": flood}[command](*arguments)
