"""Rules for the rendered chart and for the Compose file. Each returns the violations as text."""

import urllib.parse

# Variables with the URL of a store, and the port of a URL without one.
DEFAULT_PORTS = {"TOLLGATE__BLOBS__ENDPOINT": 443, "TOLLGATE__RATE_LIMITS__URL": 6379}
PATHS = {"startupProbe": "/health/live", "livenessProbe": "/health/live", "readinessProbe": "/health/ready"}
# Background work of a stop, in seconds: docs/install.md, "Stopping".
BACKGROUND_SECONDS = 30


def pods(documents):
    """Yields the name and the pod specification of each workload."""
    for document in documents:
        if document["kind"] in ("StatefulSet", "Deployment", "Job"):
            yield f"{document['kind']} {document['metadata']['name']}", document["spec"]["template"]["spec"]


def of_kind(documents, kind):
    return [document for document in documents if document["kind"] == kind]


def security(documents):
    """No pod runs as root, writes outside its volumes, or has a privilege or a token."""
    for name, pod in pods(documents):
        context = pod.get("securityContext", {})
        # Without a number the platform chooses the user.
        if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
            yield f"{name}: may run as root"
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{name}: no seccomp profile"
        if pod.get("automountServiceAccountToken") is not False:
            yield f"{name}: mounts a token"
        for container in pod["containers"]:
            own = container.get("securityContext", {})
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{name}: the root file system is writable"
            if own.get("allowPrivilegeEscalation") is not False or own.get("capabilities", {}).get("drop") != ["ALL"]:
                yield f"{name}: has privileges"
            if not container.get("resources", {}).get("limits", {}).get("memory"):
                yield f"{name}: no memory limit"


def secrets(documents):
    """Secrets are referenced, never rendered."""
    if of_kind(documents, "Secret"):
        yield "the chart renders a secret"
    for name, pod in pods(documents):
        for variable in pod["containers"][0].get("env", []):
            if variable["name"] == "TOLLGATE__STORAGE__URL" and "secretKeyRef" not in variable.get("valueFrom", {}):
                yield f"{name}: the database URL is not from a secret"


def probes(documents):
    """Probes use the real paths of a named port."""
    for document in of_kind(documents, "StatefulSet"):
        container = document["spec"]["template"]["spec"]["containers"][0]
        ports = {port["name"] for port in container["ports"]}
        for probe, path in PATHS.items():
            request = container.get(probe, {}).get("httpGet", {})
            if request.get("path") != path or request.get("port") not in ports:
                yield f"{probe}: not {path} of a port"


def stop(documents):
    """The grace period is longer than a stop."""
    for document in of_kind(documents, "StatefulSet"):
        pod = document["spec"]["template"]["spec"]
        variables = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
        milliseconds = sum(int(variables[f"TOLLGATE__SERVER__{key}"]) for key in ("DRAIN_MS", "SHUTDOWN_TIMEOUT_MS"))
        if pod.get("terminationGracePeriodSeconds", 0) <= milliseconds / 1000 + BACKGROUND_SECONDS:
            yield "terminationGracePeriodSeconds is not longer than a stop"


def journal(documents):
    """Each replica has a volume of its own for the journal, which outlives it, or its journal is in the database."""
    for document in of_kind(documents, "StatefulSet"):
        spec = document["spec"]
        claims = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])]
        container = spec["template"]["spec"]["containers"][0]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        variables = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        if variables.get("TOLLGATE__JOURNAL__SYNC") == "store":
            continue
        own = [mounts[claim] for claim in claims if claim in mounts]
        if not any(variables.get("TOLLGATE__JOURNAL__PATH", "").startswith(path + "/") for path in own):
            yield "the journal is not on a volume of the replica"
        if set(spec.get("persistentVolumeClaimRetentionPolicy", {}).values()) != {"Retain"}:
            yield "the volume of the journal does not outlive its replica"


def migration(documents):
    """The migration is a hook before installation and upgrade. It needs what the servers need, and no other object of
    the chart than hooks before it."""
    jobs = of_kind(documents, "Job")
    if len(jobs) != 1:
        yield f"{len(jobs)} jobs"
    for job in jobs:
        if job["metadata"].get("annotations", {}).get("helm.sh/hook") != "pre-install,pre-upgrade":
            yield "the job is no hook"
        pod = job["spec"]["template"]["spec"]
        if pod["containers"][0]["args"][:2] != ["migrate", "up"] or pod["restartPolicy"] != "Never":
            yield "the job does not migrate, or hides its failure"
        maps = {volume["configMap"]["name"] for volume in pod.get("volumes", []) if "configMap" in volume}
        if "serviceAccountName" in pod or not maps <= earlier_hooks(documents):
            yield "the job uses an object that does not exist yet"
        servers = of_kind(documents, "StatefulSet")
        if any(secrets_of(pod) != secrets_of(server["spec"]["template"]["spec"]) for server in servers):
            yield "the job lacks secrets of the servers"
        if not all("--no-migrate" in server["spec"]["template"]["spec"]["containers"][0]["args"] for server in servers):
            yield "servers migrate, too"


