"""The package `openai`, unmodified, against the gateway: its decisions and its models, with strict validation on."""

import uuid

import httpx2
import openai

import harness
from harness import Harness, equal, holds, raises, takes_at_least

tollgate = Harness("openai")

SANDBOX = "sandbox/decider"
LETTER = "Subject: broken blender. It smokes. I want my money back."
LEVELS = [{"label": "calm"}, {"label": "annoyed", "description": "complains"}, {"label": "furious"}]
QUESTIONS = [
    {"type": "predicate", "name": "refund", "instructions": "The writer wants money back."},
    {
        "type": "choice",
        "name": "queue",
        "instructions": "Who handles it?",
        "choices": [{"value": "billing", "description": "money"}, {"value": "hardware"}, {"value": "other"}],
    },
    {"type": "score", "name": "heat", "instructions": "How upset?", "levels": LEVELS},
]


def client(key=None, prefix="/v1", **options):
    options = {"max_retries": 0, "_strict_response_validation": True, **options}
    return openai.OpenAI(api_key=key or tollgate.key, base_url=tollgate.base + prefix, **options)


def decide(input=LETTER, questions=QUESTIONS, model=SANDBOX, asker=None, **options):
    return (asker or client()).decisions.create(model=model, input=input, questions=questions, **options)


class Counting(httpx2.HTTPTransport):
    """Counts the attempts of the package."""

    def __init__(self):
        super().__init__()
        self.attempts = []

    def handle_request(self, request):
        self.attempts.append(request.headers["x-stainless-retry-count"])
        return super().handle_request(request)


def verify(decision):
    """Checks the answers to QUESTIONS."""
    equal([answer.name for answer in decision.answers], ["refund", "queue", "heat"], "the names, in order")
    refund, queue, heat = decision.answers
    equal((refund.type, queue.type, heat.type), ("predicate", "choice", "score"), "the types")
    holds(0 <= refund.probability <= 1, "the probability lies outside 0 to 1")
    verify_choice(queue, ["billing", "hardware", "other"])
    equal([row.label for row in heat.probabilities], [level["label"] for level in LEVELS], "the labels")
    table = {row.value: row.probability for row in heat.probabilities}
    harness.score(heat.score, heat.confidence, table, len(LEVELS))
    usage = decision.usage
    equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, "the total of the usage")
    holds(usage.input_tokens > 0, "no input token is counted")


def verify_choice(answer, values):
    equal([row.value for row in answer.probabilities], values, "the values, in order")
    equal([type(row.value) for row in answer.probabilities], [type(value) for value in values], "their types")
    # True and "True" are different values, also as keys of a Python dictionary.
    table = {(type(row.value), row.value): row.probability for row in answer.probabilities}
    names = [(type(value), value) for value in values]
    harness.choice((type(answer.choice), answer.choice), answer.confidence, table, names)


@tollgate.check
def all_types():
    """predicate, choice and score about a text"""
    decision = decide()
    verify(decision)
    equal(decision.model, SANDBOX, "the model")
    holds(decision._request_id, "there is no request id")


@tollgate.check
def presets():
    """the questions of a preset, as the model; its stages"""
    question = {"type": "noul", "instructions": "Does the writer want money back?"}
    stage = {"model": SANDBOX, "accept": {"*": 1}}
    staged = {"stages": [stage, stage], "otherwise": "abstain", "questions": {"refund": question}}
    for slug, config in (("openai", {"model": SANDBOX, "questions": {"refund": question}}), ("openai-stages", staged)):
        tollgate.add_preset(slug, config)
        decision = decide(questions=[], model=f"@preset/{slug}")
        equal([answer.name for answer in decision.answers], ["refund"], f"the questions of {slug}")
        equal(decision.model, SANDBOX, "the model")


@tollgate.check
def headers():
    """the raw answer carries the ids and the provider in its headers"""
    raw = client().decisions.with_raw_response.create(model=SANDBOX, input=LETTER, questions=QUESTIONS)
    for name in ("x-request-id", "x-generation-id", "x-provider-name"):
        holds(raw.headers.get(name), f"there is no {name}")
    verify(raw.parse())


