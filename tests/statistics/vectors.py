"""Writes the expected figures of `crates/domain/src/statistics` as SciPy and scikit-learn compute them.

Usage: vectors.py > crates/domain/src/statistics/tests/vectors.json
"""

import json

import numpy as np
from scipy.stats import binom, binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

BINS = 10
DRAWS = 20_000


def binomial_tails():
    for trials in (1, 2, 10, 22, 45, 114, 230, 1_000, 10_000, 100_000):
        for probability in (0.01, 0.05, 0.1, 0.5, 0.9):
            mean, spread = trials * probability, (trials * probability * (1 - probability)) ** 0.5
            counts = {0, 1, trials - 1, trials} | {max(0, int(mean + sigmas * spread)) for sigmas in (-2, -1, 0, 1)}
            for count in sorted(count for count in counts if count <= trials):
                yield [trials, probability, count, binom.cdf(count, trials, probability)]
    for trials, probability, count in ((5, 0, 0), (5, 0, 3), (5, 1, 4), (5, 1, 5), (0, 0.3, 0)):
        yield [trials, float(probability), count, binom.cdf(count, trials, probability)]


def intervals():
    for total in (1, 2, 7, 20, 100, 1_000, 20_000, 1_000_000):
        for count in sorted({0, 1, total // 20, total // 3, total // 2, total - 1, total}):
            interval = binomtest(count, total).proportion_ci(0.95, method="exact")
            yield [count, total, interval.low, interval.high]


def mcnemar_tests():
    for first, second in ((0, 0), (0, 1), (1, 1), (0, 6), (3, 12), (12, 3), (25, 25), (40, 61), (500, 601)):
        p_value = binomtest(first, first + second).pvalue if first + second else 1.0
        yield [first, second, p_value]


def calibration_error(scores, right):
    """Returns the error of one outcome, or of a row of outcomes each."""
    edges = np.percentile(scores, np.linspace(0, 100, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, scores)
    members = (bins[:, None] == np.arange(BINS)).astype(float)
    return np.abs(np.asarray(right) @ members - scores @ members).sum(axis=-1) / len(scores)


def labelled(random, scores, truth):
    right = random.random(len(scores)) < truth
    ece = calibration_error(scores, right)
    shares, means = calibration_curve(right, scores, n_bins=BINS, strategy="quantile")
    draws = random.random((DRAWS, len(scores))) < scores
    reference = calibration_error(scores, draws)
    return {
        "scores": scores.tolist(),
        "right": right.astype(int).tolist(),
        "brier": brier_score_loss(right, scores),
        "log_loss": log_loss(right, np.clip(scores, 0.001, 0.999), labels=[False, True]),
        "ece": ece,
        "reference_mean": reference.mean(),
        "reference_quantile": np.quantile(reference, 0.95),
        "bins": [list(bin) for bin in zip(means, shares)],
    }


def samples():
    random = np.random.default_rng(20261127)
    exact = 0.5 + 0.5 * random.beta(2.2, 1, 150)
    rounded = np.round(0.5 + 0.5 * random.beta(2.2, 1, 200), 2)
    thousand = np.round(0.5 + 0.5 * random.beta(2.2, 1, 1_000), 2)
    yield labelled(random, exact, exact)
    yield labelled(random, rounded, rounded)
    yield labelled(random, rounded, rounded - 0.25)
    yield labelled(random, thousand, thousand)
    yield labelled(random, np.full(30, 0.8), 0.8)
    yield labelled(random, np.repeat([0.0, 0.5, 1.0], 9), 0.5)
    yield labelled(random, np.array([0.7]), 1.0)


def main():
    vectors = {
        "binomial_tail": binomial_tails(),
        "clopper_pearson": intervals(),
        "mcnemar": mcnemar_tests(),
        "labelled": samples(),
    }
    # One row a line.
    parts = [
        f'"{name}": [\n' + ",\n".join(json.dumps(row, default=float) for row in rows) + "\n]"
        for name, rows in vectors.items()
    ]
    print("{\n" + ",\n".join(parts) + "\n}")


main()
