"""The package `openrouter`, unmodified, against the gateway: answers, models, endpoints, guardrails and files."""

import os

from openrouter import OpenRouter, components, errors

from harness import Harness, equal, holds, raises

tollgate = Harness("openrouter")

SANDBOX = "sandbox/decider"
STATE = {"subject": "Broken blender", "body": "It smokes. I want my money back."}
QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Does the writer want money back?"},
    "queue": {"type": "choice", "instructions": "Who?", "criteria": {"billing": "money", "other": None}},
}


def client(key=None):
    return OpenRouter(api_key=key or tollgate.key, server_url=f"{tollgate.base}/api/v1", retry_config=None)


@tollgate.check
def decisions():
    """alpha.decisions and system_one give the same answers"""
    asked = {"model": SANDBOX, "state": STATE, "questions": QUESTIONS}
    results = [
        client().alpha.decisions.create(**asked, server_url=tollgate.base),
        client().system_one.create(**asked),
    ]
    for result in results:
        equal(list(result.answers), list(QUESTIONS), "the names of the answers, in order")
        equal(result.answers, results[0].answers, "the answers")
        equal((result.model, result.provider), (SANDBOX, "Tollgate Sandbox"), "the model and the provider")
        equal(result.usage.cost, 0, "the cost of a sandbox model")


@tollgate.check
def endpoints():
    """endpoints.list decodes the endpoints of a model, with and without a measurement"""
    for author, slug, provider in [
        ("sandbox", "decider", "Tollgate Sandbox"),
        ("sandbox", "decider:free", "Tollgate Sandbox"),
        ("typesafe", "jev-1.13", "Fake"),
        ("~typesafe", "jev-latest", "Fake"),
        ("conformance", "refuser", "Refuser"),
    ]:
        data = client().endpoints.list(author=author, slug=slug).data
        equal([endpoint.provider_name for endpoint in data.endpoints], [provider], "the providers")
        (endpoint,) = data.endpoints
        equal(endpoint.model_id, data.id, "the model of the endpoint")
        equal((endpoint.native_tools, endpoint.service_tier), ({}, None), "the tools and the tier")
        holds("decisions" in data.architecture.output_modalities, "no decisions among the output modalities")
    equal(client().endpoints.list(author="anthropic", slug="claude-opus-5").data.endpoints, [], "the endpoints")
    with raises(errors.NotFoundResponseError, 404):
        client().endpoints.list(author="nobody", slug="nothing")


@tollgate.check
def models():
    """models.get, models.list and models.count decode"""
    equal(client().models.get(author="~typesafe", slug="jev-latest").data.id, "typesafe/jev-1.14", "the model")
    listed = client().models.list(output_modalities="decisions").result.data
    holds(any(model.id == SANDBOX for model in listed), "the sandbox is not listed")
    equal(client().models.count(output_modalities="decisions").data.count, len(listed), "the count")


@tollgate.check
def own_key():
    """api_keys.get_current_key_metadata decodes an inference key and a management key"""
    own = client().api_keys.get_current_key_metadata().data
    equal((own.is_management_key, own.workspace_id is None), (False, False), "the kind of the inference key")
    equal(own.limit_remaining, own.limit, "an unlimited key")
    holds(all(budget.limit_usd >= 0 for budget in own.budgets), "the budgets")
    managing = client(tollgate.management_key).api_keys.get_current_key_metadata().data
    equal((managing.is_management_key, managing.budgets), (True, []), "the management key")


@tollgate.check
def guardrails():
    """guardrails.bulk_assign_keys counts the known keys and needs a management key"""
    assignment = {"id": os.environ["CONFORMANCE_GUARDRAIL"], "key_hashes": [os.environ["CONFORMANCE_KEY_HASH"]]}
    equal(client(tollgate.management_key).guardrails.bulk_assign_keys(**assignment).assigned_count, 1, "the count")
    with raises(errors.ForbiddenResponseError, 403):
        client().guardrails.bulk_assign_keys(**assignment)


@tollgate.check
def files():
    """containers.promote_container_file returns the package's own shape without any setting of the gateway"""
    call = {
        "container_id": os.environ["CONFORMANCE_CONTAINER"],
        "file_id": os.environ["CONFORMANCE_FILE"],
    }
    file = client().containers.promote_container_file(**call)
    holds(isinstance(file, components.OpenRouterFile), f"it is a {type(file).__name__}")
    equal((file.filename, file.downloadable), ("out/report.txt", True), "the file")


@tollgate.check
def providers():
    """providers.list decodes"""
    names = {provider.slug: provider.name for provider in client().providers.list().data}
    equal((names["fake"], names["refuser"]), ("Fake", "Refuser"), "the names")


if __name__ == "__main__":
    tollgate.run()
