"""A temporary gateway: its own folder, a free port, and keys created by the command line."""

import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

START_SECONDS = 60
STOP_SECONDS = 60


class Gateway:
    """`tollgate serve` on a free port, for the duration of the block."""

    def __init__(self, binary, configuration):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="tollgate-conformance-")
        self.path = Path(self.folder.name)
        stores = f'[storage]\nurl = "sqlite://{self.path}/tollgate.db"\n[blobs]\nurl = "file:{self.path}/blobs"\n'
        (self.path / "tollgate.toml").write_text(configuration + stores)
        # The caller's environment must not configure this instance.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TOLLGATE__")}

    def __enter__(self):
        self.log = open(self.path / "serve.log", "w+b")
        self.process = subprocess.Popen(
            self._command("serve"), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment
        )
        try:
            self.base = self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def output(self):
        """Returns the log of the server."""
        return (self.path / "serve.log").read_text(errors="replace")

    def json(self, *arguments):
        """Runs a command that prints one JSON document."""
        command = self._command(*arguments, "--json")
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"`tollgate {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def _command(self, *arguments):
        return [self.binary, *arguments, "--config", str(self.path / "tollgate.toml")]

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"the gateway ended with {self.process.returncode}: {self.output()}")
            address = re.search(r"server\.address=(\S+)", self.output())
            if address and is_ready(f"http://{address[1]}"):
                return f"http://{address[1]}"
            time.sleep(0.05)
        raise SystemExit(f"the gateway is not ready: {self.output()}")


def is_ready(base):
    try:
        with urllib.request.urlopen(f"{base}/health/ready", timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False
