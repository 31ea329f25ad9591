"""What is in the zips that `.ci/packages` built for an architecture, and whether Lambda can run it."""

import json
import pathlib
import platform
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

PACKAGES = pathlib.Path(__file__).resolve().parent.parent / "target/packages"
# ELF's numbers: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
MACHINES = {"x86_64": 62, "arm64": 183}
# The larger a layer, the longer each start of an environment. What it has now (docs/start-and-size.md), with a little room.
LARGEST_LAYER = 3_200_000
LARGEST_EXTENSION = 7_000_000
# What `provided.al2023` has.
NEWEST_GLIBC = (2, 34)


def only_program(package, expected):
    """The one file of a zip: what it is called, that it may be run, and its bytes."""
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None, f"{package} is damaged"
        files = [it for it in archive.infolist() if not it.is_dir()]
        assert [it.filename for it in files] == [expected], f"{package} has {[it.filename for it in files]}"
        mode = files[0].external_attr >> 16
        assert stat.S_IMODE(mode) & 0o555 == 0o555, f"{expected} has mode {mode:o}: Lambda can't run it"
        return archive.read(files[0])


def machine(program):
    assert program[:4] == b"\x7fELF", "no ELF program"
    assert program[4:6] == b"\x02\x01", "not 64 bits, or not little-endian"
    return int.from_bytes(program[18:20], "little")


def glibc(program):
    """The newest version of glibc's symbols that the program asks for."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", program)
    assert versions, "no dynamically linked program"
    return max((int(major), int(minor)) for major, minor in versions)


def check(architecture, package, expected):
    program = only_program(package, expected)
    found = machine(program)
    assert found == MACHINES[architecture], f"{expected} is for machine {found}, not {architecture}"
    needed = glibc(program)
    assert needed <= NEWEST_GLIBC, f"{expected} needs glibc {needed}, provided.al2023 has {NEWEST_GLIBC}"
    size = package.stat().st_size
    print(f"{architecture}: {expected} {len(program):,} bytes, {size:,} zipped, glibc {needed[0]}.{needed[1]} or later")
    return program, size


def runs_here(program, name):
    """Where this machine can run it, it says what it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_bytes(program)
        path.chmod(0o555)
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.startswith("leasehold "), f"--version says {said!r}"
    print(f"it runs: {said.strip()}")


def main(architecture):
    folder = PACKAGES / architecture
    layer = folder / "extensions/leasehold.zip"
    program, size = check(architecture, layer, "extensions/leasehold")
    assert size <= LARGEST_LAYER, f"{layer} has {size:,} bytes, more than {LARGEST_LAYER:,}"
    assert len(program) <= LARGEST_EXTENSION, f"{layer}: {len(program):,} bytes, more than {LARGEST_EXTENSION:,}"
    if {"x86_64": "x86_64", "arm64": "aarch64"}[architecture] == platform.machine():
        runs_here(program, "leasehold")
    function = folder / "leasehold-sample/bootstrap.zip"
    check(architecture, function, "bootstrap")

    # For the check of the Dockerfile: the zips' paths are those of the programs, by cargo-lambda's layout.
    built = PACKAGES / "built.json"
    known = json.loads(built.read_text()) if built.exists() else {}
    known[architecture] = [str(it.relative_to(folder).with_suffix("")) for it in (layer, function)]
    built.write_text(json.dumps(known))


main(sys.argv[1])
