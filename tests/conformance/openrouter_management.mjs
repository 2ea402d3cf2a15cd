// The package `@openrouter/sdk`, unmodified, as a management client: every method of it that has a route here, and lists
// read to the end by the package's own iterator.

import assert from 'node:assert/strict';
import { OpenRouter } from '@openrouter/sdk';
import * as errors from '@openrouter/sdk/models/errors';
import { environment, raises, run } from './harness.mjs';

function client(apiKey) {
  return new OpenRouter({ apiKey, serverURL: `${environment.base}/api/v1`, retryConfig: { strategy: 'none' } });
}

const inference = client(environment.key);
const management = client(environment.managementKey);

// Reads a list to its end in pages of two and checks that it has each of these ids once.
async function verifyList(pages, ids) {
  const found = [];
  for await (const page of await pages) found.push(...page.result.data.map((each) => each.id));
  assert.equal(new Set(found).size, found.length, 'no element is repeated');
  for (const id of ids) assert.ok(found.includes(id), `${id} is missing`);
}

async function keys() {
  const expiresAt = new Date('2097-01-31T00:00:00Z');
  const requestBody = { name: 'of the package', limit: 12.5, limitReset: 'monthly', expiresAt, external: { user: 'u' } };
  const made = await management.apiKeys.create({ requestBody });
  const { hash } = made.data;
  assert.equal(made.data.limitRemaining, 12.5);
  assert.deepEqual(made.data.expiresAt, expiresAt);
  assert.deepEqual((await management.apiKeys.get({ hash })).data, made.data);
  // The package has no iterator for keys.
  const listed = [];
  for (let page; page?.length !== 0; listed.push(...page)) page = (await management.apiKeys.list({ offset: listed.length })).data;
  assert.deepEqual(listed.filter((key) => key.hash === hash), [made.data]);
  const changed = await management.apiKeys.update({ hash, requestBody: { name: 'renamed', disabled: true, limit: null } });
  assert.deepEqual([changed.data.name, changed.data.disabled, changed.data.limit], ['renamed', true, null]);
  assert.equal((await management.apiKeys.delete({ hash })).deleted, true);
  await raises(errors.NotFoundResponseError, 404, () => management.apiKeys.get({ hash }));
}

async function workspaces() {
  const made = [];
  for (let n = 0; n < 3; n++) {
    const call = { createWorkspaceRequest: { name: `squad ${n}`, slug: `package-squad-${n}` } };
    made.push((await management.workspaces.create(call)).data);
  }
  await verifyList(management.workspaces.list({ limit: 2 }), made.map((each) => each.id));
  const [first] = made;
  assert.deepEqual((await management.workspaces.get({ id: first.slug })).data, first);
  const updateWorkspaceRequest = { description: 'What the squad does', ioLoggingSamplingRate: 1 };
  const changed = await management.workspaces.update({ id: first.id, updateWorkspaceRequest });
  assert.equal(changed.data.description, 'What the squad does');
  const budget = { workspaceRef: first.slug, interval: 'daily' };
  const set = await management.workspaces.setBudget({ ...budget, upsertWorkspaceBudgetRequest: { limitUsd: 0.1 } });
  assert.deepEqual([set.data.limitUsd, set.data.resetInterval], [0.1, 'daily']);
  assert.deepEqual((await management.workspaces.getBudget(budget)).data, set.data);
  assert.deepEqual((await management.workspaces.listBudgets({ workspaceRef: first.id })).data, [set.data]);
  assert.equal((await management.workspaces.deleteBudget(budget)).deleted, true);
  await raises(errors.NotFoundResponseError, 404, () => management.workspaces.getBudget(budget));
  for (const { id } of made) assert.equal((await management.workspaces.delete({ id })).deleted, true);
  await raises(errors.NotFoundResponseError, 404, () => management.workspaces.get({ id: first.id }));
}

async function guardrails() {
  const { data: key } = await management.apiKeys.create({ requestBody: { name: 'held by guardrails' } });
  const made = [];
  for (let n = 0; n < 3; n++) {
    const createGuardrailRequest = { name: `of the package ${n}`, limitUsd: 5, resetInterval: 'daily' };
    made.push((await management.guardrails.create({ createGuardrailRequest })).data);
  }
  await verifyList(management.guardrails.list({ limit: 2 }), made.map((each) => each.id));
  const [{ id }] = made;
  assert.deepEqual((await management.guardrails.get({ id })).data, made[0]);
  const changed = await management.guardrails.update({ id, updateGuardrailRequest: { allowedModels: ['sandbox/decider'] } });
  assert.deepEqual(changed.data.allowedModels, ['sandbox/decider']);
  const keyHashes = [key.hash];
  const assigned = await management.guardrails.bulkAssignKeys({ id, bulkAssignKeysRequest: { keyHashes } });
  assert.equal(assigned.assignedCount, 1);
  for (const pages of [
    management.guardrails.listGuardrailKeyAssignments({ id, limit: 2 }),
    management.guardrails.listKeyAssignments({ limit: 2 }),
  ]) {
    const found = [];
    for await (const page of await pages) found.push(...page.result.data.map((each) => each.keyHash));
    assert.ok(found.includes(key.hash), 'the assignment is missing');
  }
  const removed = await management.guardrails.bulkUnassignKeys({ id, bulkUnassignKeysRequest: { keyHashes } });
  assert.equal(removed.unassignedCount, 1);
  await management.apiKeys.delete({ hash: key.hash });
  for (const each of made) assert.equal((await management.guardrails.delete({ id: each.id })).deleted, true);
  await raises(errors.NotFoundResponseError, 404, () => management.guardrails.get({ id }));
}

