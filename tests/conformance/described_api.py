"""Sends generated requests to every operation of the OpenAPI document, with each kind of key: no response is a server
error, of an undescribed status or content type, or violates its schema."""

import subprocess
import sys
from pathlib import Path

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# The same requests in every run.
SEED = "1"


def run(gateway):
    """Tests the API with each kind of key; ends the process at the first violation."""
    for kind, key in keys(gateway).items():
        # Only the last one may change everything.
        phases = "examples,coverage,fuzzing,stateful" if kind == "unrestricted" else "examples,coverage"
        command = [Path(sys.executable).with_name("schemathesis"), "run", f"{gateway.base}/openapi.json"]
        command += ["--checks", CHECKS, "--phases", phases, "--max-examples", "10", "--seed", SEED, "--no-color"]
        command += ["--warnings", "off"]
        if key is not None:
            command += ["--header", f"Authorization: Bearer {key}"]
        done = subprocess.run(command, cwd=gateway.path, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"FAILED openapi.json, {kind}\n{done.stdout}{done.stderr}")
        summary = next((line.strip() for line in done.stdout.splitlines() if " generated" in line), "no request")
        print(f"ok     openapi.json, {kind}: {summary}", flush=True)


def keys(gateway):
    """Creates a key of each kind; returns the secrets."""
    workspace = gateway.json("workspace", "create", "--name", "described")["data"]["id"]

    def management(*options):
        return gateway.json("key", "create", "--name", "described", "--allow-duplicate", "--management", *options)["key"]

    narrowed = {access: management("--access", access, "--workspace", workspace) for access in ("read", "keys", "write")}
    inference = gateway.json("key", "create", "--name", "described", "--workspace", workspace)["key"]
    return {"no key": None, "inference": inference, **narrowed, "unrestricted": management()}
