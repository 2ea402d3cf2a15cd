"""The common parts of the Python checks: one line per check, and the properties of answers from any provider."""

import asyncio
import inspect
import json
import os
import sys
import time
import traceback
import urllib.request
from contextlib import contextmanager

# Numbers have two decimals, with an error of half of the last digit.
HALF_STEP = 0.005 + 1e-9


class Harness:
    """The gateway under test, and the checks of one package."""

    def __init__(self, package):
        self.package = package
        self.base = os.environ["CONFORMANCE_BASE"]
        self.key = os.environ["CONFORMANCE_KEY"]
        self.management_key = os.environ["CONFORMANCE_MANAGEMENT_KEY"]
        self.fake_provider = os.environ["CONFORMANCE_FAKE_PROVIDER"]
        self._checks = []

    def check(self, function):
        """Registers a check; its docstring is the line that it prints."""
        self._checks.append(function)
        return function

    def run(self):
        """Runs the checks in order; ends the process at the first failure."""
        for check in self._checks:
            name = inspect.getdoc(check)
            try:
                result = check()
                if inspect.iscoroutine(result):
                    asyncio.run(result)
            except Exception as error:  # Whatever a package throws is a failed check.
                traceback.print_exc()
                reason = str(error).partition("\n")[0]
                print(f"FAILED {self.package}: {name}: {type(error).__name__}: {reason}", flush=True)
                sys.exit(1)
            print(f"ok     {self.package}: {name}", flush=True)
        print(f"passed {self.package}: {len(self._checks)} checks", flush=True)

    def add_preset(self, slug, config):
        """Adds a version of a preset, which no package can."""
        path = f"{self.base}/api/v1/presets/{slug}/decisions"
        request = urllib.request.Request(path, json.dumps(config).encode())
        request.add_header("Authorization", f"Bearer {self.management_key}")
        request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request, timeout=10).read()

    def forget(self):
        """Clears the recorded requests of the fake provider."""
        urllib.request.urlopen(urllib.request.Request(f"{self.fake_provider}/seen", method="DELETE"), timeout=10).read()

    def seen(self):
        """Returns the requests that the fake provider received, oldest first."""
        with urllib.request.urlopen(f"{self.fake_provider}/seen", timeout=10) as reply:
            return json.load(reply)


def equal(got, expected, what):
    """Fails unless both values are equal."""
    assert got == expected, f"{what} is {got!r}, not {expected!r}"


def holds(condition, what):
    """Fails unless the condition holds."""
    assert condition, what


@contextmanager
def raises(error_type, status=None):
    """Fails unless the block raises exactly that type (or one of those), with that status; yields a list that
    contains the error afterwards."""
    types = error_type if isinstance(error_type, tuple) else (error_type,)
    names = " or ".join(each.__name__ for each in types)
    caught = []
    try:
        yield caught
    except types as error:
        holds(type(error) in types, f"{type(error).__name__} was raised, not {names}: {error}")
        found = getattr(error, "status", getattr(error, "status_code", None))
        if status is not None:
            equal(found, status, "the status")
        caught.append(error)
        return
    raise AssertionError(f"nothing was raised, and {names} should have been")


@contextmanager
def takes_at_least(seconds):
    """Fails if the block takes less time."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    holds(took >= seconds, f"it took {took:.3f} s, less than {seconds} s")


def distribution(probabilities, names):
    """Checks a complete distribution over exactly these names, in this order."""
    equal(list(probabilities), list(names), "the names of the distribution")
    values = list(probabilities.values())
    holds(all(0 <= value <= 1 for value in values), f"a probability lies outside 0 to 1: {values}")
    holds(abs(sum(values) - 1) <= HALF_STEP * len(values), f"the probabilities sum to {sum(values)}")


def choice(chosen, confidence, probabilities, names):
    """Checks that a choice is its likeliest option, and that its confidence is the rescaled peak."""
    distribution(probabilities, names)
    most = max(probabilities.values())
    equal(probabilities[chosen], most, "the probability of the chosen option")
    count = len(probabilities)
    expected = 1.0 if count == 1 else max(0.0, (count * most - 1) / (count - 1))
    # The peak was rounded before it was rescaled, which at most doubles its error.
    holds(abs(confidence - expected) <= 3 * HALF_STEP, f"confidence is {confidence}, by the formula {expected}")


def score(value, confidence, probabilities, levels):
    """Checks that a score is its expectation, and that its confidence follows from the width of the distribution."""
    distribution(probabilities, range(levels))
    expected = sum(level * probability for level, probability in probabilities.items())
    slack = HALF_STEP * (1 + sum(range(levels)))
    holds(abs(value - expected) <= slack, f"score is {value}, its expectation {expected}")
    if levels == 1:
        equal(confidence, 1.0, "the confidence of a single level")
        return
    # The first of tied levels counts; levels with equal rounded values may not have been tied.
    most = max(probabilities.values())
    modes = [level for level, probability in probabilities.items() if probability >= most - 2 * HALF_STEP]
    unit = sum(abs(level - (levels - 1) / 2) for level in range(levels)) / levels
    widths = [sum(p * abs(level - mode) for level, p in probabilities.items()) / unit for mode in modes]
    nearest = min(abs(confidence - max(0.0, 1 - width)) for width in widths)
    slack = HALF_STEP * (1 + sum(range(levels)) / unit)
    holds(nearest <= slack, f"confidence is {confidence}, by the formula {[1 - width for width in widths]}")
