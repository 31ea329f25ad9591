"""The example Dockerfile copies what the build makes, from where it is sent to the engine, to where Lambda looks for it."""

import json
import pathlib
import shlex

from dockerfile_parse import DockerfileParser

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples/container"
# Where Lambda looks: https://docs.aws.amazon.com/lambda/latest/dg/extensions-configuration.html
EXPECTED = {
    "target/lambda/leasehold-sample/bootstrap": "/var/runtime/bootstrap",
    "target/lambda/extensions/leasehold": "/opt/extensions/leasehold",
}


def main():
    structure = DockerfileParser(path=str(FOLDER), cache_content=True).structure
    copies = dict(shlex.split(it["value"]) for it in structure if it["instruction"] == "COPY")
    assert copies == EXPECTED, f"copies {copies}"
    images = [it["value"] for it in structure if it["instruction"] == "FROM"]
    assert images == ["public.ecr.aws/lambda/provided:al2023"], f"begins from {images}"

    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored and all(any(source.startswith(f"{it}/") for it in sent) for source in copies), f"sent: {sent}"

    # `target/lambda` is where cargo-lambda puts its work unless told otherwise; the packages' check told it otherwise.
    built = json.loads((ROOT / "target/packages/built.json").read_text())
    for source in copies:
        made = source.removeprefix("target/lambda/")
        assert any(made in paths for paths in built.values()), f"{source} is not what the build makes: {built}"
    print(f"examples/container/Dockerfile: {len(copies)} programs go where Lambda looks for them")


main()
