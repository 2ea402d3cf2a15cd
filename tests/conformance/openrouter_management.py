"""The package `openrouter`, unmodified, as a management client: every method of it that has a route here, each response
decoded by its typed class, and lists read to the end."""

import json
import os
import urllib.request
from datetime import UTC, datetime, timedelta

from openrouter import OpenRouter, components, errors

from harness import Harness, equal, holds, raises

tollgate = Harness("openrouter, management")


def client(key=None):
    return OpenRouter(
        api_key=key or tollgate.management_key, server_url=f"{tollgate.base}/api/v1", retry_config=None
    )


def pages(call, limit=2):
    """Reads a list to its end by the package's own iterator."""
    found, page = [], call(limit=limit)
    while page is not None:
        found += page.result.data
        page = page.next()
    return found


def same(one, other):
    """Fails unless both records have the same members; the package has a class of each for every method."""
    equal(one.model_dump(), other.model_dump(), "the record")


def holds_each_once(found, ids, what):
    listed = [each.id for each in found]
    equal(len(set(listed)), len(listed), f"the number of different {what}")
    holds(set(ids) <= set(listed), f"{what} are missing in the list")


@tollgate.check
def keys():
    """api_keys: create, get, list, update and delete"""
    expiry = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    with client() as own:
        made = own.api_keys.create(
            name="of the package", limit=12.5, limit_reset="monthly", expires_at=expiry, external={"user": "user-7"}
        )
        holds(made.key.startswith("sk-"), "the secret")
        hash_ = made.data.hash
        equal((made.data.name, made.data.limit, made.data.limit_remaining), ("of the package", 12.5, 12.5), "the limit")
        equal((made.data.expires_at, made.data.external_user), (expiry, "user-7"), "expiry and user")
        same(own.api_keys.get(hash=hash_).data, made.data)
        # The package has no iterator for keys.
        listed = []
        while page := own.api_keys.list(offset=len(listed)).data:
            listed += page
        (of_list,) = [key for key in listed if key.hash == hash_]
        same(of_list, made.data)
        changed = own.api_keys.update(hash=hash_, name="renamed", disabled=True, limit=None).data
        equal((changed.name, changed.disabled, changed.limit), ("renamed", True, None), "the changed record")
        equal(own.api_keys.delete(hash=hash_).DELETED, True, "the deletion")
        for call in (own.api_keys.get, own.api_keys.delete):
            with raises(errors.NotFoundResponseError, 404):
                call(hash=hash_)


@tollgate.check
def workspaces():
    """workspaces: create, get, list to the end, update, budgets and delete"""
    with client() as own:
        made = [own.workspaces.create(name=f"team {n}", slug=f"package-team-{n}").data for n in range(5)]
        holds_each_once(pages(own.workspaces.list), [each.id for each in made], "workspaces")
        first = made[0]
        holds(isinstance(first, components.Workspace), f"it is a {type(first).__name__}")
        for name in (first.id, first.slug):
            same(own.workspaces.get(id=name).data, first)
        changed = own.workspaces.update(id=first.slug, description="What the team does", io_logging_sampling_rate=1)
        equal(changed.data.description, "What the team does", "the description")
        with raises(errors.OpenRouterDefaultError, 409):
            own.workspaces.create(name="again", slug=first.slug)
        monthly = own.workspaces.set_budget(workspace_ref=first.id, interval="monthly", limit_usd=0.1).data
        equal((monthly.limit_usd, monthly.reset_interval), (0.1, "monthly"), "the budget")
        lifetime = own.workspaces.set_budget(workspace_ref=first.id, interval="lifetime", limit_usd=2).data
        equal((lifetime.limit_usd, lifetime.reset_interval), (2, None), "the budget of the lifetime")
        read = own.workspaces.get_budget(workspace_ref=first.slug, interval="monthly").data
        equal((read.id, read.limit_usd), (monthly.id, monthly.limit_usd), "the budget")
        equal(len(own.workspaces.list_budgets(workspace_ref=first.id).data), 2, "the number of budgets")
        equal(own.workspaces.delete_budget(workspace_ref=first.id, interval="monthly").DELETED, True, "the deletion")
        with raises(errors.NotFoundResponseError, 404):
            own.workspaces.get_budget(workspace_ref=first.id, interval="monthly")
        for each in made:
            equal(own.workspaces.delete(id=each.id).DELETED, True, "the deletion")
        with raises(errors.NotFoundResponseError, 404):
            own.workspaces.get(id=first.id)


