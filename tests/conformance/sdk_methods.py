"""The methods of the published packages `openrouter` and `@openrouter/sdk` that have a route here. The checks of a
package must call each of them with success, by the access log of the gateway."""

import json
import re
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

PYTHON = re.compile(r'self\._build_request\(\s*method="(\w+)",\s*path="([^"]+)"')
NODE = re.compile(r'pathToFunc\("([^"]+)"\).*?method: "(\w+)"', re.DOTALL)
CALL = re.compile(r'http\.method="?(\w+)"? http\.route="?([^" ]+)"? .*?http\.status=2\d\d')


def of_python():
    """Returns method and path of each method of the Python package."""
    folder = Path(find_spec("openrouter").origin).parent
    return {call for file in folder.glob("*.py") for call in PYTHON.findall(file.read_text())}


def of_node(node_folder):
    """Returns method and path of each method of the Node package."""
    folder = Path(node_folder) / "node_modules/@openrouter/sdk/esm/funcs"
    found = (NODE.search(file.read_text()) for file in folder.glob("*.js"))
    return {(match[2], match[1]) for match in found if match}


def verify(package, methods, gateway, log):
    """Ends the process if a method with a route is missing in what `log` returns. The server writes its log beside the
    answers, so the last lines may come a moment later."""
    with urllib.request.urlopen(f"{gateway.base}/openapi.json") as reply:
        described = json.load(reply)["paths"]
    routes = {(method.upper(), plain(path)) for path, operations in described.items() for method in operations}
    with_route = {(method, plain(path)) for method, path in methods} & routes
    deadline = time.monotonic() + 10
    while True:
        called = {(method, plain(route)) for method, route in CALL.findall(log())}
        missing = sorted(with_route - called)
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if missing or len(with_route) < 40:
        sys.exit(f"FAILED {package}: of {len(with_route)} methods with a route, these are not called: {missing}")
    print(f"ok     {package}: each of its {len(with_route)} methods with a route is called", flush=True)


def plain(path):
    """Returns a path without its base path and without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path.removeprefix("/api/v1"))
