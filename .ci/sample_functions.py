"""The functions of template.yaml in the sandbox, with the variables that the template gives them and an event of their source.

Run after `.ci/cargo-lambda-watch`, which builds them, with a Python that has cfn-lint.
"""

import json
import pathlib
import subprocess

from cfnlint.decode import cfn_yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By the kind of event that invokes it: the event file, and what the function answers if all went well.
EVENTS = {
    "EventBridgeRule": ("eventbridge-order.json", lambda answer: answer["key"] == "orders:A-1001"),
    "SQS": ("sqs-order.json", lambda answer: answer == {"batchItemFailures": []}),
}


def main():
    template = json.loads(json.dumps(cfn_yaml.loads((ROOT / "template.yaml").read_text())))
    functions = {name: it for name, it in template["Resources"].items() if it["Type"] == "AWS::Serverless::Function"}
    assert len(functions) == len(EVENTS), f"functions {list(functions)}"
    for name, function in functions.items():
        (event,) = function["Properties"]["Events"].values()
        file, fine = EVENTS[event["Type"]]
        variables = function["Properties"]["Environment"]["Variables"]
        assert variables.pop("LEASEHOLD_TABLE") == {"Ref": "LockTable"}, f"{name} has no table"
        command = [
            "target/debug/leasehold-sandbox", "invoke", "--function", "target/debug/leasehold-sample", "--table", "locks",
            "--event", f"events/{file}", *(part for pair in variables.items() for part in ("--env", "=".join(pair))),
        ]
        run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        # Whether a lock was taken for the order in the event is in the extension's lines.
        locked = "key=orders:" in run.stderr and "acquired" in run.stderr
        if run.returncode or not fine(json.loads(run.stdout)) or not locked:
            raise SystemExit(f"{name} answered {run.stdout!r}\n{run.stderr}")
        print(f"{name}: {run.stdout.strip()}")


main()
