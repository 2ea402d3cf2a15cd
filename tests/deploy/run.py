"""Checks the Dockerfile and deploy/, and starts what they describe: `run.py ROOT TOLLGATE OBJECT_STORE HELM PROMTOOL`.
`cargo xtask deploy` calls it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import compose_stack
import rules
import test_rules

ROOT, TOLLGATE, OBJECT_STORE, HELM, PROMTOOL = (pathlib.Path(argument).resolve() for argument in sys.argv[1:6])
# Not resolved: the interpreter of a virtual environment is a link to that of the system.
PROGRAMS = pathlib.Path(sys.executable).parent
CHART = ROOT / "deploy/helm/tollgate"
# The values with which the chart is started.
STARTED = ["shared-stores-values.yaml", "chosen-user-values.yaml"]
# The oldest and the newest version of Kubernetes whose schemas the validator has.
KUBERNETES = ["1.33.0", "1.37.0"]
# systemd's figure for the unit, in tenths: lower is less exposed.
EXPOSURE = 15


def run(*command, **options):
    """Runs a program; a failure ends the checks with its output."""
    command = [str(word) for word in command]
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    if ended.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def passed(text):
    print(f"ok  {text}", flush=True)


def require_none(subject, violations):
    if violations:
        sys.exit(f"{subject}:\n  " + "\n  ".join(violations))
    passed(subject)


def check_dockerfile():
    run(PROGRAMS / "hadolint", "--failure-threshold", "style", ROOT / "Dockerfile")
    passed("Dockerfile")


def check_config(file, variables=None):
    environment = {"PATH": os.environ["PATH"], **(variables or {})}
    run(TOLLGATE, "config", "check", "--config", file, env=environment)


def stop_seconds():
    """Returns the duration of a stop with the default settings: drain, requests in flight, background work."""
    return 5 + 65 + rules.BACKGROUND_SECONDS


def check_compose():
    path = ROOT / "deploy/compose.yaml"
    files = [path, ROOT / "deploy/compose.replicas.yaml"]
    run(PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files)
    file = compose_stack.load(files)
    for used in (compose_stack.load(files[:1]), file):
        require_none(f"Compose with {len(used['services'])} services", rules.compose(used, stop_seconds()))
    named = set(re.findall(r"\$\{([A-Z_]+)", "".join(file.read_text() for file in files)))
    offered = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / "deploy/.env.example").read_text(), re.MULTILINE))
    require_none("deploy/.env.example", [f"{name}: in one of the two files" for name in sorted(named ^ offered)])
    check_config(ROOT / "deploy/container/tollgate.toml")
    check_config(
        ROOT / "deploy/compose/tollgate.toml",
        {"TOLLGATE__STORAGE__URL": "postgres://tollgate:secret@postgres:5432/tollgate?sslmode=disable"},
    )
    passed("configurations of the image and of Compose")
    return file


def render(values, *options):
    return run(HELM, "template", "release", CHART, "--values", values, "--kube-version", KUBERNETES[0], *options)


def check_rendered_config(documents, folder):
    """Checks the configuration as a pod reads it: the file, and the variables."""
    config = rules.of_kind(documents, "ConfigMap")[0]["data"]["tollgate.toml"]
    secrets = folder / "secrets"
    for path in re.findall(r'"(?:file:)?/etc/tollgate-secrets/([^"]+)"', config):
        (secrets / path).parent.mkdir(parents=True, exist_ok=True)
        (secrets / path).write_text("secret")
        (secrets / path).chmod(0o600)
    file = folder / "tollgate.toml"
    file.write_text(config.replace("/etc/tollgate-secrets", str(secrets)))
    container = rules.of_kind(documents, "StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0]
    variables = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    variables |= {"TOLLGATE__STORAGE__URL": "postgres://tollgate:secret@db/tollgate", "AWS_ACCESS_KEY_ID": "secret"}
    variables |= {name: "secret" for name in re.findall(r'api_key = "env:(\w+)"', config)}
    check_config(file, variables)


def check_chart(folder):
    rendered = []
    for values in sorted((CHART / "ci").glob("*.yaml")):
        run(HELM, "lint", "--strict", CHART, "--values", values)
        manifest = folder / values.name
        manifest.write_text(render(values))
        for version in KUBERNETES:
            run(PROGRAMS / "kubernetes-validate", "--strict", "--quiet", "-k", version, manifest)
        documents = [document for document in yaml.safe_load_all(manifest.read_text()) if document]
        require_none(f"deploy/helm/tollgate with {values.name}", rules.chart(documents))
        check_rendered_config(documents, folder)
        rendered.append(documents)
    passed("configurations of the chart")
    check_rejections()
    # The one with the most objects.
    return max(rendered, key=len)


def start(folder):
    """Starts the stacks in namespaces, which end all programs in them when they end."""
    if os.geteuid() != 0:
        sys.exit("the stacks need root: they have networks, file systems and users of their own")
    missing = [name for name in ("ip", "mount", "nsenter", "unshare") if not shutil.which(name)]
    if missing:
        sys.exit(f"the stacks need {', '.join(missing)}: install iproute2 and util-linux")
    namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    script = pathlib.Path(__file__).with_name("start.py")
    command = [*namespaces, sys.executable, "-B", script, ROOT, TOLLGATE, OBJECT_STORE]
    if subprocess.run([*map(str, command), *(str(folder / name) for name in STARTED)]).returncode != 0:
        sys.exit("the deployment files do not start")


def check_rejections():
    """Values that cannot work are rejected with the name of the value."""
    minimal = CHART / "ci/minimal-values.yaml"
    for expected, options in [
        ("image.repository", ["--set", "image.repository="]),
        ("database.existingSecret", ["--set", "database.existingSecret="]),
        ("blobs.existingClaim", ["--set", "replicas=2"]),
        ("blobs.existingClaim", ["--set", "blobs.url=s3://a/b,blobs.existingClaim=c"]),
        ("blobs.existingClaim", ["--set", "journal.inDatabase=true"]),
        ("image.digest", ["--set", "image.digest=latest"]),
        ("blobs.existingClaim", ["--set", "autoscaling.enabled=true"]),
        ("need blobs.url", ["--set", "blobs.endpoint=http://store:9000"]),
        ("migration.enabled", ["--set", "blobs.url=s3://abc,blobs.createBucket=true,migration.enabled=false"]),
        ("set blobs.endpoint", ["--set-string", "config=[blobs]\nregion = 'a'\nendpoint = 'http://store'"]),
        ("set rateLimits.url", ["--set-string", "config=[rate_limits]\nurl = 'redis://valkey'"]),
        ("rateLimits.url", ["--set", "rateLimits.url=http://valkey"]),
        ("ingress.hosts", ["--set", "ingress.enabled=true"]),
        ("replica", ["--set", "replica=3"]),
    ]:
        command = [str(HELM), "template", "release", str(CHART), "--values", str(minimal), "--kube-version", KUBERNETES[0]]
        ended = subprocess.run([*command, *options], capture_output=True, text=True)
        if ended.returncode == 0 or expected not in ended.stderr:
            sys.exit(f"{options}: not rejected with {expected}: {ended.stderr}")
    passed("wrong values of the chart are rejected")


def check_alerts():
    folder = ROOT / "deploy/prometheus"
    run(PROMTOOL, "check", "rules", folder / "alerts.yaml")
    run(PROMTOOL, "test", "rules", folder / "alerts_test.yaml")
    groups = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"]
    names = {rule["alert"] for group in groups for rule in group["rules"]}
    tests = yaml.safe_load((folder / "alerts_test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    missing = [f"{name}: no case in which it fires" for name in sorted(names - fires)]
    missing += [f"{name}: no case in which it does not" for name in sorted(names - silent)]
    require_none("deploy/prometheus", missing)


def queries(dashboard):
    """Returns the queries of a dashboard, with values for its variables."""
    values = {"$__rate_interval": "5m", "$job": "tollgate", "$instance": ".*"}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in values.items():
                query = query.replace(variable, value)
            yield panel["title"], query


def check_dashboard(folder):
    dashboard = json.loads((ROOT / "deploy/grafana/tollgate.json").read_text())
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identifiers)) == len(identifiers), "two panels have one id"
    found = list(queries(dashboard))
    assert len(found) > 30 and not any("$" in query for _, query in found), "a variable has no value"
    rows = [{"record": f"query:{number}", "expr": query} for number, (_, query) in enumerate(found)]
    file = folder / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rows}]}))
    run(PROMTOOL, "check", "rules", file)
    passed(f"deploy/grafana/tollgate.json, {len(found)} queries")


def check_unit(folder):
    # The program need not exist on this machine.
    text = (ROOT / "deploy/tollgate.service").read_text()
    unit = folder / "tollgate.service"
    unit.write_text(text.replace("/usr/local/bin/tollgate", "/bin/true"))
    # `verify` prints unknown keys and exits with 0.
    ended = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    complaints = [line for line in ended.stderr.splitlines() if "tollgate.service" in line]
    if ended.returncode != 0 or complaints:
        sys.exit(f"deploy/tollgate.service: {ended.stderr}")
    run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", unit)
    passed("deploy/tollgate.service")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_dockerfile()
        compose = check_compose()
        chart = check_chart(folder)
        test_rules.prove(chart, compose, stop_seconds())
        passed("each rule reports a planted violation")
        check_alerts()
        check_dashboard(folder)
        check_unit(folder)
        start(folder)


main()
