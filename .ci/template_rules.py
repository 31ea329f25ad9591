"""What the templates have to keep that no linter knows of.

Called by `.ci/templates` with the templates' paths; or with `--table` and a synthesized template, to compare its lock table.
"""

import json
import pathlib
import re
import sys

from cfnlint.decode import cfn_yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What decides whether a table is a lock table.
SCHEMA = ("BillingMode", "AttributeDefinitions", "KeySchema", "TimeToLiveSpecification")


def load(path):
    text = pathlib.Path(path).read_text()
    return json.loads(text) if str(path).endswith(".json") else json.loads(json.dumps(cfn_yaml.loads(text)))


def of_type(template, kind):
    return {name: it for name, it in template["Resources"].items() if it["Type"] == kind}


def lock_tables(template):
    tables = of_type(template, "AWS::DynamoDB::Table").values()
    return [{name: table["Properties"].get(name) for name in SCHEMA} for table in tables]


def visibility(template):
    """The queue's visibility timeout is six times the function's timeout, for each timeout that can be chosen."""
    chosen = template["Parameters"]["FunctionTimeout"]["AllowedValues"]
    mapped = template["Mappings"]["VisibilityTimeout"]
    assert sorted(map(str, chosen)) == sorted(mapped), f"timeouts {chosen} against {sorted(mapped)}"
    for timeout, visible in mapped.items():
        assert visible["Seconds"] >= 6 * int(timeout), f"a queue visible after {visible} for a timeout of {timeout} s"
    for name, function in of_type(template, "AWS::Serverless::Function").items():
        events = function["Properties"]["Events"].values()
        assert "Timeout" not in function["Properties"], f"{name} has a timeout of its own"
        for event in (event for event in events if event["Type"] == "SQS"):
            queue = template["Resources"][event["Properties"]["Queue"]["Fn::GetAtt"][0]]["Properties"]
            expected = {"Fn::FindInMap": ["VisibilityTimeout", {"Ref": "FunctionTimeout"}, "Seconds"]}
            assert queue["VisibilityTimeout"] == expected, f"{name}'s queue: {queue['VisibilityTimeout']}"
            assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"], f"{name} reports no failures"
            assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5, f"{name}'s queue gives up early"


def goes_with_its_stack(template):
    """`sam delete` leaves nothing behind, and what `leaseholdctl verify` reads is told."""
    for name, it in template["Resources"].items():
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            assert it.get(policy, "Delete") == "Delete", f"{name} is kept: {policy} {it[policy]}"
        assert it["Properties"].get("RetentionPolicy", "Delete") == "Delete", f"{name} is kept"
        assert it["Type"] != "AWS::DynamoDB::Table" or it["Properties"]["DeletionProtectionEnabled"] is False, f"{name} is kept"
    read = set(re.findall(r'"(\w+Name)"', (ROOT / "cli/src/verify/stack.rs").read_text()))
    assert read and read <= set(template["Outputs"]), f"not among the outputs: {read - set(template['Outputs'])}"


def of_metrics(template):
    """Dashboard and alarms are about metrics that are written without being asked for, and about these functions' keys."""
    usual = set(re.findall(r"^\| `(\w+)` \| on, full \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
    assert len(usual) == 5, f"the usual metrics: {usual}"
    functions = of_type(template, "AWS::Serverless::Function").items()
    keys = {name: function["Properties"]["Environment"]["Variables"]["SAMPLE_KEY"] for name, function in functions}

    def check(where, metric, dimensions):
        assert metric in usual, f"{where}: {metric} is none of {usual}"
        expected = [[("FunctionName", name), ("Template", key), ("Keeper", "extension")] for name, key in keys.items()]
        assert dimensions in expected, f"{where}: {dimensions} is none of {expected}"

    seen = set()
    for dashboard in of_type(template, "AWS::CloudWatch::Dashboard").values():
        body = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
        # A variable in a text is the name it refers to, and a number elsewhere.
        body = re.sub(r"(?<=[\"\[/' ])\$\{(\w+)\}(?=[\"'])", r"\1", body)
        for widget in json.loads(re.sub(r"\$\{[^}]+\}", "1", body))["widgets"]:
            for metric in widget["properties"].get("metrics", []):
                if metric[0] == "Leasehold":
                    pairs = list(zip(metric[2:8:2], metric[3:8:2]))
                    check(widget["properties"]["title"], metric[1], pairs)
                    seen.add(metric[1])
    assert seen == usual, f"not on the dashboard: {usual - seen}"
    for name, alarm in of_type(template, "AWS::CloudWatch::Alarm").items():
        for query in alarm["Properties"]["Metrics"]:
            if "MetricStat" in query:
                metric = query["MetricStat"]["Metric"]
                pairs = [(pair["Name"], pair["Value"]) for pair in metric["Dimensions"]]
                check(name, metric["MetricName"], [(k, v["Ref"] if isinstance(v, dict) else v) for k, v in pairs])


def main(arguments):
    own = {path: load(ROOT / path) for path in ("template.yaml", "layer-and-table.yaml", "verify.yaml")}
    (expected,) = lock_tables(own["layer-and-table.yaml"])
    for path, template in own.items():
        assert lock_tables(template) == [expected], f"{path} makes another lock table than layer-and-table.yaml"
    if arguments[0] == "--table":
        assert lock_tables(load(arguments[1])) == [expected], f"{arguments[1]} makes another lock table"
        print(f"{arguments[1]}: the lock table of the templates")
        return

    goes_with_its_stack(own["verify.yaml"])
    visibility(own["template.yaml"])
    of_metrics(own["template.yaml"])
    targets = set(re.findall(r"^(build-\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {f"build-{layer}" for template in own.values() for layer in of_type(template, "AWS::Serverless::LayerVersion")}
    assert named == targets, f"layers {named} against the Makefile's targets {targets}"

    # What another stack imports is exported under that name.
    exported = {out["Export"]["Name"]["Fn::Sub"] for out in own["layer-and-table.yaml"]["Outputs"].values() if "Export" in out}
    exported = {name.replace("${AWS::StackName}", "${LeaseholdStack}") for name in exported}
    importer = (ROOT / "examples/stack-of-your-own.yaml").read_text()
    imported = set(re.findall(r'ImportValue: !Sub "([^"]+)"', importer))
    assert imported and imported <= exported, f"imported but not exported: {imported - exported}"
    told = {it["Properties"]["Name"]["Fn::Sub"] for it in of_type(own["layer-and-table.yaml"], "AWS::SSM::Parameter").values()}
    read = load(ROOT / "examples/stack-of-your-own.yaml")["Parameters"]["LeaseholdLayer"]["Default"]
    assert read in {name.replace("${AWS::StackName}", "leasehold") for name in told}, f"{read} is none of {told}"
    print(f"{', '.join(arguments)}: tables, queues, layers and exports fit each other")


main(sys.argv[1:])
