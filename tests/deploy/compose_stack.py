"""The stack of Compose, as its files describe it."""

import json
import pathlib
import re
import sys

import yaml

import operations
import servers
from containers import Container, Network, run

# Lists that a further file replaces; other lists grow.
REPLACED = {"command", "entrypoint", "test"}


def merge(base, more):
    """Merges a further file as Compose does."""
    merged = dict(base)
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        elif isinstance(value, list) and isinstance(merged.get(key), list) and key not in REPLACED:
            merged[key] = merged[key] + value
        else:
            merged[key] = value
    return merged


def load(files):
    merged = {}
    for file in files:
        merged = merge(merged, yaml.safe_load(file.read_text()))
    return merged


def interpolate(value, variables):
    """Replaces ${NAME:?message}, ${NAME:-default} and $$ in every text."""

    def replace(match):
        if match[0] == "$$":
            return "$"
        name, kind, rest = match["name"], match["kind"], match["rest"]
        if variables.get(name):
            return variables[name]
        if kind == ":-":
            return rest
        sys.exit(f"{name}: {rest or 'not set'}")

    if isinstance(value, dict):
        return {key: interpolate(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolate(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"\$\$|\$\{(?P<name>\w+)((?P<kind>:[-?])(?P<rest>[^}]*))?\}", replace, value)


def steps(page):
    """Returns the shell blocks of the section about Compose."""
    section = page.partition("\n## Compose\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


class Stack:
    """The services, started in the order of their dependencies."""

    def __init__(self, block, image, binaries, folder, user):
        self.image, self.binaries, self.folder, self.user = image, binaries, folder, user
        self.deploy = folder / "deploy"
        # The documented steps before the start, in a copy of the folder.
        prepare = "\n".join(line for line in block.splitlines() if not line.startswith("docker "))
        run("bash", "-euo", "pipefail", "-c", prepare, cwd=folder)
        starts = [line for line in block.splitlines() if line.startswith("docker compose") and " up " in line]
        files = re.findall(r"--file (\S+)", starts[-1]) or ["compose.yaml"]
        lines = (self.deploy / ".env").read_text().splitlines()
        variables = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        file = interpolate(load([self.deploy / name for name in files]), variables)
        self.services, self.secrets = file["services"], file.get("secrets", {})
        self.network = Network(self.services, folder)
        self.running = {}
        for name in self.services:
            self.start(name)

    def start(self, name):
        if name in self.running:
            return
        service = self.services[name]
        for needed, how in service.get("depends_on", {}).items():
            self.start(needed)
            if how["condition"] == "service_completed_successfully":
                self.running[needed].wait_until_done()
            else:
                assert how["condition"] == "service_healthy", how
                self.wait_until_healthy(needed)
        image = service["image"].partition(":")[0]
        start = {
            "postgres": self.start_postgres,
            "valkey/valkey": self.start_valkey,
            "chrislusf/seaweedfs": self.start_object_store,
            "tollgate": self.start_tollgate,
        }[image]
        self.running[name] = start(name, service)

    def wait_until_healthy(self, name):
        test = self.services[name]["healthcheck"]["test"]
        check = ["sh", "-c", test[1]] if test[0] == "CMD-SHELL" else test[1:]
        # That of the object store is for another program; it has been waited for.
        if "seaweedfs" not in self.services[name]["image"]:
            self.running[name].wait_until_healthy(check)

    def secret_mounts(self, service):
        return [
            (str(self.deploy / self.secrets[name]["file"]), f"/run/secrets/{name}", True)
            for name in service.get("secrets", [])
        ]

    def start_postgres(self, name, service):
        return servers.postgres(name, self.network, self.folder, service["environment"])

    def start_valkey(self, name, service):
        user = [int(number) for number in service["user"].split(":")]
        mounts = self.secret_mounts(service)
        return servers.valkey(name, self.network, self.folder, service["command"], mounts, user)

    def start_object_store(self, name, service):
        option = dict(word.split("=", 1) for word in service["command"] if "=" in word)
        config = {target: source for source, target, _ in self.secret_mounts(service)}[option["-s3.config"]]
        key = json.loads(pathlib.Path(config).read_text())["identities"][0]["credentials"][0]
        keys = (key["accessKey"], key["secretKey"])
        return servers.object_store(
            name, self.network, self.folder, self.binaries["object store"], int(option["-s3.port"]), *keys
        )

    def start_tollgate(self, name, service):
        mounts = self.secret_mounts(service)
        for volume in service["volumes"]:
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                source = (self.deploy / source).resolve()
            else:
                source = self.image.fill_volume(self.folder / f"volume-{source}", target)
            mounts.append((str(source), target, mode == ["ro"]))
        assert service["read_only"] is True
        environment = {**self.image.environment, **service["environment"]}
        return Container(
            name,
            self.network,
            self.folder,
            root=str(self.image.new_root(self.folder / f"root-{name}")),
            mounts=mounts,
            working_folder=self.image.working_folder,
            user=self.user or self.image.user,
            environment=environment,
            arguments=[*self.image.entry, *service.get("command", self.image.command)],
        )

    def operate(self):
        self.wait_until_healthy("tollgate")
        server = self.running["tollgate"]
        operations.perform([server])
        if "object-store" in self.running:
            url = self.services["tollgate"]["environment"]["TOLLGATE__BLOBS__URL"]
            servers.require_object(self.folder, url.removeprefix("s3://"))
            password = (self.deploy / self.secrets["valkey"]["file"]).read_text().strip()
            servers.require_counts(self.running["valkey"], password)

    def stop(self):
        grace = int(self.services["tollgate"]["stop_grace_period"].removesuffix("s"))
        server = self.running.pop("tollgate")
        server.begin_stop()
        server.require_stopped(grace)
        for container in self.running.values():
            container.kill()
        self.network.remove()
