"""Runs every client package against a throwaway gateway: `run.py <tollgate binary> <folder of the Node package>`.

`cargo xtask conformance` installs what this needs and calls it.
"""

import os
import subprocess
import sys
from pathlib import Path

import described_api
import printed_examples
import sdk_methods
from fake_provider import FakeProvider
from gateway import Gateway

HERE = Path(__file__).resolve().parent

# A fake provider on two wires with its models. Each behaviour has its own model name.
CONFIGURATION = """
[server]
listen = "127.0.0.1:0"

[sandbox]
enabled = true
errors = true

[egress]
allow_private_addresses = true

[[providers]]
slug = "fake"
name = "Fake"
wire = "system-one"
base_url = "{url}/v1"

[[providers]]
slug = "refuser"
name = "Refuser"
wire = "openai-decisions"
base_url = "{url}/v1"

[[endpoints]]
model = "typesafe/jev-1.13"
provider = "fake"
upstream_model = "jev-1.13.0"

[[endpoints]]
model = "typesafe/jev-1.14"
provider = "fake"
upstream_model = "jev-1.14.0"

[[endpoints]]
model = "conformance/flaky"
provider = "fake"
upstream_model = "flaky"
input_usd_per_million_tokens = "1"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "conformance/pictures"
provider = "fake"
upstream_model = "pictures"
image_transport = "assets"
input_usd_per_million_tokens = "0"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "conformance/terse"
provider = "fake"
upstream_model = "terse"
input_usd_per_million_tokens = "0"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "conformance/refuser"
provider = "refuser"
upstream_model = "refuser"
image_transport = "input"
input_usd_per_million_tokens = "0"
output_usd_per_million_tokens = "0"
"""


def main():
    binary, node_folder = sys.argv[1:]
    # Local connections must not use a proxy of the machine.
    os.environ.update({"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1"})
    fake_provider = FakeProvider()
    with Gateway(binary, CONFIGURATION.format(url=fake_provider.url)) as gateway:
        environment = {**os.environ, **prepared(gateway), "CONFORMANCE_FAKE_PROVIDER": fake_provider.url}

        def check(*commands):
            """Runs checks and returns a function that returns what the server has logged since."""
            before = len(gateway.output())
            for command in commands:
                status = subprocess.run(command, env=environment).returncode
                if status != 0:
                    print("".join(f"    {line}\n" for line in gateway.output().splitlines()[-20:]), file=sys.stderr)
                    sys.exit(f"`{' '.join(str(word) for word in command)}` ended with {status}")
            return lambda: gateway.output()[before:]

        scripts = ["openrouter_checks", "openrouter_management"]
        check([sys.executable, HERE / "typesafe_checks.py"], [sys.executable, HERE / "openai_checks.py"])
        log = check(*([sys.executable, HERE / f"{script}.py"] for script in scripts))
        sdk_methods.verify("openrouter", sdk_methods.of_python(), gateway, log)
        log = check(*(["node", Path(node_folder) / f"{script}.mjs"] for script in scripts))
        sdk_methods.verify("@openrouter/sdk", sdk_methods.of_node(node_folder), gateway, log)
        printed_examples.run(gateway.base, environment["CONFORMANCE_KEY"], node_folder)
        # Last: generated requests delete what they find.
        described_api.run(gateway)
    fake_provider.close()


def prepared(gateway):
    """Creates keys, a guardrail and a container file; returns them as environment variables of the checks."""
    key = gateway.json("key", "create", "--name", "conformance")
    management = gateway.json("key", "create", "--name", "conformance", "--management")
    guardrail = gateway.json("guardrail", "create", "--name", "conformance")
    local = gateway.path / "report.txt"
    local.write_text("The blender smokes.\n")
    file = gateway.json("container", "put", "sess_conformance", "out/report.txt", str(local))
    return {
        "CONFORMANCE_BASE": gateway.base,
        "CONFORMANCE_KEY": key["key"],
        "CONFORMANCE_KEY_HASH": key["data"]["hash"],
        "CONFORMANCE_MANAGEMENT_KEY": management["key"],
        "CONFORMANCE_GUARDRAIL": guardrail["data"]["id"],
        "CONFORMANCE_CONTAINER": file["container_id"],
        "CONFORMANCE_FILE": file["id"],
    }


if __name__ == "__main__":
    main()
