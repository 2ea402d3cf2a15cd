"""Evaluates a real model with `tollgate eval`: `run.py <tollgate binary>`. Three questions about generated support tickets
have known outcomes.

`cargo xtask evaluate` installs what this needs and calls it.
"""

import json
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

from gateway import Gateway  # noqa: E402
from sys1bench.generators import get_generator  # noqa: E402

TICKETS = 1500
# A run of so many labels, drawn from all, and of 100 items for the candidates.
LABELS = 500
CANDIDATES = 100
RUNS = 60
ALPHA = "0.10"

CONFIGURATION = """
[server]
listen = "127.0.0.1:0"

[egress]
allow_private_addresses = true

[[providers]]
slug = "sparrow"
name = "Sparrow"
wire = "system-one"
base_url = "{url}/v1"

[[endpoints]]
model = "sparrow/nano"
provider = "sparrow"
upstream_model = "sparrow"
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


def questions_of(item):
    questions = {}
    for name, question in item.questions.items():
        questions[name] = {"type": question.type, "instructions": question.instructions}
        if question.type == "choice":
            questions[name]["criteria"] = {option.key: option.description for option in question.criteria}
        elif question.type == "score":
            questions[name]["criteria"] = [level.description for level in question.criteria]
    return questions


def check(is_right, text):
    if not is_right:
        raise SystemExit(f"FAILED: {text}")
    print(f"ok: {text}")


def report(gateway, *arguments):
    """Runs `tollgate eval`; returns the groups by question, and the exit code."""
    command = gateway._command("eval", *arguments, "--json")
    done = subprocess.run(command, env=gateway.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"`tollgate eval {' '.join(arguments)}` failed: {done.stderr}")
    groups = json.loads(done.stdout)["data"]["groups"]
    return {group["question"]: group for group in groups}, done.returncode


def evaluate(gateway, name, questions, items):
    """Asks one question about all tickets; returns the path of the result file and the group."""
    preset = {"models": ["sparrow/nano"], "questions": {name: questions[name]}}
    (gateway.path / f"{name}.json").write_text(json.dumps(preset))
    slug = name.replace("_", "-")
    gateway.json("preset", "create", slug, "--from", str(gateway.path / f"{name}.json"))
    dataset = gateway.path / f"{name}.jsonl"
    lines = [json.dumps({"state": item.state, "labels": {name: item.questions[name].ground_truth}}) for item in items]
    dataset.write_text("\n".join(lines) + "\n")
    results = gateway.path / f"{name}.results"
    # A new preset is in force within a second.
    time.sleep(1.5)
    arguments = ["--preset", slug, "--dataset", str(dataset), "--model", "sparrow/nano", "--results", str(results)]
    groups, _ = report(gateway, "run", *arguments, "--yes", "--alpha", ALPHA, "--html", str(gateway.path / "page.html"))
    return results, groups[name]


def resample(gateway, results, name):
    """Returns the groups of reports on random labels."""
    header, *rows = results.read_text().splitlines()
    draws, sample, groups = random.Random(1), gateway.path / "sample.results", []
    for _ in range(RUNS):
        sample.write_text("\n".join([header, *draws.sample(rows, CANDIDATES + LABELS)]) + "\n")
        groups.append(report(gateway, "report", "--results", str(sample), "--alpha", ALPHA)[0][name])
    return groups


def share(group):
    return group["accuracy"]["share"]


def risk_at(curve, threshold):
    """Returns the risk of all answers with at least this score."""
    accepted = [point for point in curve if point["threshold"] >= threshold]
    return accepted[-1]["risk"]["share"] if accepted else 0.0


def main():
    binary = sys.argv[1]
    items = get_generator("support_tickets", n=TICKETS, seed=1).generate()
    questions = questions_of(items[0])
    with Sparrow() as url, Gateway(binary, CONFIGURATION.format(url=url)) as gateway:
        key = gateway.json("key", "create", "--name", "evaluation")
        gateway.environment["TOLLGATE_KEY"] = key["key"]
        found = {name: evaluate(gateway, name, questions, items) for name in questions}
        for name, expected in {"queue": 0.64, "is_angry": 0.70, "priority": 0.28}.items():
            group = found[name][1]
            check(abs(share(group) - expected) < 0.05, f"{name} is {share(group):.3f} right, about {expected}")
        for name in ("is_angry", "priority"):
            finding = found[name][1]["finding"]
            check(finding.startswith("no threshold"), f"{name}: {finding}")
        results, all_tickets = found["queue"]
        runs = resample(gateway, results, "queue")
        # The candidates are drawn at random: a few runs find none.
        tested = [group["threshold"] for group in runs if group["threshold"] is not None]
        with_threshold = len(tested)
        check(with_threshold >= RUNS * 0.9, f"queue has a threshold in {with_threshold} of {RUNS} runs of {LABELS} labels")
        accepted = sum(point["coverage"]["share"] for point in tested) / with_threshold
        check(0.2 < accepted < 0.5, f"about a third is accepted: {accepted:.2f}")
        broken = sum(risk_at(all_tickets["risk_coverage"], point["threshold"]) > float(ALPHA) for point in tested)
        check(broken <= RUNS * 0.1, f"the promise is broken in {broken} of {RUNS} runs")
        # The lowest threshold that looks right on the same labels.
        naive = []
        for group in runs:
            right = [point for point in group["risk_coverage"] if point["risk"]["share"] <= float(ALPHA)]
            naive.append(risk_at(all_tickets["risk_coverage"], right[-1]["threshold"]) > float(ALPHA) if right else False)
        check(sum(naive) > RUNS * 0.25, f"a threshold that only looks right breaks it in {sum(naive)} of {RUNS} runs")


if __name__ == "__main__":
    main()
