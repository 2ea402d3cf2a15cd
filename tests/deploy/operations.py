"""The five operations of the interface through running servers, as `tollgate demo` performs them."""

import itertools
import json
import sys
import urllib.error
import urllib.request

BASE = "/api/v1"
MODEL = "sandbox/decider"
CONFIG = "/etc/tollgate/tollgate.toml"
DECISION = {
    "model": MODEL,
    "state": {"subject": "Broken blender", "body": "It smokes. I want my money back, and I am furious."},
    "questions": {
        "refund": {"type": "noul", "instructions": "Does the writer want money back?"},
        "queue": {
            "type": "choice",
            "instructions": "Who handles it?",
            "criteria": {"billing": "money back", "hardware": "a device that smokes", "other": None},
        },
    },
}


def send(method, url, key=None, body=None):
    """Sends a request. Returns the status and the body."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def perform(servers):
    """Performs the operations by turns through all servers, with the records that the commands create."""

    def command(*arguments):
        return json.loads(servers[0].execute("tollgate", *arguments, "--config", CONFIG, "--json").stdout)

    # With a rate, so that the counts of the stack are used.
    key = command("key", "create", "--name", "first", "--rpm", "1000")
    management = command("key", "create", "--management", "--name", "ops")["key"]
    guardrail = command("guardrail", "create", "--name", "first")["data"]["id"]
    # The configuration is a file that every container has.
    file = command("container", "put", "sess_deploy", "out/report.csv", CONFIG)
    hashes = {"key_hashes": [key["data"]["hash"], "0" * 64]}
    operations = [
        (
            "POST",
            f"/containers/sess_deploy/files/{file['id']}/promote",
            key["key"],
            None,
            lambda body: body["filename"] == "out/report.csv" and body["size_bytes"] == file["bytes"],
        ),
        (
            "POST",
            "/api/alpha/decisions",
            key["key"],
            DECISION,
            lambda body: body["answers"]["refund"]["noul"] > 0.5 and body["answers"]["queue"]["choice"] == "billing",
        ),
        (
            "POST",
            f"/guardrails/{guardrail}/assignments/keys",
            management,
            hashes,
            lambda body: body["assigned_count"] == 1,
        ),
        ("GET", f"/model/{MODEL}", key["key"], None, lambda body: body["data"]["id"] == MODEL),
        (
            "GET",
            "/models/count?output_modalities=decisions",
            key["key"],
            None,
            lambda body: body["data"]["count"] > 0,
        ),
    ]
    for server, (method, path, secret, body, holds) in zip(itertools.cycle(servers), operations):
        status, answer = send(method, f"http://{server.address}:8080{BASE}{path}", secret, body)
        if status != 200 or not holds(answer):
            sys.exit(f"{method} {path} at {server.name}: {status} {answer}\n{server.output()}")