@tollgate.check
def guardrails():
    """guardrails: create, get, list to the end, update, assignments and delete"""
    with client() as own:
        key = own.api_keys.create(name="held by guardrails").data
        made = [own.guardrails.create(name=f"of the package {n}", limit_usd=5, reset_interval="daily") for n in range(3)]
        made = [each.data for each in made]
        holds_each_once(pages(own.guardrails.list), [each.id for each in made], "guardrails")
        first = made[0]
        same(own.guardrails.get(id=first.id).data, first)
        changed = own.guardrails.update(id=first.id, allowed_models=["sandbox/decider"], description="Sandbox").data
        equal((changed.allowed_models, changed.description), (["sandbox/decider"], "Sandbox"), "the changed record")
        equal(own.guardrails.bulk_assign_keys(id=first.id, key_hashes=[key.hash]).assigned_count, 1, "the assigned keys")
        assigned = pages(lambda **page: own.guardrails.list_guardrail_key_assignments(id=first.id, **page))
        equal([each.key_hash for each in assigned], [key.hash], "the assignments of the guardrail")
        every = pages(own.guardrails.list_key_assignments)
        holds(key.hash in [each.key_hash for each in every], "the assignment is missing among all")
        removed = own.guardrails.bulk_unassign_keys(id=first.id, key_hashes=[key.hash])
        equal(removed.unassigned_count, 1, "the removed keys")
        own.api_keys.delete(hash=key.hash)
        for each in made:
            equal(own.guardrails.delete(id=each.id).DELETED, True, "the deletion")
        with raises(errors.NotFoundResponseError, 404):
            own.guardrails.get(id=first.id)


@tollgate.check
def destinations():
    """observability: create, get, list to the end, update and delete of a webhook"""
    with client() as own:
        config = {"url": f"{tollgate.fake_provider}/hook"}
        made = [own.observability.create(name=f"hook {n}", type_="webhook", config=config).data for n in range(3)]
        holds_each_once(pages(own.observability.list), [each.id for each in made], "destinations")
        first = made[0]
        equal(type(first).__name__, type(own.observability.get(id=first.id).data).__name__, "the class of the record")
        holds("Unknown" not in type(first).__name__, f"it is a {type(first).__name__}")
        changed = own.observability.update(id=first.id, enabled=False).data
        equal((changed.enabled, changed.name), (False, "hook 0"), "the changed record")
        for each in made:
            equal(own.observability.delete(id=each.id).DELETED, True, "the deletion")


@tollgate.check
def documents():
    """files and containers: list, retrieve, download and delete"""
    container, file = os.environ["CONFORMANCE_CONTAINER"], os.environ["CONFORMANCE_FILE"]
    with client(tollgate.key) as own:
        made = [own.containers.promote_container_file(container_id=container, file_id=file).id for _ in range(3)]
        listed, after = [], None
        while (page := own.containers.list_container_files(container_id=container, limit=1, after=after)).data:
            listed += [each.id for each in page.data]
            after = page.last_id
        equal(listed, [file], "the files of the container")
        equal(own.containers.get_container_file(container_id=container, file_id=file).id, file, "the file")
        content = own.containers.download_container_file_content(container_id=container, file_id=file)
        equal(content.read(), b"The blender smokes.\n", "the content of the file")
        holds_each_once(pages(own.files.list, limit=1), made, "documents")
        for document in made:
            equal(own.files.retrieve(file_id=document).filename, "out/report.txt", "the document")
            equal(own.files.download(file_id=document).read(), b"The blender smokes.\n", "the content of the document")
            own.files.delete(file_id=document)
            with raises(errors.NotFoundResponseError, 404):
                own.files.retrieve(file_id=document)


