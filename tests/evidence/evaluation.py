"""Runs `tollgate eval`, and reports on random labels of its result files."""

import concurrent.futures
import hashlib
import json
import random
import subprocess
import time
import urllib.request
from decimal import Decimal

# A run of so many labels, drawn from all, and of 100 items for the candidates.
LABELS = 500
CANDIDATES = 100
RUNS = 60
ALPHA = 0.10
DELTA = 0.10


def check(is_right, text):
    if not is_right:
        raise SystemExit(f"FAILED: {text}")
    print(f"ok: {text}")


def report(gateway, *arguments):
    """Runs `tollgate eval`; returns the report."""
    command = gateway._command("eval", *arguments, "--alpha", str(ALPHA), "--json")
    done = subprocess.run(command, env=gateway.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"`tollgate eval {' '.join(arguments)}` failed: {done.stderr}")
    return json.loads(done.stdout)["data"]


def evaluate(gateway, slug, questions, items, models):
    """Asks models about labelled items, pairs of state and labels; returns the path of the result file and the report."""
    preset, dataset, results = (gateway.path / f"{slug}.{end}" for end in ("json", "jsonl", "results"))
    preset.write_text(json.dumps({"models": models, "questions": questions}))
    gateway.json("preset", "create", slug, "--from", str(preset))
    dataset.write_text("".join(json.dumps({"state": state, "labels": labels}) + "\n" for state, labels in items))
    # A new preset is in force within a second.
    time.sleep(1.5)
    arguments = ["--preset", slug, "--dataset", str(dataset), "--results", str(results), "--yes"]
    arguments += [part for model in models for part in ("--model", model)]
    return results, report(gateway, "run", *arguments, "--html", str(gateway.path / "page.html"))


def group_of(found, question, model):
    return next(group for group in found["groups"] if (group["question"], group["origin"]["model"]) == (question, model))


def cascade_of(found, first, last):
    return next(cascade for cascade in found["cascades"] if [cascade[at]["model"] for at in ("first", "last")] == [first, last])


def share(group):
    return group["accuracy"]["share"]


def risk_at(curve, threshold):
    """Returns the risk of all answers with at least this score."""
    accepted = [point for point in curve if point["threshold"] >= threshold]
    return accepted[-1]["risk"]["share"] if accepted else 0.0


def risk_of_fifth(group):
    """Returns the share of errors in the most confident fifth of the answers."""
    point = min(group["risk_coverage"], key=lambda point: abs(point["coverage"]["share"] - 0.2))
    return point["risk"]["share"]


def check_thresholds(gateway, results, group, least_found, most_broken, least_naive):
    """Checks the thresholds of reports on random labels against all answers. Returns the mean coverage."""
    name, model = group["question"], group["origin"]["model"]
    header, *rows = results.read_text().splitlines()
    # Answers come in any order, and the draws are those of a seed.
    rows = sorted((row for row in rows if json.loads(row)["asked"] == model), key=lambda row: json.loads(row)["item"])
    draws, sample, tested, naive = random.Random(1), gateway.path / "sample.results", [], []
    for _ in range(RUNS):
        sample.write_text("\n".join([header, *draws.sample(rows, CANDIDATES + LABELS)]) + "\n")
        drawn = group_of(report(gateway, "report", "--results", str(sample)), name, model)
        if drawn["threshold"] is not None:
            tested.append(drawn["threshold"])
        # The lowest threshold that looks right on the same labels.
        right = [point["threshold"] for point in drawn["risk_coverage"] if point["risk"]["share"] <= ALPHA]
        naive += right[-1:]
    broken = [sum(risk_at(group["risk_coverage"], threshold) > ALPHA for threshold in thresholds)
              for thresholds in ([point["threshold"] for point in tested], naive)]
    check(len(tested) >= RUNS * least_found, f"{name} has a threshold in {len(tested)} of {RUNS} runs of {LABELS} labels")
    check(broken[0] <= RUNS * most_broken, f"the promise is broken in {broken[0]} of {RUNS} runs")
    check(broken[1] > RUNS * least_naive, f"a threshold that only looks right breaks it in {broken[1]} of {RUNS} runs")
    return sum(point["coverage"]["share"] for point in tested) / len(tested)


def check_cost(gateway, slug, questions, items, results, cascade, threshold):
    """Asks the items of a prediction through a preset with its threshold. Compares what is charged with the charges for
    the last model alone, and the accepted questions, with the prediction."""
    first, last = (cascade[at]["model"] for at in ("first", "last"))
    predicted = next(point for point in cascade["predictions"] if point["threshold"] == threshold)
    stages, preset = [{"model": first, "accept": {"*": threshold}}, {"model": last}], gateway.path / f"{slug}.json"
    preset.write_text(json.dumps({"stages": stages, "questions": questions}))
    gateway.json("preset", "create", slug, "--from", str(preset))
    key = gateway.json("key", "create", "--name", slug)["key"]
    time.sleep(1.5)
    rows = [json.loads(row, parse_float=Decimal) for row in results.read_text().splitlines()[1:]]
    # The labels of the items with the lowest hashes are used for candidates only.
    asked = sorted({row["item"] for row in rows})[CANDIDATES:]
    alone = sum(Decimal(row["cost"]) for row in rows if row["asked"] == last and row["item"] in set(asked))

    def call(path, body=None):
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        text = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{gateway.base}/api/v1/{path}", text, headers)) as reply:
            return json.load(reply, parse_float=Decimal)

    states = {hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]: state for state, _ in items}

    def ask(item):
        return call("systemone", {"model": f"@preset/{slug}", "questions": {}, "state": states[item]})

    with concurrent.futures.ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(ask, asked))
    stage_of = [[outcome["stage"] for outcome in answer["outcomes"].values()] for answer in answers]
    accepted = sum(stages.count(1) for stages in stage_of)
    shares = [[accepted, sum(map(len, stage_of))], [sum(2 in stages for stages in stage_of), len(asked)]]
    expected = [[predicted[part][member] for member in ("count", "total")] for part in ("accepted", "escalated")]
    check(shares == expected, f"{slug}: {shares[0]} questions are accepted, {shares[1]} requests are escalated")
    charged = sum(Decimal(answer["usage"]["cost"]) for answer in answers)
    counted = call("key")["data"]["usage"]
    check(charged == counted, f"{slug}: the answers cost {charged} USD, and the key {counted}")
    relative, ratio = charged / alone, Decimal(predicted["relative_cost"])
    check(abs(relative / ratio - 1) < Decimal("0.01"), f"{slug}: costs {relative:.4f}, predicted {ratio:.4f}")
