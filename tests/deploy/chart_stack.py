"""The stack of the rendered chart: what a cluster would start, on the volumes and with the users that it would give."""

import os
import sys
import urllib.parse

import operations
import rules
import servers
from containers import Container, Network, run, wait_for

# The user, group and volume group that a platform gives a pod that names none, such as those of OpenShift.
CHOSEN = (1000650000, 0, 1000650000)
DATABASE_PASSWORD = "database-password"
STORE_KEY = ("tollgate", "store-secret-key")
VALKEY_PASSWORD = "valkey-password"
# What the operator creates before the installation.
SECRETS = {
    "tollgate-database": {"url": f"postgres://tollgate:{DATABASE_PASSWORD}@database:5432/tollgate?sslmode=disable"},
    "object-store-key": {"AWS_ACCESS_KEY_ID": STORE_KEY[0]},
    "store-passwords": {"object-store": STORE_KEY[1], "valkey": VALKEY_PASSWORD},
}


class Stack:
    def __init__(self, documents, image, binaries, folder):
        self.documents, self.image, self.folder = documents, image, folder
        self.job = rules.of_kind(documents, "Job")[0]
        self.set = rules.of_kind(documents, "StatefulSet")[0]
        scaling = rules.of_kind(documents, "HorizontalPodAutoscaler")
        replicas = scaling[0]["spec"]["minReplicas"] if scaling else self.set["spec"]["replicas"]
        pods = [f"{self.set['metadata']['name']}-{number}" for number in range(replicas)]
        variables = self.set["spec"]["template"]["spec"]["containers"][0]["env"]
        self.values = {entry["name"]: entry["value"] for entry in variables if "value" in entry}
        self.bucket = self.values["TOLLGATE__BLOBS__URL"].removeprefix("s3://")
        names = ["database", "valkey", "object-store", self.job["metadata"]["name"], *pods]
        self.network = Network(names, folder)
        self.others = [*self.start_stores(binaries)]
        self.others[0].wait_until_healthy(lambda: servers.accepts(self.others[0].address, 5432))
        # A hook runs before the other objects exist.
        hooks = [document for document in documents if "helm.sh/hook" in document["metadata"].get("annotations", {})]
        self.maps = self.config_maps(hooks)
        self.start(self.job["metadata"]["name"], self.job["spec"]["template"]["spec"], []).wait_until_done()
        self.maps = self.config_maps([document for document in documents if document not in hooks])
        claims = self.set["spec"].get("volumeClaimTemplates", [])
        self.pods = [self.start(pod, self.set["spec"]["template"]["spec"], claims) for pod in pods]

    def start_stores(self, binaries):
        variables = {"POSTGRES_USER": "tollgate", "POSTGRES_DB": "tollgate", "POSTGRES_PASSWORD": DATABASE_PASSWORD}
        yield servers.postgres("database", self.network, self.folder, variables)
        if "TOLLGATE__RATE_LIMITS__URL" in self.values:
            command = ["valkey-server", "--save", "", "--requirepass", VALKEY_PASSWORD]
            yield servers.valkey("valkey", self.network, self.folder, command)
        if endpoint := self.values.get("TOLLGATE__BLOBS__ENDPOINT"):
            port = urllib.parse.urlsplit(endpoint).port
            yield servers.object_store(
                "object-store", self.network, self.folder, binaries["object store"], port, *STORE_KEY
            )

    @staticmethod
    def config_maps(documents):
        maps = rules.of_kind(documents, "ConfigMap")
        return {document["metadata"]["name"]: document["data"] for document in maps}

    def start(self, name, pod, claims):
        container = pod["containers"][0]
        context = pod["securityContext"]
        user = context.get("runAsUser", CHOSEN[0])
        group = context.get("runAsGroup", CHOSEN[1])
        volume_group = context.get("fsGroup", CHOSEN[2])
        assert container["securityContext"]["readOnlyRootFilesystem"] is True and "command" not in container
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        volumes |= {claim["metadata"]["name"]: {"claim": claim} for claim in claims}
        mounts = []
        for mount in container["volumeMounts"]:
            source = self.volume(name, mount["name"], volumes[mount["name"]], volume_group)
            mounts.append((str(source), mount["mountPath"], mount.get("readOnly", False)))
        return Container(
            name,
            self.network,
            self.folder,
            root=str(self.image.new_root(self.folder / f"root-{name}")),
            mounts=mounts,
            working_folder=container["workingDir"],
            user=(user, group, volume_group),
            environment={**self.image.environment, **self.environment(container)},
            arguments=[*self.image.entry, *container["args"]],
        )

    def volume(self, pod, name, volume, group):
        """Returns the folder of a volume, with the owner and the mode that a cluster gives it."""
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        folder = self.folder / (f"claim-{claim}" if claim else f"volume-{pod}-{name}")
        if folder.exists():
            return folder
        folder.mkdir()
        mode, files, file_mode = 0o2775, {}, 0o644
        if "emptyDir" in volume:
            mode = 0o2777
        elif "configMap" in volume:
            files = self.maps[volume["configMap"]["name"]]
        elif "secret" in volume:
            files, file_mode = SECRETS[volume["secret"]["secretName"]], volume["secret"]["defaultMode"]
        # Kubernetes exchanges the files of a map or a secret at once: their names are links.
        version = folder / "..version"
        for file, text in files.items():
            version.mkdir(exist_ok=True)
            (version / file).write_text(text)
            (version / file).chmod(file_mode)
            (folder / file).symlink_to(f"..data/{file}")
        if files:
            (folder / "..data").symlink_to(version.name)
        run("chown", "-R", f"0:{group}", folder)
        os.chmod(folder, mode)
        return folder

    @staticmethod
    def environment(container):
        values = {}
        for source in container.get("envFrom", []):
            values |= SECRETS[source["secretRef"]["name"]]
        for entry in container["env"]:
            if "value" in entry:
                values[entry["name"]] = entry["value"]
            else:
                reference = entry["valueFrom"]["secretKeyRef"]
                values[entry["name"]] = SECRETS[reference["name"]][reference["key"]]
        return values

    def wait_until_ready(self, pod):
        container = self.set["spec"]["template"]["spec"]["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            request = container[name]["httpGet"]

            def reason():
                url = f"http://{pod.address}:{ports[request['port']]}{request['path']}"
                if refused := servers.accepts(pod.address, ports[request["port"]]):
                    return refused
                status, body = operations.send("GET", url)
                return None if status == 200 and body["status"] in ("ok", "live") else f"{status} {body}"

            pod.wait_until_healthy(reason)

    def operate(self):
        for pod in self.pods:
            self.wait_until_ready(pod)
        operations.perform(self.pods)
        stores = {store.name: store for store in self.others}
        if "object-store" in stores:
            servers.require_object(self.folder, self.bucket)
        if "valkey" in stores:
            servers.require_counts(stores["valkey"], VALKEY_PASSWORD)
        self.require_scrapes()

    def require_scrapes(self):
        """The port that the policy opens to Prometheus has metrics."""
        for pod in self.pods:
            wait_for(f"metrics of {pod.name}", lambda: servers.accepts(pod.address, 9464))

    def stop(self):
        for pod in self.pods:
            pod.begin_stop()
        for pod in self.pods:
            pod.require_stopped(self.set["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
        for container in self.others:
            container.kill()
        self.network.remove()