@tollgate.check
def items():
    """messages of every role with text and JSON parts, calls of tools and what they gave"""
    parts = [{"type": "input_text", "text": LETTER}, {"type": "input_json", "data": {"order": 7, "tags": [None, 1.5]}}]
    conversation = [
        {"role": "developer", "content": "Judge the letter."},
        {"role": "user", "content": parts},
        {"type": "function_call", "call_id": "c1", "name": "order", "arguments": '{"id":7}'},
        {"type": "function_call_output", "call_id": "c1", "output": "paid"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
        {"role": "user", "type": "message", "content": "My money!"},
    ]
    verify(decide(input=conversation))


@tollgate.check
def instructions():
    """instructions as a list of parts"""
    parts = [{"type": "input_text", "text": "The writer wants"}, {"type": "input_json", "data": {"what": "money"}}]
    verify(decide(questions=[{**QUESTIONS[0], "instructions": parts}, *QUESTIONS[1:]]))


@tollgate.check
def unnamed():
    """questions without names are answered in their order, with null for a name"""
    questions = [{name: value for name, value in question.items() if name != "name"} for question in QUESTIONS]
    decision = decide(questions=[*questions, {**QUESTIONS[0], "name": "named"}])
    equal([answer.name for answer in decision.answers], [None, None, None, "named"], "the names")
    equal([answer.type for answer in decision.answers], ["predicate", "choice", "score", "predicate"], "the types")


@tollgate.check
def booleans():
    """true and "true" are different choices, and come back as what they are"""
    values = [True, "true", False, "maybe"]
    choices = [{"value": value} for value in values]
    decision = decide(questions=[{"type": "choice", "name": "q", "instructions": "Money?", "choices": choices}])
    verify_choice(decision.answers[0], values)


@tollgate.check
def limits():
    """400 questions and 255 choices are answered"""
    many = [{"type": "predicate", "name": f"q{place}", "instructions": "Money?"} for place in range(400)]
    equal([answer.name for answer in decide(questions=many).answers], [each["name"] for each in many], "the names")
    values = [f"option {place}" for place in range(255)]
    choices = [{"value": value} for value in values]
    decision = decide(questions=[{"type": "choice", "name": "q", "instructions": "Which?", "choices": choices}])
    verify_choice(decision.answers[0], values)


@tollgate.check
def other_wires():
    """a model behind another wire answers, by its bare name too"""
    for model, served in [("jev-1.13", "typesafe/jev-1.13"), ("~typesafe/jev-latest", "typesafe/jev-1.14")]:
        tollgate.forget()
        decision = decide(model=model)
        verify(decision)
        equal(decision.model, served, f"the model that serves {model}")
        [sent] = tollgate.seen()
        equal(sent["path"], "/v1/systemone", "the path at the provider")
        equal([each["type"] for each in sent["request"]["questions"].values()], ["noul", "choice", "score"], "the types")


@tollgate.check
def refusals():
    """a refusal of one question is an answer to it, and the rest is answered"""
    odd = {"type": "predicate", "name": "odd", "instructions": "please refuse this"}
    decision = decide(questions=[*QUESTIONS, odd], model="conformance/refuser")
    *answered, refused = decision.answers
    equal((refused.type, refused.name), ("refusal", "odd"), "the refusal")
    decision.answers = answered
    verify(decision)


@tollgate.check
def images():
    """an image in the input reaches a model that takes some, and is refused by one that takes none, not ignored"""
    part = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    tollgate.forget()
    verify(decide(input=[{"role": "user", "content": [part]}], model="conformance/refuser"))
    [sent] = tollgate.seen()
    equal(sent["request"]["input"], [{"role": "user", "content": [part]}], "the input at the provider")
    tollgate.forget()
    for model in (SANDBOX, "jev-1.13"):
        with raises((openai.BadRequestError, openai.UnprocessableEntityError)) as caught:
            decide(input=[{"role": "user", "content": [part]}], model=model)
        holds("image" in caught[0].message, f"the message does not speak of images: {caught[0]}")
    equal(tollgate.seen(), [], "what the provider was sent")


@tollgate.check
def extra_members():
    """cache and safety members are taken; routing preferences travel in extra_body"""
    extra = {"provider": {"only": ["fake"]}, "session_id": "session-7", "user": "user-7"}
    tollgate.forget()
    decision = decide(
        model="jev-1.13",
        prompt_cache_key="t1",
        prompt_cache_options={"mode": "implicit", "ttl": "30m"},
        safety_identifier="u-9",
        extra_body=extra,
    )
    verify(decision)
    equal(set(tollgate.seen()[0]["request"]), {"model", "state", "questions"}, "the members at the provider")
    with raises(openai.NotFoundError, 404):
        decide(model="jev-1.13", extra_body={"provider": {"only": ["nobody"]}})


@tollgate.check
def base_path():
    """the same calls below the gateway's base path"""
    below = client(prefix="/api/v1")
    verify(decide(asker=below))
    holds(below.models.list(extra_query={"output_modalities": "decisions"}).data, "no model is listed")


@tollgate.check
def models():
    """models.list names the models that answer, in rows of the package's own shape"""
    page = client().models.list()
    equal(page.object, "list", "the object")
    rows = {model.id: model for model in page}
    for wanted in ("sandbox/decider", "typesafe/jev-1.14", "conformance/refuser"):
        holds(wanted in rows, f"{wanted} is not listed")
    holds("anthropic/claude-opus-5" not in rows, "a model without an endpoint is listed")
    everything = client().models.list(extra_query={"output_modalities": "all", "include_uncallable": "true"}).data
    holds("anthropic/claude-opus-5" in {model.id for model in everything}, "a model is not listed on request")
    row = rows["sandbox/decider"]
    equal((row.object, row.owned_by), ("model", "sandbox"), "the row's object and owner")
    holds(row.created > 0, "the row has no time")
    for name in ("sandbox/decider", "typesafe/jev-1.14", "jev-1.14"):
        equal(client().models.retrieve(name).id, name if "/" in name else f"typesafe/{name}", "the retrieved model")
        equal(client(prefix="/api/v1").models.retrieve(name).object, "model", "the object below the base path")
    with raises(openai.NotFoundError, 404) as caught:
        client().models.retrieve("anthropic/claude-opus-5")
    holds("nearest callable models" in str(caught[0]), f"no nearest model is named: {caught[0]}")


@tollgate.check
async def asynchronous():
    """the asynchronous client: answers, models and errors"""
    options = {"max_retries": 0, "_strict_response_validation": True}
    async with openai.AsyncOpenAI(api_key=tollgate.key, base_url=f"{tollgate.base}/v1", **options) as asker:
        verify(await asker.decisions.create(model=SANDBOX, input=LETTER, questions=QUESTIONS))
        holds([model.id async for model in asker.models.list()], "no model is listed")
        with raises(openai.RateLimitError, 429):
            await asker.decisions.create(model="sandbox/error-429", input=LETTER, questions=QUESTIONS)


@tollgate.check
def wrong_keys():
    """a key that does not stand is 401, one of the other kind 403"""
    wrong = client(key="sk-tg-v1-" + "0" * 64)
    with raises(openai.AuthenticationError, 401) as caught:
        decide(asker=wrong)
    verify_error(caught[0])
    # Clients of several kinds list models at one path; its errors have the service's own format.
    with raises(openai.AuthenticationError, 401) as caught:
        wrong.models.list()
    holds(caught[0].request_id and caught[0].body["message"], f"the package found no message: {caught[0].body}")
    with raises(openai.PermissionDeniedError, 403) as caught:
        decide(asker=client(key=tollgate.management_key))
    verify_error(caught[0])


def verify_error(error):
    """Checks an error in the package's own format."""
    holds(error.request_id, "there is no request id")
    equal(set(error.body) >= {"message", "type", "param", "code"}, True, f"the form of {error.body}")
    holds(isinstance(error.body["type"], str), f"the type of {error.body}")


@tollgate.check
def statuses():
    """each status is the error that the package has for it, in the package's own form"""
    for model, error_type, status, message in [
        ("sandbox/error-402", openai.APIStatusError, 402, "Insufficient credits"),
        ("sandbox/error-403", openai.PermissionDeniedError, 403, ""),
        ("sandbox/error-429", openai.RateLimitError, 429, "Rate limit exceeded"),
        ("sandbox/error-502", openai.InternalServerError, 502, "Provider returned error"),
        ("sandbox/error-503", openai.InternalServerError, 503, "Service temporarily unavailable"),
        ("sandbox/error-524", openai.InternalServerError, 524, "Request timed out"),
        ("sandbox/error-529", openai.InternalServerError, 529, "Provider returned error"),
        ("nobody/nothing", openai.NotFoundError, 404, ""),
        ("anthropic/claude-opus-5", openai.BadRequestError, 400, ""),
    ]:
        with raises(error_type, status) as caught:
            decide(model=model)
        verify_error(caught[0])
        holds(message in caught[0].body["message"], f"the message is {caught[0].body['message']}")


@tollgate.check
def validation():
    """a fault of the request is 400 and names its place"""
    for questions, place in [
        ([], "questions"),
        ([{"type": "predicate", "name": "a"}], "instructions"),
        ([QUESTIONS[0], {"type": "essay", "name": "b", "instructions": "Write."}], "questions"),
        ([QUESTIONS[0], QUESTIONS[0]], "name"),
    ]:
        with raises(openai.BadRequestError, 400) as caught:
            decide(questions=questions, input="secret words")
        verify_error(caught[0])
        told = f"{caught[0].param} {caught[0].body['message']}"
        holds(place in told, f"{place} is not named in: {told}")
        holds("secret words" not in str(caught[0].body), "the caller's own words are repeated")


@tollgate.check
def retries():
    """429 and 529 are retried after the wait that the gateway asks for"""
    for model, error_type in [("sandbox/error-429", openai.RateLimitError), ("sandbox/error-529", openai.InternalServerError)]:
        transport = Counting()
        asker = client(max_retries=2, http_client=openai.DefaultHttpxClient(transport=transport))
        with takes_at_least(2.0), raises(error_type) as caught:
            decide(model=model, asker=asker)
        equal(transport.attempts, ["0", "1", "2"], "the attempts")
        equal(caught[0].response.headers["retry-after"], "1", "Retry-After")


@tollgate.check
def recovery():
    """a provider that is overloaded for a moment: the package waits and then has its answer"""
    transport = Counting()
    asker = client(max_retries=2, http_client=openai.DefaultHttpxClient(transport=transport))
    state = [{"role": "user", "content": [{"type": "input_json", "data": {"token": uuid.uuid4().hex}}]}]
    with takes_at_least(1.0):
        verify(decide(input=state, model="conformance/flaky", asker=asker))
    equal(transport.attempts, ["0", "1"], "the attempts")


if __name__ == "__main__":
    tollgate.run()