async function destinations() {
  const made = [];
  for (let n = 0; n < 3; n++) {
    const config = { url: `${environment.fakeProvider}/hook` };
    const createObservabilityDestinationRequest = { name: `hook ${n}`, type: 'webhook', config };
    made.push((await management.observability.create({ createObservabilityDestinationRequest })).data);
  }
  await verifyList(management.observability.list({ limit: 2 }), made.map((each) => each.id));
  const [{ id }] = made;
  assert.deepEqual((await management.observability.get({ id })).data, made[0]);
  const changed = await management.observability.update({ id, updateObservabilityDestinationRequest: { enabled: false } });
  assert.deepEqual([changed.data.enabled, changed.data.name], [false, 'hook 0']);
  for (const each of made) assert.equal((await management.observability.delete({ id: each.id })).deleted, true);
}

// Reads a whole stream as text.
async function text(stream) {
  return new Response(stream).text();
}

async function documents() {
  const file = { containerId: environment.container, fileId: environment.file };
  const document = await inference.containers.promoteContainerFile(file);
  await inference.containers.promoteContainerFile(file);
  const listed = [];
  for (let page, after; page?.data.length !== 0; after = page.lastId) {
    page = await inference.containers.listContainerFiles({ containerId: file.containerId, limit: 1, after });
    listed.push(...page.data.map((each) => each.id));
  }
  assert.deepEqual(listed, [file.fileId]);
  assert.equal((await inference.containers.getContainerFile(file)).id, file.fileId);
  assert.equal(await text(await inference.containers.downloadContainerFileContent(file)), 'The blender smokes.\n');
  await verifyList(inference.files.list({ limit: 1 }), [document.id]);
  const fileId = document.id;
  assert.equal((await inference.files.retrieve({ fileId })).filename, 'out/report.txt');
  assert.equal(await text(await inference.files.download({ fileId })), 'The blender smokes.\n');
  await inference.files.delete({ fileId });
  await raises(errors.NotFoundResponseError, 404, () => inference.files.retrieve({ fileId }));
}

async function presets() {
  const config = JSON.stringify({ model: 'sandbox/decider', questions: { refund: { type: 'noul', instructions: 'Refund?' } } });
  // The package cannot add versions.
  for (const slug of ['squad-triage', 'squad-triage', 'squad-triage', 'squad-other']) {
    const headers = { authorization: `Bearer ${environment.managementKey}`, 'content-type': 'application/json' };
    const added = await fetch(`${environment.base}/api/v1/presets/${slug}/decisions`, { method: 'POST', headers, body: config });
    assert.equal(added.status, 200);
  }
  const slug = 'squad-triage';
  const { data: read } = await management.presets.get({ slug });
  await verifyList(management.presets.list({ limit: 2 }), [read.id]);
  const versions = [];
  for await (const page of await management.presets.listVersions({ slug, limit: 2 })) versions.push(...page.result.data);
  assert.deepEqual(versions.map((each) => each.version), [1, 2, 3]);
  assert.deepEqual((await management.presets.getVersion({ slug, version: '3' })).data, versions[2]);
  const asked = { decisionsRequest: { model: `@preset/${slug}`, state: 'Money back!', questions: {} } };
  const { id: generationId } = await inference.systemOne.create(asked);
  const submitGenerationFeedbackRequest = { generationId, category: 'incorrect_response' };
  assert.equal((await inference.generations.submitFeedback({ submitGenerationFeedbackRequest })).data.success, true);
  await raises(errors.NotFoundResponseError, 404, () => management.presets.get({ slug: 'squad-nothing' }));
}

async function figures() {
  const { data: credit } = await management.credits.getCredits();
  assert.ok(credit.totalUsage >= 0 && credit.totalCredits >= 0);
  const { data: activity } = await management.analytics.getUserActivity({});
  assert.ok(activity.some((row) => row.model === 'sandbox/decider'), 'the model is missing in the activity');
  const { data: endpoints } = await inference.endpoints.listZdrEndpoints();
  assert.ok(Array.isArray(endpoints));
  const permitted = [];
  const pages = await inference.models.listForUser({ bearer: environment.key }, { outputModalities: 'decisions', limit: 2 });
  for await (const page of pages) permitted.push(...page.result.data.map((each) => each.id));
  assert.ok(permitted.includes('sandbox/decider'), `the sandbox is not permitted: ${permitted}`);
  assert.equal(new Set(permitted).size, permitted.length, `a model is repeated: ${permitted}`);
}

await run('@openrouter/sdk, management', [
  ['apiKeys: create, get, list, update and delete', keys],
  ['workspaces: create, list to the end, get, update, budgets and delete', workspaces],
  ['guardrails: create, list to the end, get, update, assignments and delete', guardrails],
  ['observability: create, list to the end, get, update and delete', destinations],
  ['files and containers: list, retrieve, download and delete', documents],
  ['presets: get, list and listVersions to the end, getVersion; generations.submitFeedback', presets],
  ['credits, analytics, endpoints.listZdrEndpoints and models.listForUser', figures],
]);
