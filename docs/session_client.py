#!/usr/bin/env python3
"""A client of the keeper in Python's standard library alone, written from session.md.

As a program it takes a lease, holds it until it was renewed past its first validity, checks it, gives it back, and shows
that the key is free again; each step is printed. Its arguments: the table, the key, the lease in milliseconds.
"""

import json
import os
import socket
import sys
import time

SOCKET = os.environ.get("LEASEHOLD_SOCKET") or "/tmp/leasehold/keeper.sock"
VERSIONS = {"min": 1, "max": 1}
LONGEST = 65536


class Gone(Exception):
    """The keeper is gone, or refused a line: what was held counts as lost."""


class Connection:
    """Lines of JSON to and from the keeper."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.socket.connect(SOCKET)
        self.received = b""

    def say(self, **message):
        line = json.dumps(message).encode()
        assert len(line) <= LONGEST
        self.socket.sendall(line + b"\n")

    def hear(self, within):
        """The next line, waited for so many seconds."""
        end = time.monotonic() + within
        while b"\n" not in self.received:
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            chunk = self.socket.recv(4096)
            if not chunk or len(self.received) > LONGEST:
                raise Gone("the connection ended")
            self.received += chunk
        line, self.received = self.received.split(b"\n", 1)
        message = json.loads(line)
        if message["type"] == "error":
            raise Gone(message["message"])
        return message

    def began(self):
        version = self.hear(10)["version"]
        if not VERSIONS["min"] <= version <= VERSIONS["max"]:
            raise Gone(f"the keeper picked session version {version}")

    def close(self):
        self.socket.close()


def hello():
    connection = Connection()
    connection.say(type="hello", versions=VERSIONS)
    connection.close()


class Session:
    """One invocation."""

    def __init__(self, request_id, deadline_ms=None):
        self.connection = Connection()
        self.connection.say(type="begin", versions=VERSIONS, request_id=request_id, deadline_ms=deadline_ms)
        self.connection.began()
        self.last_id = 0

    def acquire(self, table, key, lease_ms, wait_ms=0):
        """The answer: `granted`, `busy` or `failed`."""
        self.last_id += 1
        self.connection.say(
            type="acquire", id=self.last_id, key=key, table={"name": table, "key_attribute": "key"},
            lease_ms=lease_ms, wait_ms=wait_ms, max_hold_ms=900_000, holder={"function": "session_client.py"},
        )
        return self.about(self.last_id, wait_ms / 1000 + 15)

    def release(self, id, reason="finished", wait=False):
        self.connection.say(type="release", id=id, reason=reason, wait=wait)
        while True:
            # What the keeper wrote before it read the `release` may come first, and means nothing any more.
            message = self.about(id, 10)
            if message["type"] in ("released", "failed"):
                return message

    def about(self, id, within):
        while True:
            message = self.connection.hear(within)
            if message.get("id") == id:
                return message

    def end(self):
        self.connection.say(type="end")
        self.connection.close()


def check(owner):
    connection = Connection()
    connection.say(type="check", owner=owner)
    answer = connection.hear(5)
    connection.close()
    return answer


def main(table, key, lease_ms):
    def show(message, *fields):
        print(message["type"], *(message[field] for field in fields), flush=True)
        return message

    hello()
    session = Session("python-1", deadline_ms=int(time.time() * 1000) + 600_000)
    granted = show(session.acquire(table, key, lease_ms))
    owner, token = granted["owner"], granted.get("token")
    other = Session("python-2")
    show(other.acquire(table, key, lease_ms))
    end = time.monotonic() + lease_ms / 1000
    while time.monotonic() < end:
        # Whatever comes unasked would be `at_risk` or worse.
        try:
            show(session.about(granted["id"], 0.2))
        except TimeoutError:
            pass
    show(check(owner), "state")
    show(session.release(granted["id"], wait=True))
    show(check(owner), "state")
    again = show(other.acquire(table, key, lease_ms))
    assert token is None or again["token"] > token, "tokens only grow"
    show(other.release(again["id"], wait=True))
    other.end()
    session.end()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
