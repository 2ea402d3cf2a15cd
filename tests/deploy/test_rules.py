"""Each rule reports its violation: `run.py` calls `prove` with the valid documents."""

import copy

import rules


def server(documents):
    return rules.of_kind(documents, "StatefulSet")[0]["spec"]


def pod(documents):
    return server(documents)["template"]["spec"]


def container(documents):
    return pod(documents)["containers"][0]


def job(documents):
    return rules.of_kind(documents, "Job")[0]


def policy(documents):
    return rules.of_kind(documents, "NetworkPolicy")[0]["spec"]


def egress(documents):
    return policy(documents)["egress"][1]["ports"]


def variable(documents, name):
    return next(entry for entry in container(documents)["env"] if entry["name"] == name)


CHART = [
    ("may run as root", lambda d: pod(d)["securityContext"].pop("runAsNonRoot")),
    ("may run as root", lambda d: job(d)["spec"]["template"]["spec"]["securityContext"].update(runAsUser=0)),
    ("no seccomp profile", lambda d: pod(d)["securityContext"].pop("seccompProfile")),
    ("mounts a token", lambda d: pod(d).pop("automountServiceAccountToken")),
    ("the root file system is writable", lambda d: container(d)["securityContext"].update(readOnlyRootFilesystem=False)),
    ("has privileges", lambda d: container(d)["securityContext"].pop("capabilities")),
    ("no memory limit", lambda d: container(d).pop("resources")),
    ("the chart renders a secret", lambda d: d.append({"kind": "Secret", "metadata": {"name": "s"}})),
    ("not from a secret", lambda d: variable(d, "TOLLGATE__STORAGE__URL").update(value="postgres://", valueFrom={})),
    ("readinessProbe", lambda d: container(d)["readinessProbe"]["httpGet"].update(path="/ready")),
    ("livenessProbe", lambda d: container(d)["livenessProbe"]["httpGet"].update(port="web")),
    ("terminationGracePeriodSeconds", lambda d: pod(d).update(terminationGracePeriodSeconds=30)),
    ("not on a volume of the replica", lambda d: server(d).pop("volumeClaimTemplates")),
    ("does not outlive", lambda d: server(d).pop("persistentVolumeClaimRetentionPolicy")),
    ("0 jobs", lambda d: (d.append({**job(d), "kind": "CronJob"}), job(d).update(kind="Other"))),
    ("lacks secrets", lambda d: job(d)["spec"]["template"]["spec"]["containers"][0]["volumeMounts"].pop()),
    ("lacks secrets", lambda d: job(d)["spec"]["template"]["spec"]["containers"][0].pop("envFrom")),
    ("does not exist yet", lambda d: rules.of_kind(d, "ConfigMap")[1]["metadata"].pop("annotations")),
    ("the port of TOLLGATE__RATE_LIMITS__URL", lambda d: egress(d).remove({"port": 6379, "protocol": "TCP"})),
    ("the port of TOLLGATE__BLOBS__ENDPOINT", lambda d: egress(d).remove({"port": 9000, "protocol": "TCP"})),
    ("admits no scrapes", lambda d: policy(d)["ingress"].pop()),
    ("from the load balancer", lambda d: rules.of_kind(d, "Service")[0]["spec"].update(type="LoadBalancer")),
    ("is set twice", lambda d: server(d).update(replicas=2)),
    ("leads to no service", lambda d: rules.of_kind(d, "Service")[0]["metadata"].update(name="other")),
    ("the job is no hook", lambda d: job(d)["metadata"].pop("annotations")),
    ("hides its failure", lambda d: job(d)["spec"]["template"]["spec"].update(restartPolicy="OnFailure")),
    ("does not exist yet", lambda d: job(d)["spec"]["template"]["spec"].update(serviceAccountName="tollgate")),
    ("servers migrate, too", lambda d: container(d)["args"].remove("--no-migrate")),
    ("selects other pods", lambda d: rules.of_kind(d, "Service")[0]["spec"]["selector"].update(extra="label")),
    ("selects other pods", lambda d: rules.of_kind(d, "NetworkPolicy")[0]["spec"]["podSelector"].update(matchLabels={})),
    ("no network policy", lambda d: d.remove(rules.of_kind(d, "NetworkPolicy")[0])),
    ("no disruption budget", lambda d: d.remove(rules.of_kind(d, "PodDisruptionBudget")[0])),
]

COMPOSE = [
    ("valkey: the root file system is writable", lambda s: s["valkey"].pop("read_only")),
    ("postgres: has privileges", lambda s: s["postgres"].pop("cap_drop")),
    ("postgres: no health check", lambda s: s["postgres"].pop("healthcheck")),
    ("postgres: the image has no version", lambda s: s["postgres"].update(image="postgres:latest")),
    ("tollgate: a port is open", lambda s: s["tollgate"]["ports"].append("8080:8080")),
    ("POSTGRES_PASSWORD has a default", lambda s: s["postgres"]["environment"].update(POSTGRES_PASSWORD="postgres")),
    ("stop_grace_period", lambda s: s["tollgate"].pop("stop_grace_period")),
    ("starts without the schema", lambda s: s["tollgate"]["depends_on"]["migrate"].update(condition="service_started")),
]


def prove(chart, compose, stop_seconds):
    """Plants each fault into a copy of the valid documents, and expects its violation."""
    for expected, plant in CHART:
        documents = copy.deepcopy(chart)
        plant(documents)
        try:
            found = rules.chart(documents)
        except IndexError:
            # A rule that needs the missing object; the rule before it reports the absence.
            found = [violation for rule in (rules.migration,) for violation in rule(documents)]
        assert any(expected in violation for violation in found), f"not reported: {expected}; found: {found}"
    for expected, plant in COMPOSE:
        file = copy.deepcopy(compose)
        plant(file["services"])
        found = rules.compose(file, stop_seconds)
        assert any(expected in violation for violation in found), f"not reported: {expected}; found: {found}"
