"""The real pydynox as one side of a test: takes and frees locks as it is told, a JSON object a line.

Usage: contender.py ENDPOINT TABLE WITNESSES

Commands come on standard input and name an `id`; what came of them goes to standard output under the same `id`. While a
lock is held, the file of its key in the folder WITNESSES is locked as well and a letter is written to it: the other side
does the same, so that two holders at once would be seen.
"""

import fcntl
import json
import sys
import threading
import time
from pathlib import Path

import pydynox
from pydynox import pydynox_core
from pydynox.exceptions import LockLost, LockNotAcquired
from pydynox.lock import SyncDistributedLock

ENDPOINT, TABLE, WITNESSES = sys.argv[1], sys.argv[2], Path(sys.argv[3])

# Created before any thread: all of them share its connections and its observations, as in a program that uses pydynox.
CLIENT = pydynox.DynamoDBClient(
    region="eu-central-1", endpoint_url=ENDPOINT, access_key="AKIDEXAMPLE", secret_key="not a secret"
)

told = threading.Lock()
to_be_freed = {}


def tell(id, event, **more):
    with told:
        print(json.dumps({"id": id, "event": event, **more}), flush=True)


class Witness:
    """The lock of the kernel's that says whether two hold one key. A killed process loses it at once."""

    def __init__(self, key):
        self.file = open(WITNESSES / key, "a")

    def take(self):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.file.write("p")
        self.file.flush()
        return True

    def drop(self):
        self.file.close()


def lock_of(command):
    return SyncDistributedLock(
        CLIENT,
        table=TABLE,
        key=command["key"],
        lease_duration=command["lease"],
        wait_timeout=command["wait"],
    )


def tell_when_waiting(id, lock, over):
    """A contender that has looked at the row has been refused, and waits."""
    while not over.is_set():
        if lock.metrics.read_requests > 0:
            tell(id, "waiting")
            return
        time.sleep(0.002)


def acquire(command):
    """Takes the lock, tells so, and holds it until it is told to free it."""
    id, over = command["id"], threading.Event()
    lock = lock_of(command)
    watcher = threading.Thread(target=tell_when_waiting, args=(id, lock, over), daemon=True)
    # With nothing to wait, pydynox reads the row once to see that it is held, and gives up.
    if command["wait"] > 0:
        watcher.start()
    try:
        with lock:
            over.set()
            if command["wait"] > 0:
                watcher.join()
            witness = Witness(command["key"])
            tell(id, "held" if witness.take() else "overlap")
            to_be_freed[id].wait()
            lock.raise_if_lost()
            witness.drop()
        tell(id, "freed")
    finally:
        over.set()


def rounds(command):
    """Takes and frees the lock again and again."""
    overlaps = 0
    for _ in range(command["rounds"]):
        with lock_of(command):
            witness = Witness(command["key"])
            overlaps += not witness.take()
            time.sleep(command["work"])
            witness.drop()
    tell(command["id"], "done", overlaps=overlaps)


def resolve(command):
    """What key a decorated function's template makes of these arguments, all of them passed by name."""
    names = list(command["values"])
    by_name_or_position = 1
    parameters = [(name, by_name_or_position, False, None) for name in names]
    template = pydynox_core.LockKeyTemplate(command["template"], parameters, 30.0, 35.0)
    tell(command["id"], "key", key=template.resolve((), command["values"]))


DO = {"acquire": acquire, "rounds": rounds, "resolve": resolve}


def run(command):
    id = command["id"]
    try:
        DO[command["do"]](command)
    except (LockNotAcquired, LockLost) as refused:
        tell(id, type(refused).__name__)
    except Exception as failed:
        tell(id, "failed", type=type(failed).__name__, message=str(failed))


def main():
    tell(0, "ready", version=pydynox.__version__)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "free":
            to_be_freed[command["id"]].set()
        elif command["do"] == "resolve":
            run(command)
        else:
            to_be_freed[command["id"]] = threading.Event()
            threading.Thread(target=run, args=(command,), daemon=True).start()


main()
