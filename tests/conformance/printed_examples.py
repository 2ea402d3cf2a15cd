"""Runs the examples of docs/clients.md as they are printed there, each in its own process."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
PRINTED_ADDRESS = "http://127.0.0.1:8080"
# An answer, as each package prints it: a probability, a truth value, or the chosen label.
ANSWER = re.compile(r"\b0\.\d+|\bTrue\b|\bbilling\b")
SECONDS = 120


def run(base, key, node_folder):
    """Runs every example against the gateway at `base`; ends the process at the first failure."""
    environment = {**os.environ, "TOLLGATE_KEY": key}
    # LiteLLM reads its prices from the network otherwise.
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    examples = list(printed())
    for client, language, code in examples:
        # An example without the address would send its content to a public service.
        if PRINTED_ADDRESS not in code:
            sys.exit(f"FAILED docs/clients.md: {client}: the example names no {PRINTED_ADDRESS}")
        command = command_of(language, code.replace(PRINTED_ADDRESS, base), node_folder)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0 or not ANSWER.search(done.stdout):
            sys.exit(f"FAILED docs/clients.md: {client}: {done.returncode}\n{done.stdout}{done.stderr}")
        print(f"ok     docs/clients.md: {client}", flush=True)
    print(f"passed docs/clients.md: {len(examples)} examples", flush=True)


def printed():
    """Returns the client, the language and the code of every example: one a section."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        client = section.partition("\n")[0]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
        if len(blocks) != 1:
            sys.exit(f"FAILED docs/clients.md: {client}: {len(blocks)} examples instead of one")
        yield client, *blocks[0]


def command_of(language, code, node_folder):
    if language == "python":
        return [sys.executable, "-c", code]
    if language == "sh":
        return ["sh", "-ec", code]
    # Node looks for packages in the folders above the script.
    script = Path(node_folder) / "printed_example.mjs"
    script.write_text(code)
    return ["node", script]
