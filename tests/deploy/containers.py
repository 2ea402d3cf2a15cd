"""Containers as processes: the file system of the image, a network with an address for each, mounts, users, health."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
# The longest time for a program to become healthy, or to end.
PATIENCE_SECONDS = 120
POLL_SECONDS = 0.2


def run(*command, **options):
    command = [str(word) for word in command]
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    if ended.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def wait_for(what, condition, seconds=PATIENCE_SECONDS):
    """Waits until the condition returns no reason against it; it fails with the last reason."""
    until = time.monotonic() + seconds
    while (reason := condition()) is not None:
        if time.monotonic() > until:
            sys.exit(f"{what}: {reason}")
        time.sleep(POLL_SECONDS)


class Image:
    """The final stage of the Dockerfile, assembled by its own instructions around a binary that exists."""

    def __init__(self, dockerfile, context, binary, folder):
        lines = [line for line in dockerfile.read_text().splitlines() if not line.lstrip().startswith("#")]
        instructions = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
        words = [line.split(maxsplit=1) for line in instructions if line.strip()]
        last = max(number for number, (kind, _) in enumerate(words) if kind == "FROM")
        assert words[last][1] == "scratch", "the base of the image cannot be assembled here"
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir(parents=True)
        installed = folder / "image/usr/local/bin/tollgate"
        installed.parent.mkdir(parents=True)
        shutil.copy2(binary, installed)
        shell = next(json.loads(rest) for kind, rest in words[:last] if kind == "SHELL")
        for kind, rest in words[:last]:
            if kind == "RUN" and "cargo build" not in rest:
                for stage in ("/image", "/data"):
                    rest = re.sub(rf"(?<![\w.]){stage}\b", f"{folder}{stage}", rest)
                run(*shell, rest, cwd=context)
        stage = words[last + 1 :]
        for kind, rest in stage:
            if kind == "COPY":
                self.copy(rest)
        value = {kind: rest for kind, rest in stage}
        self.environment = dict(pair.split("=", 1) for pair in value["ENV"].split())
        self.user = [int(number) for number in value["USER"].split(":")]
        self.working_folder = value["WORKDIR"]
        self.entry = json.loads(value["ENTRYPOINT"])
        self.command = json.loads(value["CMD"])
        self.health = json.loads(value["HEALTHCHECK"].partition("CMD ")[2])

    def copy(self, rest):
        *options, source, target = rest.split()
        owner = next((option.partition("=")[2] for option in options if option.startswith("--chown=")), None)
        source, target = f"{self.folder}{source}", f"{self.root}{target}"
        run("mkdir", "-p", os.path.dirname(target.rstrip("/")))
        run("cp", "-a", "--no-target-directory", source, target)
        if owner:
            run("chown", "-R", owner, target)

    def fill_volume(self, folder, target):
        """Fills a new volume with the content, the owner and the mode of the image's folder."""
        if not folder.exists():
            run("cp", "-a", f"{self.root}{target}", folder)
        return folder

    def new_root(self, folder):
        """Returns a file system of a container; it becomes read-only."""
        run("cp", "-al", self.root, folder)
        return folder


class Network:
    """A bridge; each container has a namespace of its own with one address. Names are in /etc/hosts."""

    def __init__(self, names, folder):
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, start=2)}
        self.hosts = folder / "hosts"
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        self.hosts.write_text("\n".join(lines) + "\n")
        run("ip", "link", "add", "bridge0", "type", "bridge")
        run("ip", "address", "add", "10.77.0.1/24", "dev", "bridge0")
        run("ip", "link", "set", "bridge0", "up")
        for number, (name, address) in enumerate(self.addresses.items()):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"port{number}", "master", "bridge0", "up")
            run("ip", "-netns", name, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                run("ip", "-netns", name, "link", "set", device, "up")

    def remove(self):
        for number, name in enumerate(self.addresses):
            run("ip", "link", "delete", f"port{number}")
            run("ip", "netns", "delete", name)
        run("ip", "link", "delete", "bridge0")


class Container:
    """A running program. `specification` is that of enter.py, without the defaults."""

    def __init__(self, name, network, folder, **specification):
        self.name, self.address = name, network.addresses[name]
        self.folder = folder / name
        self.folder.mkdir(exist_ok=True)
        mounts = [(str(network.hosts), "/etc/hosts", True), *specification.pop("mounts", [])]
        self.specification = {"temporary": [], "mounts": mounts, "working_folder": "/", **specification}
        self.log = self.folder / "log"
        enter = self.enter(self.specification, "start.json")
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        with self.log.open("w") as log:
            command = ["ip", "netns", "exec", name, *namespaces, *enter]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def enter(self, specification, name):
        file = self.folder / name
        file.write_text(json.dumps(specification))
        return [sys.executable, "-B", str(HERE / "enter.py"), str(file)]

    def first_process(self):
        """Returns the process that is the first one in the container."""
        pid = self.process.pid
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(text[0]) if text else None

    def execute(self, *arguments, check=True):
        """Runs a command in the container, as its user."""
        enter = self.enter({**self.specification, "arguments": list(arguments)}, "exec.json")
        namespaces = ["nsenter", "--target", str(self.first_process()), "--mount", "--pid", "--net"]
        ended = subprocess.run([*namespaces, *enter, "exec"], capture_output=True, text=True)
        if check and ended.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(arguments)}: {ended.stderr}\n{self.output()}")
        return ended

    def output(self):
        return f"--- {self.name}\n{self.log.read_text()}"

    def require_running(self):
        if self.process.poll() is not None:
            sys.exit(f"{self.name} has ended with {self.process.returncode}:\n{self.output()}")

    def wait_until_healthy(self, check):
        """Waits until a command of the container succeeds, or a function returns no reason against it."""

        def reason():
            self.require_running()
            if callable(check):
                return check()
            ended = self.execute(*check, check=False)
            return None if ended.returncode == 0 else f"{ended.stdout}{ended.stderr}\n{self.output()}"

        wait_for(f"{self.name} is not healthy", reason)

    def wait_until_done(self):
        code = self.process.wait(PATIENCE_SECONDS)
        if code != 0:
            sys.exit(f"{self.name} has failed with {code}:\n{self.output()}")

    def begin_stop(self):
        self.require_running()
        os.kill(self.first_process(), signal.SIGTERM)

    def require_stopped(self, seconds):
        """Waits for the end after a signal: a failure, or a longer time, is an error."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            sys.exit(f"{self.name} does not stop within {seconds} s:\n{self.output()}")
        if code != 0:
            sys.exit(f"{self.name} has stopped with {code}:\n{self.output()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