@tollgate.check
def presets():
    """presets: list to the end, get, versions; a decision of an application that knows the slug only; feedback on it"""
    question = {"type": "noul", "instructions": "Does the writer want money back?"}
    plain = {"model": "sandbox/decider", "questions": {"refund": question}}
    stage = {"model": "sandbox/decider", "accept": {"*": 1}}
    staged = {"stages": [stage, stage], "otherwise": "abstain", "questions": {"refund": question}}
    configs = [("package-triage", plain)] * 3 + [("package-other", plain), ("package-stages", staged)]
    for slug, config in configs:
        tollgate.add_preset(slug, config)
    with client() as own, client(tollgate.key) as asking:
        read = own.presets.get(slug="package-triage").data
        holds_each_once(pages(own.presets.list), [read.id], "presets")
        versions = pages(lambda **page: own.presets.list_versions(slug="package-triage", **page))
        equal([each.version for each in versions], [1, 2, 3], "the versions")
        newest = own.presets.get_version(slug="package-triage", version="3").data
        equal((read.designated_version_id, newest.config["models"]), (newest.id, ["sandbox/decider"]), "the version")
        decided = asking.system_one.create(model="@preset/package-triage", state="Money back!", questions={})
        holds("refund" in decided.model_dump_json(), "the question of the preset is not answered")
        equal(asking.generations.get_generation(id=decided.id).data.preset_id, read.id, "the preset of the record")
        staged = asking.system_one.create(model="@preset/package-stages", state="Money back!", questions={})
        holds("refund" in staged.answers, "the last answer of an abstained question is not decoded")
        for either in (own, asking):
            feedback = either.generations.submit_feedback(
                generation_id=decided.id, category="incorrect_response", comment="wrong"
            )
            equal(feedback.data.SUCCESS, True, "the feedback")
        with raises(errors.NotFoundResponseError, 404):
            asking.generations.submit_feedback(generation_id="gen-dec-none", category="other")
        with raises(errors.NotFoundResponseError, 404):
            own.presets.get(slug="package-nothing")


@tollgate.check
def figures():
    """credits.get_credits, analytics.get_user_activity and generations.get_generation"""
    with client(tollgate.key) as asking, client() as own:
        decided = asking.system_one.create(
            model="sandbox/decider",
            state="The blender smokes.",
            questions={"refund": {"type": "noul", "instructions": "Does the writer want money back?"}},
        )
        record = asking.generations.get_generation(id=decided.id).data
        equal((record.id, record.total_cost), (decided.id, decided.usage.cost), "the record")
        credit = own.credits.get_credits().data
        holds(credit.total_usage >= 0 and credit.total_credits >= 0, "the credit")
        activity = own.analytics.get_user_activity().data
        holds(any(row.model == "sandbox/decider" for row in activity), "the model is missing in the activity")


@tollgate.check
def catalogue():
    """models.list_for_user and endpoints.list_zdr_endpoints"""
    with client(tollgate.key) as own:
        call = {"security": {"bearer": tollgate.key}, "output_modalities": "decisions"}
        permitted = pages(lambda **page: own.models.list_for_user(**call, **page))
        holds_each_once(permitted, ["sandbox/decider"], "models")
        holds_each_once(pages(lambda **page: own.models.list(output_modalities="all", **page)), [], "models")
        holds(isinstance(own.endpoints.list_zdr_endpoints().data, list), "the endpoints")


if __name__ == "__main__":
    tollgate.run()
