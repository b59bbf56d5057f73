#!/usr/bin/env python3
"""Prints policies and associations for ipsec.click: one association for each part of the IPv4 addresses.

usage: ipsec_config.py [ctr-sha1|cbc-sha1|gcm|ctr256-sha256|null-sha1] [ASSOCIATIONS, a power of two, default 64]
"""
import ipaddress
import random
import sys

SUITES = {
    "ctr-sha1": ("aes-128-ctr", 20, "sha1-hmac", 20),
    "cbc-sha1": ("aes-128-cbc", 16, "sha1-hmac", 20),
    "gcm": ("aes-128-gcm", 20, None, 0),
    "ctr256-sha256": ("aes-256-ctr", 36, "sha256-hmac", 32),
    "null-sha1": ("null", 0, "sha1-hmac", 20),
}


def main() -> int:
    suite = SUITES.get(sys.argv[1] if len(sys.argv) > 1 else "ctr-sha1")
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    if not suite or n & (n - 1) or not 1 <= n <= 65536:
        print(__doc__, file=sys.stderr)
        return 1
    cipher, key, integrity, auth_key = suite
    r = random.Random(1)

    def secret(length):
        return ":".join(f"{b:02x}" for b in r.randbytes(length))

    for i, prefix in enumerate(ipaddress.ip_network("0.0.0.0/0").subnets(n.bit_length() - 1)):
        algorithms = f"aead_algo {cipher} aead_key {secret(key)}" if integrity is None else (
            f"cipher_algo {cipher} " + (f"cipher_key {secret(key)} " if key else "") +
            f"auth_algo {integrity} auth_key {secret(auth_key)}")
        print(f"sp ipv4 out esp protect {1000 + i} pri 1 dst {prefix}")
        print(f"sa out {1000 + i} {algorithms} mode ipv4-tunnel src 192.0.2.1 dst 192.0.2.2")
    return 0


if __name__ == "__main__":
    sys.exit(main())
