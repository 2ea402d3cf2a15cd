"""The package `typesafe-sdk`, unmodified, against the gateway: every call that it has."""

import hashlib
import uuid

import httpx2
from typesafe_sdk import (
    AsyncTypeSafeClient,
    Box,
    Choice,
    Image,
    Noul,
    RetryPolicy,
    Score,
    TypeSafeAPIError,
    TypeSafeAuthenticationError,
    TypeSafeBadRequestError,
    TypeSafeClient,
    TypeSafeInternalServerError,
    TypeSafeNotFoundError,
    TypeSafePermissionDeniedError,
    TypeSafeRateLimitError,
    TypeSafeUnprocessableEntityError,
)

import harness
from harness import Harness, equal, holds, raises, takes_at_least

tollgate = Harness("typesafe-sdk")

NEVER = RetryPolicy(max_retries=0)
SANDBOX = "sandbox/decider"
LETTER = {"subject": "Broken blender", "body": "It smokes. I want my money back.", "order": {"id": 7, "paid": True}}
LEVELS = ["calm", "annoyed", {"feeling": "furious", "signs": ["shouting"]}]
QUESTIONS = {
    "refund": Noul(instructions="Does the writer want money back?", criteria={"true": "asks for money", "false": None}),
    "queue": Choice(instructions="Who handles it?", criteria={"billing": "money", "hardware": ["smoke"], "other": None}),
    "heat": Score(instructions={"task": "How upset?"}, criteria=LEVELS),
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
JPEG = b"\xff\xd8\xff" + bytes(reversed(range(256))) * 20


def client(key=None, base=None, **options):
    options = {"retry": NEVER, "model": SANDBOX, **options}
    return TypeSafeClient(api_key=key or tollgate.key, base_url=base or tollgate.base, **options)


class Counting(httpx2.HTTPTransport):
    """Counts the attempts of the package."""

    def __init__(self):
        super().__init__()
        self.attempts = []

    def handle_request(self, request):
        self.attempts.append(request.headers.get("x-typesafe-retry-count"))
        return super().handle_request(request)


def verify(result):
    """Checks the answers to QUESTIONS."""
    equal(list(result.answers), list(QUESTIONS), "the names of the answers, in order")
    holds(0 <= result.nouls["refund"].noul <= 1, "the noul lies outside 0 to 1")
    queue, heat = result.choices["queue"], result.scores["heat"]
    harness.choice(queue.choice, queue.confidence, queue.probabilities, QUESTIONS["queue"].criteria)
    harness.score(heat.score, heat.confidence, heat.probabilities, len(LEVELS))
    equal(heat.legend, dict(enumerate(LEVELS)), "the legend")
    holds(result.usage.input_tokens > 0 and result.usage.output_tokens >= 0, f"the usage is {result.usage}")


@tollgate.check
def all_types():
    """noul, choice and score with structured state, instructions and criteria"""
    result = client().system_one(state=LETTER, questions=QUESTIONS)
    verify(result)
    equal(result.model, SANDBOX, "the model")
    holds(result.request_id, "there is no request id")
    equal(result.request_id, result.raw_http_response.headers["x-request-id"], "the request id")


@tollgate.check
def forms_of_state():
    """state as text, as an array and as an object"""
    for state in ("I want my money back.", ["I want", {"my": "money back"}, None, 7], {"deep": [{"er": None}]}):
        verify(client().system_one(state=state, questions=QUESTIONS))


@tollgate.check
def sparse_questions():
    """no instructions, a single option, a single level, names of any kind"""
    questions = {
        "only criteria": Noul(criteria={"true": "asks for money"}),
        "single": Choice(criteria={"the one": None}),
        "flat": Score(criteria=["all there is"]),
        "Größe/1.5 \"x\"": Noul(instructions="Is it?"),
    }
    result = client().system_one(state="money", questions=questions)
    equal(list(result.answers), list(questions), "the names of the answers, in order")
    single, flat = result.choices["single"], result.scores["flat"]
    equal((single.choice, single.confidence, single.probabilities), ("the one", 1.0, {"the one": 1.0}), "the single option")
    equal((flat.score, flat.confidence, flat.probabilities), (0.0, 1.0, {0: 1.0}), "the single level")


@tollgate.check
def limits():
    """255 options and 10 levels are answered; 400 questions are"""
    options = {f"option {place}": None for place in range(255)}
    result = client().system_one("option 7", {"c": Choice(criteria=options), "s": Score(criteria=["x"] * 10)})
    answer = result.choices["c"]
    harness.choice(answer.choice, answer.confidence, answer.probabilities, options)
    harness.score(result.scores["s"].score, result.scores["s"].confidence, result.scores["s"].probabilities, 10)
    many = {f"question {place}": {"type": "noul", "instructions": "money?"} for place in range(400)}
    equal(list(client().system_one("money", many).nouls), list(many), "the names of the answers, in order")


@tollgate.check
def terse_provider():
    """what the package requires and a provider leaves out (legend, confidence) is there"""
    verify(client(model="conformance/terse").system_one(state=LETTER, questions=QUESTIONS))


@tollgate.check
def dictionaries():
    """questions as plain dictionaries answer as the package's classes do"""
    plain = {
        "refund": {"type": "noul", **QUESTIONS["refund"].model_dump(exclude={"type"})},
        "queue": {"type": "choice", **QUESTIONS["queue"].model_dump(exclude={"type"})},
        "heat": {"type": "score", **QUESTIONS["heat"].model_dump(exclude={"type"})},
    }
    one, other = (client().system_one(state=LETTER, questions=each) for each in (QUESTIONS, plain))
    equal(one.answers, other.answers, "the answers")


@tollgate.check
def names_of_models():
    """bare names, aliases and variants resolve, the default included; the answer names the model that served"""
    for asked, served in [
        ("jev-1.13", "typesafe/jev-1.13"),
        ("JEV-1.13", "typesafe/jev-1.13"),
        ("typesafe/jev-1.13-20260917", "typesafe/jev-1.13"),
        ("jev-latest", "typesafe/jev-1.14"),
        ("~typesafe/jev-latest", "typesafe/jev-1.14"),
        ("sandbox/decider:free", "sandbox/decider:free"),
    ]:
        result = client(model=asked).system_one(state=LETTER, questions=QUESTIONS)
        verify(result)
        equal(result.model, served, f"the model that serves {asked}")
    with TypeSafeClient(api_key=tollgate.key, base_url=tollgate.base) as unconfigured:
        equal(unconfigured.system_one("x", QUESTIONS).model, "typesafe/jev-1.14", "the package's default model")


@tollgate.check
def models():
    """models.list names the models that answer, and they can be asked by those names"""
    listed = client().models.list()
    names = [model.name for model in listed.models]
    equal(len(names), len(set(names)), "the number of names")
    for wanted in ("sandbox/decider", "typesafe/jev-1.14", "conformance/pictures"):
        holds(wanted in names, f"{wanted} is not among {names}")
    for model in listed.models:
        holds(model.name and isinstance(model.description, str), f"{model} is not described")
        year, month, day = model.release_date.split("-")
        holds(len(year) == 4 and 1 <= int(month) <= 12 and 1 <= int(day) <= 31, f"{model} has no release date")
    holds(listed.request_id, "there is no request id")


@tollgate.check
def base_path():
    """the same calls below the gateway's base path"""
    below = client(base=f"{tollgate.base}/api")
    verify(below.system_one(state=LETTER, questions=QUESTIONS))
    equal(below.models.list().models, client().models.list().models, "the models")


@tollgate.check
def extra_members():
    """session, user, trace and routing preferences travel in the body and never reach the provider"""
    tollgate.forget()
    extra = {
        "session_id": "session-7",
        "user": "user-7",
        "trace": {"trace_id": "trace-7"},
        "provider": {"only": ["fake"], "allow_fallbacks": False},
    }
    result = client(model="jev-1.13").system_one(state=LETTER, questions=QUESTIONS, extra_body=extra)
    equal(result.raw_http_response.json()["provider"], "Fake", "the provider")
    [sent] = tollgate.seen()
    equal(set(sent["request"]), {"model", "state", "questions"}, "the members that the provider was sent")
    equal(sent["request"]["state"], LETTER, "the state that the provider was sent")
    equal(list(sent["request"]["questions"]), list(QUESTIONS), "the questions that the provider was sent")
    leaked = [name for name in sent["headers"] if name.startswith("x-typesafe") or name == "authorization"]
    equal(leaked, [], "the caller's headers at the provider")
    with raises(TypeSafeNotFoundError):
        client(model="jev-1.13").system_one("x", QUESTIONS, extra_body={"provider": {"only": ["nobody"]}})


@tollgate.check
def compression():
    """a body of more than a KiB arrives compressed with zstd and is answered as the plain one is"""
    state = {"letters": [f"It smokes for the {number}. time." for number in range(2000)]}
    tollgate.forget()
    results = [
        client(model="jev-1.13", compression=way).system_one(state=state, questions=QUESTIONS) for way in ("zstd", False)
    ]
    equal(results[0].raw_http_response.request.headers["content-encoding"], "zstd", "the request's encoding")
    equal(results[0].answers, results[1].answers, "the answers")
    for sent in tollgate.seen():
        equal(sent["request"]["state"], state, "the state that the provider was sent")
        holds("content-encoding" not in sent["headers"], "what the provider was sent says that it is compressed")


@tollgate.check
def images():
    """images in a multipart body: placed in the state, by alias, inside a string, compressed; a box is found"""
    asker = client(model="conformance/pictures")
    tollgate.forget()
    photo, scan = Image(PNG), Image(JPEG)
    state = {"photo": photo, "text": f"compare with {scan}"}
    with asker.attach_assets(scan):
        result = asker.system_one(state, {"dog": Box(instructions="the dog"), "same": Noul(instructions="Is it?")})
    equal(result.boxes["dog"].box.model_dump(), {"top": 0.2, "bottom": 0.66, "left": 0.19, "right": 0.68}, "the box")
    equal(result.nouls["same"].noul, 0.75, "the noul beside it")
    equal(result.raw_http_response.request.headers["content-encoding"], "zstd", "the request's encoding")
    asker.system_one("see logo", {"logo": Noul(instructions="Is it a logo?")}, assets={"logo": photo})
    both, alias = tollgate.seen()
    equal(both["request"]["state"], {"photo": str(photo), "text": f"compare with {scan}"}, "the state")
    equal(contents(both), {str(photo): ("image/png", PNG), str(scan): ("image/jpeg", JPEG)}, "the images")
    equal(contents(alias), {"logo": ("image/png", PNG)}, "the image by its alias")


def contents(sent):
    """Returns the images that the provider received, checked against those sent."""
    found = {}
    parts = {part["name"]: part for part in sent["parts"]}
    for reference, entry in sent["request"]["assets"].items():
        equal(entry["type"], "image", "the type of an asset")
        part = parts.pop(entry["part"])
        original = {hashlib.sha256(data).hexdigest(): data for data in (PNG, JPEG)}[part["sha256"]]
        found[reference] = (part["content_type"], original)
    equal(parts, {}, "the parts that no asset claims")
    return found


@tollgate.check
def images_refused():
    """a model that takes no images refuses them, and does not answer without looking"""
    tollgate.forget()
    for model in (SANDBOX, "jev-1.13"):
        with raises((TypeSafeBadRequestError, TypeSafeUnprocessableEntityError)) as caught:
            client(model=model).system_one({"photo": Image(PNG)}, {"dog": Noul(instructions="Is it a dog?")})
        holds("image" in str(caught[0]), f"the message does not speak of images: {caught[0]}")
    equal(tollgate.seen(), [], "what the provider was sent")


@tollgate.check
async def asynchronous():
    """the asynchronous client: answers, images, models and errors"""
    async with AsyncTypeSafeClient(api_key=tollgate.key, base_url=tollgate.base, model=SANDBOX, retry=NEVER) as asker:
        verify(await asker.system_one(state=LETTER, questions=QUESTIONS))
        seen = await asker.system_one(Image(PNG), {"dog": Box(instructions="dog")}, model="conformance/pictures")
        equal(list(seen.boxes), ["dog"], "the boxes")
        holds((await asker.models.list()).models, "no model is listed")
        with raises(TypeSafeRateLimitError, 429):
            await asker.system_one("x", QUESTIONS, model="sandbox/error-429")


@tollgate.check
def refusals():
    """a refusal of one question is left out by the package, and the rest is answered"""
    asker = client(model="conformance/refuser")
    questions = {**QUESTIONS, "odd": Noul(instructions="please refuse this")}
    result = asker.system_one(state=LETTER, questions=questions)
    equal(result.raw_http_response.json()["answers"]["odd"], {"type": "refusal"}, "the refusal on the wire")
    verify(result)


@tollgate.check
def wrong_keys():
    """a key that does not stand is 401, one of the other kind 403"""
    for call in (lambda c: c.system_one("x", QUESTIONS), lambda c: c.models.list()):
        with raises(TypeSafeAuthenticationError, 401) as caught:
            call(client(key="sk-tg-v1-" + "0" * 64))
        holds(caught[0].request_id, "there is no request id")
    with raises(TypeSafePermissionDeniedError, 403):
        client(key=tollgate.management_key).system_one("x", QUESTIONS)


@tollgate.check
def statuses():
    """each status is the error that the package has for it, with a message and a request id"""
    for model, error_type, status, message in [
        ("sandbox/error-402", TypeSafeAPIError, 402, "Insufficient credits"),
        ("sandbox/error-403", TypeSafePermissionDeniedError, 403, None),
        ("sandbox/error-429", TypeSafeRateLimitError, 429, "Rate limit exceeded"),
        ("sandbox/error-502", TypeSafeInternalServerError, 502, "Provider returned error"),
        ("sandbox/error-503", TypeSafeInternalServerError, 503, "Service temporarily unavailable"),
        ("sandbox/error-524", TypeSafeInternalServerError, 524, "Request timed out"),
        ("sandbox/error-529", TypeSafeInternalServerError, 529, "Provider returned error"),
        ("nobody/nothing", TypeSafeNotFoundError, 404, None),
        ("anthropic/claude-opus-5", TypeSafeBadRequestError, 400, None),
    ]:
        with raises(error_type, status) as caught:
            client().system_one("x", QUESTIONS, model=model)
        error = caught[0]
        equal(error.request_id, error.headers["x-request-id"], "the request id")
        holds(f"{status} {message or ''}" in str(error), f"the message is {error}")
        holds("{" not in str(error), f"the package found no message: {error}")


@tollgate.check
def validation():
    """a fault of the request is 422 with a list that the package reads as path and message"""
    for questions, path in [
        ({"queue": Choice(criteria={str(place): None for place in range(256)})}, "questions.queue"),
        ({"heat": Score(criteria=["x"] * 11)}, "questions.heat"),
        ({"odd": {"type": "essay", "instructions": "Write."}}, "questions.odd"),
    ]:
        with raises(TypeSafeUnprocessableEntityError, 422) as caught:
            client().system_one(state="secret words", questions=questions)
        entries = caught[0].body["detail"]
        holds(entries and all({"loc", "msg", "type"} <= set(entry) for entry in entries), f"the detail is {entries}")
        equal(entries[0]["loc"][0], "body", "where the fault lies")
        holds(f"422 {path}" in str(caught[0]), f"the message does not name {path}: {caught[0]}")
        holds("secret words" not in str(caught[0].body), "the caller's own words are repeated")


@tollgate.check
def retries():
    """429 and 529 are retried after the wait that the gateway asks for, and no more often than the package wants"""
    for model, error_type in [("sandbox/error-429", TypeSafeRateLimitError), ("sandbox/error-529", TypeSafeInternalServerError)]:
        transport = Counting()
        with takes_at_least(2.0), raises(error_type) as caught:
            client(retry=RetryPolicy(), transport=transport).system_one("x", QUESTIONS, model=model)
        equal(transport.attempts, [None, "1", "2"], "the attempts")
        equal(caught[0].headers["retry-after"], "1", "Retry-After")
    equal(caught_retry_after(), 1000.0, "what the package reads of it")


def caught_retry_after():
    with raises(TypeSafeRateLimitError) as caught:
        client().system_one("x", QUESTIONS, model="sandbox/error-429")
    return caught[0].retry_after_ms


@tollgate.check
def recovery():
    """a provider that is overloaded for a moment: the package waits and then has its answer"""
    transport = Counting()
    asker = client(retry=RetryPolicy(), transport=transport, model="conformance/flaky")
    with takes_at_least(1.0):
        verify(asker.system_one(state={"token": uuid.uuid4().hex, **LETTER}, questions=QUESTIONS))
    equal(transport.attempts, [None, "1"], "the attempts")


if __name__ == "__main__":
    tollgate.run()
