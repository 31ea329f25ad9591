"""Plays the local loop of docs/local.md, with the commands that stand there, and looks at what function and extension say."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEBUG = ROOT / "target/debug"
KEY = "orders:A-1001"
# For what takes a moment; the machine may be busy with other things.
GENEROUS = 120
# The first holder's work: longer than it takes to start the second instance of a built function.
WORK_MS = 15_000


class Failed(Exception):
    pass


class Program:
    """A program in a process group of its own, with its output in a file."""

    started = []

    def __init__(self, folder, name, arguments, environment):
        self.name, self.path = name, folder / f"{name}.log"
        with self.path.open("wb") as output:
            self.process = subprocess.Popen(
                arguments, cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
        self.started.append(self)

    def log(self):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.path.read_text(errors="replace"))

    def wait_for(self, pattern, count=1):
        """Waits until as many lines fit; the lines. No program that the loop needs ends badly meanwhile."""
        end = time.monotonic() + GENEROUS
        while True:
            ended = self.process.poll() is not None
            failed = [it for it in self.started if it.process.poll()]
            lines = [line for line in self.log().splitlines() if re.search(pattern, line)]
            if len(lines) >= count:
                return lines
            if ended:
                raise Failed(f"{self.name} ended with {self.process.returncode} and never said {pattern!r}")
            if failed:
                raise Failed(f"{failed[0].name} ended with {failed[0].process.returncode}")
            if time.monotonic() > end:
                raise Failed(f"{self.name} did not say {pattern!r} {count} times in {GENEROUS} s")
            time.sleep(0.1)

    def end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{self.name} did not end") from late

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def event(folder, work_ms):
    made = json.loads((ROOT / "events/eventbridge-order.json").read_text())
    made["detail"]["work"] = {"sleep_ms": work_ms}
    path = folder / f"event-{work_ms}.json"
    path.write_text(json.dumps(made))
    return path


def field(line, name):
    return re.search(rf'\b{name}="?([^\s"]+)', line)[1]


def play(folder):
    def start(name, arguments, environment):
        return Program(folder, name, list(map(str, arguments)), environment)

    dynamodb = start("dynamodb", [DEBUG / "leasehold-sandbox", "dynamodb", "--port", "0", "--table", "locks"], {})
    dynamodb.wait_for("^export LEASEHOLD_TABLE=")
    told = dict(re.findall(r"^export (\w+)=(.*)$", dynamodb.log(), re.MULTILINE))
    told["LEASEHOLD_SOCKET"] = str(folder / "keeper.sock")

    port = free_port()
    address = ["--invoke-address", "127.0.0.1", "--invoke-port", port]
    watch = start(
        "watch",
        ["cargo", "lambda", "watch", "--package", "leasehold-sample", "--ignore-changes", "--concurrency", "2", *address],
        {**told, "LEASEHOLD_MAX_WAIT": "60s"},
    )
    # `LEASEHOLD_LOG` for what the emulator tells; the loop itself does not need it.
    api = f"http://127.0.0.1:{port}/.rt"
    extension = start(
        "extension", [DEBUG / "leasehold"], {**told, "AWS_LAMBDA_RUNTIME_API": api, "LEASEHOLD_LOG": "debug"}
    )
    extension.wait_for(r": registered id=")

    def invoke(name, work_ms):
        command = ["cargo", "lambda", "invoke", "leasehold-sample", "--data-file", event(folder, work_ms), *address]
        return start(name, command, {})

    first = invoke("first", WORK_MS)
    extension.wait_for(rf"acquired .*key={KEY} ")
    second = invoke("second", 100)
    extension.wait_for(rf"waiting .*key={KEY} ")
    if first.process.poll() is not None:
        raise Failed("the first invocation was over before the second one waited: nothing was contended")
    extension.wait_for(rf"released .*key={KEY} .*finished", 2)

    tokens = []
    for invocation in (first, second):
        if (code := invocation.process.wait(timeout=GENEROUS)) != 0:
            raise Failed(f"{invocation.name} exited with {code}")
        answer = json.loads(invocation.log())
        if answer.get("key") != KEY:
            raise Failed(f"{invocation.name} was answered {answer}")
        tokens.append(answer["token"])
    if not tokens[0] < tokens[1]:
        raise Failed(f"tokens {tokens} do not rise")
    began, ended = watch.wait_for("work began", 2), watch.wait_for("work ended", 2)
    end_of = {field(line, "token"): int(field(line, "at_us")) for line in ended}
    begin_of = {field(line, "token"): int(field(line, "at_us")) for line in began}
    if not end_of[str(tokens[0])] < begin_of[str(tokens[1])]:
        raise Failed("the two invocations worked at the same time")

    # If the emulator has learned to tell deadlines, this shows less than it says, and docs/local.md is out of date. It
    # tells an extension that is not waiting nothing, so that the second invocation may be missing here.
    deadlines = {field(line, "deadline_ms") for line in extension.wait_for(r"invocation request_id")}
    if deadlines != {"0"}:
        raise Failed(f"the emulator tells deadlines now: {deadlines}")
    if extension.end(signal.SIGINT) != 0:
        raise Failed("the extension did not end well")
    left = extension.wait_for(r"\bdrained\b")[0]
    watch.end(signal.SIGINT)
    dynamodb.end(signal.SIGINT)
    print(f"cargo lambda watch: two invocations, one after the other, tokens {tokens}; no deadline told; {left.strip()}")


def main():
    with tempfile.TemporaryDirectory(prefix="leasehold-loop-") as folder:
        try:
            play(pathlib.Path(folder))
        except (Failed, subprocess.TimeoutExpired) as failed:
            for program in Program.started:
                print(f"== {program.name}\n{program.log()}", file=sys.stderr)
            sys.exit(f"the local loop failed: {failed}")
        finally:
            for program in Program.started:
                program.kill()


main()
