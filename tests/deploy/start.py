"""Starts the image, the stacks of Compose and of the chart, and performs the five operations through them:
`start.py ROOT TOLLGATE OBJECT_STORE RENDERED…`. `run.py` calls it in namespaces of its own, which end with it."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

import chart_stack
import compose_stack
import operations
from containers import Container, Image, Network

ROOT, TOLLGATE, OBJECT_STORE = (pathlib.Path(argument) for argument in sys.argv[1:4])
RENDERED = [pathlib.Path(argument) for argument in sys.argv[4:]]
# A user that no image knows, of the group that platforms give such users.
ARBITRARY_USER = (1000650000, 0)
# `--stop-timeout` of docs/install.md.
STOP_SECONDS = 120


class ImageAlone:
    """The image with its own configuration, command and health check, on a volume: `docker run --read-only`."""

    def __init__(self, image, folder, user):
        self.network = Network(["tollgate"], folder)
        volume = image.fill_volume(folder / "volume", image.working_folder)
        self.image, self.server = image, Container(
            "tollgate",
            self.network,
            folder,
            root=str(image.new_root(folder / "root")),
            mounts=[(str(volume), image.working_folder, False)],
            working_folder=image.working_folder,
            user=user or image.user,
            environment=image.environment,
            arguments=[*image.entry, *image.command],
        )

    def operate(self):
        self.server.wait_until_healthy(self.image.health)
        operations.perform([self.server])

    def stop(self):
        self.server.begin_stop()
        self.server.require_stopped(STOP_SECONDS)
        self.network.remove()


def perform(title, stack):
    stack.operate()
    stack.stop()
    print(f"ok  {title}: started, five operations, stopped", flush=True)


def main():
    # The names of network namespaces are files there.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Users of containers reach their files below it.
        folder.chmod(0o711)
        image = Image(ROOT / "Dockerfile", ROOT, TOLLGATE, folder / "image")
        binaries = {"object store": folder / "object-store"}
        shutil.copy2(OBJECT_STORE, binaries["object store"])
        page = (ROOT / "docs/install.md").read_text()
        alone, more = compose_stack.steps(page)
        replicas = alone + more
        for whom, user in [("the user of the image", None), ("a user of group 0", ARBITRARY_USER)]:
            for title, block in [("Dockerfile", None), ("compose.yaml", alone), ("compose.replicas.yaml", replicas)]:
                work = folder / f"{title} as {whom}".replace(" ", "-")
                work.mkdir()
                if block is None:
                    stack = ImageAlone(image, work, user)
                else:
                    ignored = shutil.ignore_patterns(".env", "secrets", "providers.env")
                    shutil.copytree(ROOT / "deploy", work / "deploy", ignore=ignored)
                    stack = compose_stack.Stack(block, image, binaries, work, user)
                perform(f"{title} as {whom}", stack)
        for file in RENDERED:
            work = folder / file.stem
            work.mkdir()
            documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
            perform(f"deploy/helm/tollgate with {file.name}", chart_stack.Stack(documents, image, binaries, work))


main()
