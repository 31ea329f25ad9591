"""`leaseholdctl verify` on the stack of verify.yaml: its functions, with their variables, timeouts and memory, in the sandbox.

Run after `.ci/templates`, with a Python that has cfn-lint. Builds the programs.
"""

import json
import pathlib
import subprocess

from cfnlint.decode import cfn_yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
STACK = ROOT / "target/verify-stack.json"
TABLE = "locks"
PACKAGES = ("leasehold-sandbox", "leasehold-extension", "leasehold-verify", "leaseholdctl")


def resolved(value):
    """What the template refers to, by the names that the sandbox gives it: a function's is its logical one."""
    if not isinstance(value, dict):
        return value
    (name,) = value.values()
    return TABLE if name == "LockTable" else name


def stack():
    template = json.loads(json.dumps(cfn_yaml.loads((ROOT / "verify.yaml").read_text())))
    usual = template["Globals"]["Function"]
    functions = []
    for name, it in template["Resources"].items():
        if it["Type"] != "AWS::Serverless::Function":
            continue
        own = {**usual, **it["Properties"]}
        assert own["Layers"] == [{"Ref": "LeaseholdLayer"}], f"{name} has other layers: {own['Layers']}"
        variables = {**usual["Environment"]["Variables"], **it["Properties"].get("Environment", {}).get("Variables", {})}
        functions.append({
            "name": name,
            "program": str(ROOT / "target/debug/leasehold-verify"),
            "extensions": [str(ROOT / "target/debug/leasehold")],
            "variables": {variable: str(resolved(value)) for variable, value in variables.items()},
            "timeout_s": own["Timeout"],
            "memory_mb": own["MemorySize"],
        })
    outputs = {name: resolved(output["Value"]) for name, output in template["Outputs"].items()}
    return {"name": "leasehold-verify", "functions": functions, "outputs": outputs}


def main():
    build = ["cargo", "build", "--locked", *(part for package in PACKAGES for part in ("--package", package))]
    subprocess.run(build, cwd=ROOT, check=True)
    STACK.write_text(json.dumps(stack(), indent=2))
    command = [
        "target/debug/leasehold-sandbox", "serve", "--stack", STACK, "--table", TABLE, "--",
        "target/debug/leaseholdctl", "verify", "--stack", "leasehold-verify", "--yes",
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)


main()