def earlier_hooks(documents):
    """Returns the names of configurations that exist before a hook of the weight 0."""
    found = set()
    for document in of_kind(documents, "ConfigMap"):
        annotations = document["metadata"].get("annotations", {})
        if annotations.get("helm.sh/hook") == "pre-install,pre-upgrade" and int(annotations["helm.sh/hook-weight"]) < 0:
            found.add(document["metadata"]["name"])
    return found


def secrets_of(pod):
    """Returns the secrets that a pod mounts, with their paths, and those of its environment."""
    container = pod["containers"][0]
    names = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    mounted = {(mount["mountPath"], names[mount["name"]]) for mount in container["volumeMounts"] if mount["name"] in names}
    return mounted | {("", source["secretRef"]["name"]) for source in container.get("envFrom", [])}


def policy(documents):
    """The network policy admits Prometheus and requests from the load balancer, and opens the ports of the stores."""
    for document in of_kind(documents, "NetworkPolicy"):
        container = of_kind(documents, "StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0]
        opened = {port["port"] for rule in document["spec"]["egress"] for port in rule["ports"]}
        for variable in container["env"]:
            if variable["name"] in DEFAULT_PORTS and "value" in variable:
                port = urllib.parse.urlsplit(variable["value"]).port or DEFAULT_PORTS[variable["name"]]
                if port not in opened:
                    yield f"the policy does not open the port of {variable['name']}"
        rules = {port["port"]: rule for rule in document["spec"]["ingress"] for port in rule["ports"]}
        if not rules.get("metrics", {}).get("from"):
            yield "the policy admits no scrapes, or those of every pod"
        types = [service["spec"].get("type") for service in of_kind(documents, "Service")]
        if "LoadBalancer" in types and rules["http"].get("from") == [{"namespaceSelector": {}}]:
            yield "the policy does not admit requests from the load balancer"


def scaling(documents):
    """Either the number of replicas is fixed, or it follows the load."""
    for document in of_kind(documents, "StatefulSet"):
        if ("replicas" in document["spec"]) == bool(of_kind(documents, "HorizontalPodAutoscaler")):
            yield "the number of replicas is set twice, or not at all"


def ingress(documents):
    """The ingress leads to a port of a service of the chart."""
    services = {
        (service["metadata"]["name"], port["name"])
        for service in of_kind(documents, "Service")
        for port in service["spec"]["ports"]
    }
    for document in of_kind(documents, "Ingress"):
        for rule in document["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                if (backend["name"], backend["port"]["name"]) not in services:
                    yield "the ingress leads to no service"


def selectors(documents):
    """Services, the budget and the network policy select the pods of the server, and not those of the job."""
    servers = of_kind(documents, "StatefulSet")
    labels = servers[0]["spec"]["template"]["metadata"]["labels"]
    job = of_kind(documents, "Job")[0]["spec"]["template"]["metadata"]["labels"]
    for kind, member in (("Service", None), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for document in of_kind(documents, kind):
            selected = document["spec"]["selector"] if member is None else document["spec"][member]["matchLabels"]
            if not selected.items() <= labels.items() or selected.items() <= job.items():
                yield f"{kind} {document['metadata']['name']}: selects other pods"
    if not of_kind(documents, "NetworkPolicy"):
        yield "no network policy"
    if servers[0]["spec"].get("replicas", 2) > 1 and not of_kind(documents, "PodDisruptionBudget"):
        yield "no disruption budget"


CHART = [security, secrets, probes, stop, journal, migration, policy, scaling, ingress, selectors]


def chart(documents):
    """Returns all violations of a rendered chart."""
    return [violation for rule in CHART for violation in rule(documents)]


def seconds(text):
    """Parses a duration such as 90s or 2m."""
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def compose(file, stop_seconds):
    """Returns all violations of the Compose file."""
    found = []
    for name, service in file["services"].items():
        if service.get("read_only") is not True:
            found.append(f"{name}: the root file system is writable")
        if service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get("security_opt", []):
            found.append(f"{name}: has privileges")
        if "healthcheck" not in service:
            found.append(f"{name}: no health check")
        image = service["image"]
        if ":" not in image or image.endswith(":latest"):
            found.append(f"{name}: the image has no version")
        for port in service.get("ports", []):
            if not port.startswith("127.0.0.1:"):
                found.append(f"{name}: a port is open to the network")
        for key, value in service.get("environment", {}).items():
            # `${NAME:?message}` has no default; a file is named, not a secret.
            names_file = key.endswith("_FILE") or value.startswith("file:")
            if "PASSWORD" in f"{key}{value}" and ":?" not in value and not names_file:
                found.append(f"{name}: {key} has a default")
    server = file["services"]["tollgate"]
    if seconds(server.get("stop_grace_period", "10s")) <= stop_seconds:
        found.append("tollgate: stop_grace_period is not longer than a stop")
    if server["depends_on"]["migrate"]["condition"] != "service_completed_successfully":
        found.append("tollgate: starts without the schema")
    return found
