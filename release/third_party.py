"""The licences of what is linked into the programs that a release gives away, with their texts."""

import json
import pathlib
import re
import subprocess

PROGRAMS = ("leasehold-extension", "leaseholdctl")
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
TEXT = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)


def linked(root):
    """The packages from elsewhere that are compiled into the programs, by name and version."""
    found = {}
    for target in TARGETS:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
        metadata = json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout)
        packages = {it["id"]: it for it in metadata["packages"]}
        needs = {
            it["id"]: [dep["pkg"] for dep in it["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            for it in metadata["resolve"]["nodes"]
        }
        waiting = [identity for identity, it in packages.items() if it["name"] in PROGRAMS]
        seen = set(waiting)
        while waiting:
            package = packages[waiting.pop()]
            # A procedural macro runs in the compiler: neither it nor what it needs is in the program.
            if any("proc-macro" in it["kind"] for it in package["targets"]):
                continue
            if package["source"]:
                found[package["name"], package["version"]] = package
            new = [it for it in needs[package["id"]] if it not in seen]
            seen.update(new)
            waiting.extend(new)
    return [found[it] for it in sorted(found)]


def texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [it for it in folder.iterdir() if it.is_file() and TEXT.match(it.name)]
    return [it.read_text(errors="replace").strip() for it in sorted(files)]


def notices(root):
    """One text: each package with its licence, then each licence's text once, with who has it."""
    packages = linked(root)
    names = {}
    for package in packages:
        for text in texts(package):
            names.setdefault(text, []).append(f"{package['name']} {package['version']}")
    lines = ["Linked into leasehold's extension and into leaseholdctl, each under its own licence.", ""]
    for package in packages:
        by = f", by {', '.join(package['authors'])}" if package["authors"] else ""
        lines.append(f"{package['name']} {package['version']}: {package['license'] or 'see its text'}{by}")
    for text, of in sorted(names.items(), key=lambda it: (-len(it[1]), it[1], it[0])):
        lines += ["", "=" * 80, ", ".join(of), "=" * 80, "", text]
    return "\n".join(lines) + "\n"
