"""What the start of an extension costs: from exec to registered, to its first Next, and to its first grant.

    cargo build --release -p leasehold-extension
    python3 docs/start_cost.py target/release/leasehold
    python3 docs/start_cost.py --quota 0.07 target/release/leasehold     # as root, with cgroups
    python3 docs/start_cost.py --tls --roots system target/release/leasehold

Plays the Extensions API, DynamoDB (which grants whatever is asked for) and the handler. Beside each program runs a no-op
extension, which only registers and calls Next. Times are medians; processor time is the process's own and varies least.
Needs Python 3.11, rustc, for --tls openssl, and for --quota the right to make a cgroup.
"""

import argparse
import contextlib
import email.utils
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parent / "target/start"
# What Lambda's scheduler is said to use; a shorter one would make a small share come more evenly.
PERIOD_US = 20_000


class Connection(threading.Thread):
    """One HTTP/1.1 connection, answered by a function from (method, path, headers, body) to bytes, or None to hang."""

    def __init__(self, stream, answer):
        super().__init__(daemon=True)
        self.stream, self.answer = stream, answer
        self.start()

    def run(self):
        with contextlib.suppress(OSError, ValueError):
            reader = self.stream.makefile("rb")
            while line := reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                headers = {}
                while (header := reader.readline().decode().strip()):
                    name, value = header.split(":", 1)
                    headers[name.lower()] = value.strip()
                body = reader.read(int(headers.get("content-length", 0)))
                answer = self.answer(method, path, headers, body)
                while answer is None:
                    time.sleep(3600)
                self.stream.sendall(answer)


