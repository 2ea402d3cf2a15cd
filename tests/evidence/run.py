"""Evaluates real models with `tollgate eval`: `run.py <tollgate binary>`. The outcomes are known.

`cargo xtask evaluate` installs what this needs and calls it.
"""

import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

import news  # noqa: E402
import tickets  # noqa: E402
from gateway import Gateway  # noqa: E402
from served import Server  # noqa: E402

CONFIGURATION = """
[server]
listen = "127.0.0.1:0"

[egress]
allow_private_addresses = true

[[providers]]
slug = "sparrow"
name = "Sparrow"
wire = "system-one"
base_url = "{sparrow}/v1"

[[providers]]
slug = "counted"
name = "Counted"
wire = "system-one"
base_url = "{counted}/v1"

[[endpoints]]
model = "sparrow/nano"
provider = "sparrow"
upstream_model = "sparrow"
input_usd_per_million_tokens = "1"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "counted/small"
provider = "counted"
upstream_model = "small"
input_usd_per_million_tokens = "0.1"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "counted/classifier"
provider = "counted"
upstream_model = "classifier"
input_usd_per_million_tokens = "1"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "counted/expert"
provider = "counted"
upstream_model = "expert"
independent_questions = true
input_usd_per_million_tokens = "1"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "counted/expert-on-all"
provider = "counted"
upstream_model = "expert"
input_usd_per_million_tokens = "1"
output_usd_per_million_tokens = "0"
"""


class Sparrow:
    """The model's server on a free port."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = Path(sys.executable).with_name("sparrow-decider")
        command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as call:
                if call.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}"
            time.sleep(0.1)
        raise SystemExit("sparrow-decider does not listen")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def main():
    binary = sys.argv[1]
    items = news.read()
    fitted, labelled = items[: news.FITTED], items[-news.LABELLED :]
    asked = tickets.read()
    models = {"classifier": news.Classifier(fitted).answer, "expert": tickets.Expert(asked).answer}
    with Sparrow() as sparrow, Server(sparrow, models) as counted:
        with Gateway(binary, CONFIGURATION.format(sparrow=sparrow, counted=counted)) as gateway:
            key = gateway.json("key", "create", "--name", "evaluation")
            gateway.environment["TOLLGATE_KEY"] = key["key"]
            tickets.run(gateway, asked)
            news.run(gateway, labelled)


if __name__ == "__main__":
    main()