def serve(answer, context=None):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def handshake(stream=stream):
                with contextlib.suppress(OSError):
                    Connection(context.wrap_socket(stream, server_side=True) if context else stream, answer)

            threading.Thread(target=handshake, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def response(body, headers=()):
    date = email.utils.formatdate(usegmt=True)
    head = ["HTTP/1.1 200 OK", f"date: {date}", f"content-length: {len(body)}", "content-type: application/x-amz-json-1.0"]
    return ("\r\n".join([*head, *headers]) + "\r\n\r\n").encode() + body


def dynamodb(_method, _path, headers, body):
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    answer = {}
    # `UPDATED_NEW` or `ALL_NEW`: who asks for the row gets as much of it as counts.
    if operation == "UpdateItem" and json.loads(body).get("ReturnValues") in ("UPDATED_NEW", "ALL_NEW"):
        answer = {"Attributes": {"version": {"N": str(int(time.time() * 1000))}}}
    return response(json.dumps(answer).encode(), ["x-amzn-requestid: 1"])


class Api:
    """The Extensions API of one environment: notes when it was called, and how much processor time had gone by then."""

    def __init__(self, used):
        self.used, self.seen, self.events = used, {}, threading.Condition()
        self.invocation = None

    def note(self, what):
        with self.events:
            self.seen.setdefault(what, (time.monotonic(), self.used()))
            self.events.notify_all()

    def wait(self, what):
        with self.events:
            if not self.events.wait_for(lambda: what in self.seen, timeout=60):
                raise SystemExit(f"the extension never came to: {what}")
            return self.seen[what]

    def __call__(self, _method, path, _headers, _body):
        if path.endswith("/register"):
            self.note("registered")
            return response(b'{"functionName":"f","functionVersion":"1","handler":"h"}', ["Lambda-Extension-Identifier: 1"])
        self.note("next")
        with self.events:
            self.events.wait_for(lambda: self.invocation is not None)
            event, self.invocation = self.invocation, None
        return response(json.dumps(event).encode())

    def invoke(self, event):
        with self.events:
            self.invocation = event
            self.events.notify_all()


class Group:
    """A cgroup of version 1, which counts processor time and may limit it."""

    def __init__(self, quota):
        self.folders = [pathlib.Path(f"/sys/fs/cgroup/{controller}/leasehold-start") for controller in ("cpu", "cpuacct")]
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        cpu = self.folders[0]
        (cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (cpu / "cpu.cfs_quota_us").write_text(str(int(PERIOD_US * quota)) if quota else "-1")
        self.usage = self.folders[1] / "cpuacct.usage"
        self.tasks = [os.open(folder / "tasks", os.O_WRONLY) for folder in self.folders]
        self.usage.write_text("0")

    def enter(self):
        for tasks in self.tasks:
            os.write(tasks, b"0")

    def used(self):
        return int(self.usage.read_text()) / 1e6

    def close(self):
        for tasks in self.tasks:
            os.close(tasks)
        for folder in self.folders:
            folder.rmdir()


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {name: int(status.split(f"{name}:")[1].split()[0]) / 1024 for name in ("VmRSS", "VmHWM", "RssAnon")}


class Handler:
    """A session, as docs/session.md has it."""

    def __init__(self, path):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.connect(str(path))
        self.reader = self.stream.makefile("r")

    def ask(self, message, wanted):
        self.stream.sendall(json.dumps(message).encode() + b"\n")
        while True:
            line = self.reader.readline()
            if not line:
                raise SystemExit("the extension closed the session")
            answer = json.loads(line)
            if answer["type"] == wanted:
                return answer
            if answer["type"] in ("failed", "busy"):
                raise SystemExit(f"no grant: {answer}")

    def grant(self, request_id):
        deadline = int(time.time() * 1000) + 60_000
        versions = {"min": 1, "max": 1}
        self.ask({"type": "begin", "versions": versions, "request_id": request_id, "deadline_ms": deadline}, "began")
        self.ask({
            "type": "acquire", "id": 1, "key": "k", "lease_ms": 30_000, "wait_ms": 2_000, "max_hold_ms": 900_000,
            "holder": {"function": "f", "version": "1", "request_id": request_id, "template": "k"},
            "table": {"name": "locks", "key_attribute": "key"},
        }, "granted")


def run(program, endpoint, variables, quota, thaw, read_event):
    """One start; what was measured, in milliseconds and megabytes."""
    group = Group(quota)
    api = Api(group.used)
    listener = serve(api)
    with tempfile.TemporaryDirectory() as folder:
        handlers = pathlib.Path(folder, "keeper.sock")
        environment = {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{listener.getsockname()[1]}", "LEASEHOLD_SOCKET": str(handlers),
            "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not a secret",
            "AWS_SESSION_TOKEN": "t" * 800, "AWS_ENDPOINT_URL_DYNAMODB": endpoint, "LEASEHOLD_TABLE": "locks",
            "AWS_EC2_METADATA_DISABLED": "true", "LEASEHOLD_LOG": "error", "LEASEHOLD_METRICS": "off", **variables,
        }
        process = subprocess.Popen([program], env=environment, preexec_fn=group.enter, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        measured = {}
        try:
            for step in ("registered", "next"):
                at, used = api.wait(step)
                measured[step] = (at - began) * 1000
                measured[f"{step} cpu"] = used
            if "noop" not in program:
                measured.update(first_grant(api, group, handlers, "first grant", "r1"))
                if thaw:
                    measured.update(after_freeze(api, group, handlers, process, thaw, read_event))
            measured.update(memory(process.pid))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            listener.close()
    while True:
        try:
            group.close()
            return measured
        except OSError:
            time.sleep(0.01)


def first_grant(api, group, handlers, name, request_id, read_event=0.0):
    used, began = group.used(), time.monotonic()
    event = {"eventType": "INVOKE", "requestId": request_id, "deadlineMs": int(time.time() * 1000) + 60_000}
    api.seen.pop("next", None)
    api.invoke(event)
    time.sleep(read_event)
    asked = time.monotonic()
    handler = Handler(handlers)
    handler.grant(request_id)
    took = {name: (time.monotonic() - (asked if read_event else began)) * 1000, f"{name} cpu": group.used() - used}
    handler.ask({"type": "release", "id": 1, "reason": "finished"}, "released")
    handler.stream.shutdown(socket.SHUT_RDWR)
    api.wait("next")
    return took


def after_freeze(api, group, handlers, process, seconds, read_event):
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)
    return first_grant(api, group, handlers, "thawed grant", "r2", read_event)


def certificates(roots):
    """A server's certificate and the file of root certificates that vouch for it, as large as was asked for."""
    key, request, certificate = WORK / "key.pem", WORK / "request.pem", WORK / "certificate.pem"
    authority, authority_key, file = WORK / "authority.pem", WORK / "authority-key.pem", WORK / f"roots-{roots}.pem"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # As DynamoDB's: RSA all the way up.
    rsa = ["-newkey", "rsa:2048", "-nodes"]
    subprocess.run(["openssl", "req", "-x509", *rsa, "-keyout", authority_key, "-out", authority, "-subj", "/CN=authority",
                    "-days", "30"], **quiet)
    subprocess.run(["openssl", "req", *rsa, "-keyout", key, "-out", request, "-subj", "/CN=localhost"], **quiet)
    extensions = WORK / "extensions"
    extensions.write_text("subjectAltName=DNS:localhost\n")
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial",
                    "-out", certificate, "-days", "30", "-extfile", extensions], **quiet)
    system = pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text() if roots == "system" else ""
    file.write_text(system + authority.read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", help="extensions, as NAME=PATH or PATH")
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--quota", type=float, default=0, help="processors that the extension gets; all by default")
    parser.add_argument("--tls", action="store_true", help="DynamoDB is reached over TLS")
    parser.add_argument("--roots", choices=["one", "system"], default="one", help="which root certificates are trusted beside the test's own: none, or the system's")
    parser.add_argument("--read-event", type=float, default=0, metavar="MS",
                        help="how long the handler takes to read its event after the thaw, before it asks")
    parser.add_argument("--thaw", type=float, default=0, help="also freeze for so many seconds and take a lock after that")
    options = parser.parse_args()

    WORK.mkdir(parents=True, exist_ok=True)
    noop = WORK / "noop"
    subprocess.run(["rustc", "--edition", "2024", "-C", "opt-level=s", "-C", "strip=symbols", "-o", noop,
                    HERE / "noop_extension.rs"], check=True)
    context, file = certificates(options.roots) if options.tls else (None, None)
    listener = serve(dynamodb, context)
    endpoint = f"{'https' if options.tls else 'http'}://localhost:{listener.getsockname()[1]}"
    empty = WORK / "none"
    empty.mkdir(exist_ok=True)
    # Both: where one is set, the system's own place is still looked at for the other.
    variables = {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": str(empty)} if file else {}

    programs = {"no-op": str(noop)}
    for program in options.programs:
        name, _, path = program.rpartition("=")
        programs[name or pathlib.Path(path).name] = str(pathlib.Path(path).resolve())
    # In turns, so that what else the machine does meets all of them.
    runs = {name: [] for name in programs}
    for _ in range(options.runs):
        for name, path in programs.items():
            runs[name].append(run(path, endpoint, variables, options.quota, options.thaw, options.read_event / 1000))
    columns = ["registered", "next", "first grant", "thawed grant"]
    print(f"{'':<14}" + "".join(f"{column:>22}" for column in columns) + f"{'RSS (anon)':>16}{'peak':>8}")
    for name, measured in runs.items():
        middle = lambda what: statistics.median(it[what] for it in measured) if what in measured[0] else None
        cells = []
        for column in columns:
            took, used = middle(column), middle(f"{column} cpu")
            cells.append(f"{'':>22}" if took is None else f"{took:>9.2f} ms ({used:5.2f})")
        print(f"{name:<14}" + "".join(f"{cell:>22}" for cell in cells)
              + f"{middle('VmRSS'):>8.1f} ({middle('RssAnon'):.1f}){middle('VmHWM'):>8.1f} MB")
    print("in milliseconds of time (and of processor), the first two since exec, the others since INVOKE; medians")


main()
