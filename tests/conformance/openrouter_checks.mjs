// The package `@openrouter/sdk`, unmodified, against the gateway: every call of it that the gateway serves.

import assert from 'node:assert/strict';
import { OpenRouter } from '@openrouter/sdk';
import * as errors from '@openrouter/sdk/models/errors';
import { choice, environment, forget, noul, raises, run, score, seen } from './harness.mjs';

const { base } = environment;
const SANDBOX = 'sandbox/decider';
const LEVELS = ['calm', 'annoyed', { feeling: 'furious', signs: ['shouting'] }];
const STATE = { subject: 'Broken blender', body: 'It smokes. I want my money back.', order: { id: 7, paid: true } };
const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the writer want money back?', criteria: { true: 'asks', false: 'does not' } },
  queue: { type: 'choice', instructions: 'Who?', criteria: { billing: 'money', hardware: ['smoke'], other: null } },
  heat: { type: 'score', instructions: { task: 'How upset?' }, criteria: LEVELS },
};

function client(apiKey = environment.key, options = {}) {
  return new OpenRouter({ apiKey, serverURL: `${base}/api/v1`, retryConfig: { strategy: 'none' }, ...options });
}

const inference = client();
const management = client(environment.managementKey);
const stranger = client(`sk-tg-v1-${'0'.repeat(64)}`);

function request(members = {}) {
  return { decisionsRequest: { model: SANDBOX, state: STATE, questions: QUESTIONS, ...members } };
}

// The three request formats of the package.
const ENTRIES = {
  systemOne: (members, asker = inference) => asker.systemOne.create(request(members)),
  alpha: (members, asker = inference) => asker.alpha.decisions.create(request(members), { serverURL: base }),
  'alpha below the base path': (members, asker = inference) =>
    asker.alpha.decisions.create(request(members), { serverURL: `${base}/api/v1` }),
};

async function eachEntry(check) {
  for (const entry of Object.values(ENTRIES)) await check(entry);
}

// Checks the answers to QUESTIONS.
function verify(result) {
  assert.deepEqual(Object.keys(result.answers), Object.keys(QUESTIONS), 'the names of the answers, in order');
  noul(result.answers.refund);
  choice(result.answers.queue, Object.keys(QUESTIONS.queue.criteria));
  score(result.answers.heat, LEVELS);
  assert.ok(result.usage.inputTokens > 0 && result.usage.outputTokens >= 0, 'tokens are counted');
  assert.equal(typeof result.usage.cost, 'number', 'the cost');
  assert.match(result.id, /^gen-/);
}

async function allTypes() {
  const results = [];
  await eachEntry(async (entry) => results.push(await entry({})));
  results.forEach(verify);
  for (const result of results) {
    assert.equal(result.model, SANDBOX);
    assert.equal(result.provider, 'Tollgate Sandbox');
    assert.deepEqual(result.answers, results[0].answers, 'the answers through each way in');
  }
}

async function formsOfState() {
  for (const state of ['I want my money back.', ['I want', { my: 'money back' }, null, 7], { deep: [{ er: null }] }]) {
    await eachEntry(async (entry) => verify(await entry({ state })));
  }
}

async function namesOfModels() {
  for (const [model, served] of [
    ['jev-1.13', 'typesafe/jev-1.13'],
    ['typesafe/jev-1.13', 'typesafe/jev-1.13'],
    ['jev-latest', 'typesafe/jev-1.14'],
    ['~typesafe/jev-latest', 'typesafe/jev-1.14'],
    ['sandbox/decider:free', 'sandbox/decider:free'],
  ]) {
    const result = await ENTRIES.systemOne({ model });
    verify(result);
    assert.equal(result.model, served, `the model that serves ${model}`);
  }
}

async function observability() {
  await forget();
  const trace = { traceId: 't-7', spanName: 's', additionalProperties: { team: 'returns' } };
  await eachEntry(async (entry) => verify(await entry({ model: 'typesafe/jev-1.13', sessionId: 's-7', user: 'u-7', trace })));
  for (const sent of await seen()) {
    assert.deepEqual(Object.keys(sent.request).sort(), ['model', 'questions', 'state'], 'the members at the provider');
    assert.deepEqual(sent.request.state, STATE, 'the state at the provider');
  }
}

async function preferences() {
  const model = 'typesafe/jev-1.13';
  const wanted = {
    order: ['fake'],
    only: ['fake'],
    ignore: ['nobody'],
    allowFallbacks: false,
    sort: 'price',
    maxPrice: { prompt: '1', completion: '1' },
    requireParameters: true,
    dataCollection: 'allow',
    zdr: false,
    quantizations: ['unknown'],
    preferredMaxLatency: { p90: 60 },
    preferredMinThroughput: 0.001,
  };
  await eachEntry(async (entry) => {
    assert.equal((await entry({ model, provider: wanted })).provider, 'Fake');
    assert.equal((await entry({ model, provider: null })).provider, 'Fake');
    for (const provider of [{ only: ['nobody'] }, { ignore: ['fake'] }, { zdr: true }, { maxPrice: { prompt: '0' } }]) {
      const error = await raises(errors.NotFoundResponseError, 404, () => entry({ model, provider }));
      assert.ok(error.error.metadata.routing_funnel, 'the funnel tells which preference left nothing');
    }
    await raises(errors.BadRequestResponseError, 400, () => entry({ model, provider: { quantizations: ['int3'] } }));
  });
}

async function refusals() {
  const questions = { ...QUESTIONS, odd: { type: 'noul', instructions: 'please refuse this' } };
  await eachEntry(async (entry) => {
    const result = await entry({ model: 'conformance/refuser', questions });
    const { odd, ...answers } = result.answers;
    assert.deepEqual(odd, { raw: { type: 'refusal' }, type: 'UNKNOWN', isUnknown: true }, 'the refusal');
    verify({ ...result, answers });
  });
}

const STATUSES = [
  ['sandbox/error-402', 402, errors.PaymentRequiredResponseError],
  ['sandbox/error-403', 403, errors.ForbiddenResponseError],
  ['sandbox/error-429', 429, errors.TooManyRequestsResponseError],
  ['sandbox/error-502', 502, errors.BadGatewayResponseError],
  ['sandbox/error-503', 503, errors.ServiceUnavailableResponseError],
  ['sandbox/error-524', 524, errors.EdgeNetworkTimeoutResponseError],
  ['sandbox/error-529', 529, errors.ProviderOverloadedResponseError],
  ['nobody/nothing', 404, errors.NotFoundResponseError],
  ['anthropic/claude-opus-5', 400, errors.BadRequestResponseError],
];

function verifyError(error, status) {
  assert.equal(error.error.code, status, 'the code');
  assert.ok(error.error.message, 'there is no message');
  assert.equal(error.error.metadata.request_id, error.headers.get('x-request-id'), 'the request id');
}

async function statuses() {
  await eachEntry(async (entry) => {
    for (const [model, status, errorClass] of STATUSES) {
      verifyError(await raises(errorClass, status, () => entry({ model })), status);
    }
  });
}

async function wrongKeys() {
  await eachEntry(async (entry) => {
    verifyError(await raises(errors.UnauthorizedResponseError, 401, () => entry({}, stranger)), 401);
    verifyError(await raises(errors.ForbiddenResponseError, 403, () => entry({}, management)), 403);
  });
}

async function validation() {
  const many = Object.fromEntries(Array.from({ length: 256 }, (_, place) => [`option ${place}`, null]));
  const faults = [
    [{ questions: { queue: { ...QUESTIONS.queue, criteria: many } } }, 'questions.queue'],
    [{ questions: { heat: { ...QUESTIONS.heat, criteria: Array(11).fill('x') } } }, 'questions.heat'],
    [{ questions: {} }, 'questions'],
    [{ sessionId: 'x'.repeat(257) }, 'session_id'],
  ];
  await eachEntry(async (entry) => {
    for (const [members, path] of faults) {
      const error = await raises(errors.BadRequestResponseError, 400, () => entry(members));
      verifyError(error, 400);
      assert.ok(error.message.includes(path), `${path} is not named in: ${error.message}`);
    }
  });
}

async function tooLarge() {
  await eachEntry(async (entry) => {
    const state = 'x'.repeat(9 * 1024 * 1024);
    verifyError(await raises(errors.PayloadTooLargeResponseError, 413, () => entry({ state })), 413);
  });
}

async function retries() {
  for (const [model, codes, errorClass] of [
    ['sandbox/error-429', ['429'], errors.TooManyRequestsResponseError],
    ['sandbox/error-529', ['5XX'], errors.ProviderOverloadedResponseError],
  ]) {
    const backoff = { initialInterval: 1, maxInterval: 5000, exponent: 1, maxElapsedTime: 900 };
    const options = { retries: { strategy: 'backoff', backoff, retryConnectionErrors: false }, retryCodes: codes };
    const began = Date.now();
    const status = Number(model.slice(-3));
    const error = await raises(errorClass, status, () => inference.systemOne.create(request({ model }), options));
    assert.equal(error.headers.get('retry-after'), '1', 'Retry-After');
    // The second response comes after the requested delay of a second, which exceeds the package's maximum wait.
    const took = Date.now() - began;
    assert.ok(took >= 1000 && took < 2000, `it took ${took} ms`);
  }
}

async function recovery() {
  const backoff = { initialInterval: 1, maxInterval: 5000, exponent: 1, maxElapsedTime: 10_000 };
  const options = { retries: { strategy: 'backoff', backoff, retryConnectionErrors: false } };
  const state = { token: `node-${Date.now()}-${Math.random()}` };
  const began = Date.now();
  verify(await inference.systemOne.create(request({ model: 'conformance/flaky', state }), options));
  assert.ok(Date.now() - began >= 1000, 'it did not wait');
}

async function listModels() {
  const text = (await inference.models.list()).result.data;
  assert.ok(text.length > 0 && text.every((model) => model.architecture.outputModalities.includes('text')));
  const rows = (await inference.models.list({ outputModalities: 'decisions' })).result.data;
  const row = rows.find((model) => model.id === SANDBOX);
  assert.deepEqual(row.architecture.outputModalities, ['decisions']);
  assert.equal(row.links.details, `/api/v1/models/${SANDBOX}/endpoints`);
  for (const id of ['typesafe/jev-1.14', '~typesafe/jev-latest', 'conformance/pictures']) {
    assert.ok(rows.some((model) => model.id === id), `${id} is not listed`);
  }
}

async function pageModels() {
  const everything = (await inference.models.count({ outputModalities: 'all' })).data.count;
  const ids = [];
  for await (const page of await inference.models.list({ outputModalities: 'all', limit: 7 })) {
    assert.equal(page.result.totalCount, everything, 'the total');
    assert.ok(page.result.data.length <= 7, 'a page is longer than its limit');
    ids.push(...page.result.data.map((model) => model.id));
  }
  assert.equal(new Set(ids).size, everything, 'every model stands on one page');
  assert.equal(ids.length, everything, 'no model stands on two');
}

async function countModels() {
  for (const outputModalities of ['decisions', 'text', 'text,image', 'all']) {
    const { count } = (await inference.models.count({ outputModalities })).data;
    const page = await inference.models.list({ outputModalities });
    assert.equal(page.result.data.length, count, `the models of ${outputModalities}`);
    assert.equal(page.result.totalCount, count, `the total of ${outputModalities}`);
  }
  assert.deepEqual(await inference.models.count(), await inference.models.count({ outputModalities: 'text' }));
  await raises(errors.BadRequestResponseError, 400, () => inference.models.count({ outputModalities: 'smell' }));
}

async function getModel() {
  for (const [author, slug, id] of [
    ['sandbox', 'decider', 'sandbox/decider'],
    ['sandbox', 'decider:free', 'sandbox/decider:free'],
    ['~typesafe', 'jev-latest', 'typesafe/jev-1.14'],
    ['conformance', 'pictures', 'conformance/pictures'],
  ]) {
    assert.equal((await inference.models.get({ author, slug })).data.id, id);
  }
  assert.equal((await management.models.get({ author: 'sandbox', slug: 'decider' })).data.id, SANDBOX);
  const absent = () => inference.models.get({ author: 'nobody', slug: 'nothing' });
  verifyError(await raises(errors.NotFoundResponseError, 404, absent), 404);
}

async function listEndpoints() {
  for (const [author, slug, provider] of [
    ['sandbox', 'decider:free', 'Tollgate Sandbox'],
    ['typesafe', 'jev-1.13', 'Fake'],
    ['~typesafe', 'jev-latest', 'Fake'],
  ]) {
    const { data } = await inference.endpoints.list({ author, slug });
    assert.ok(data.architecture.outputModalities.includes('decisions'));
    assert.deepEqual(data.endpoints.map((endpoint) => endpoint.providerName), [provider]);
    const [endpoint] = data.endpoints;
    assert.equal(endpoint.modelId, data.id);
    assert.ok(endpoint.tag, 'there is no tag');
  }
  const jev = (await inference.endpoints.list({ author: 'typesafe', slug: 'jev-1.13' })).data.endpoints[0];
  assert.equal(Number(jev.pricing.prompt), 0.000000042, 'the price');
  assert.equal(jev.status, 0, 'an endpoint that has just answered is well');
  const unserved = await inference.endpoints.list({ author: 'anthropic', slug: 'claude-opus-5' });
  assert.deepEqual(unserved.data.endpoints, []);
  const absent = () => inference.endpoints.list({ author: 'nobody', slug: 'nothing' });
  verifyError(await raises(errors.NotFoundResponseError, 404, absent), 404);
}

async function listProviders() {
  const { data } = await inference.providers.list();
  const names = Object.fromEntries(data.map((provider) => [provider.slug, provider.name]));
  assert.equal(names['fake'], 'Fake');
  assert.equal(names.refuser, 'Refuser');
}

async function generation() {
  const decided = await ENTRIES.systemOne({ model: 'jev-latest', sessionId: 'session-9', user: 'user-9' });
  const { data } = await inference.generations.getGeneration({ id: decided.id });
  assert.equal(data.id, decided.id);
  assert.equal(data.apiType, 'decisions');
  assert.equal(data.model, 'typesafe/jev-1.14');
  assert.equal(data.providerName, 'Fake');
  assert.equal(data.tokensPrompt, decided.usage.inputTokens);
  assert.equal(data.tokensCompletion, decided.usage.outputTokens);
  assert.equal(data.totalCost, decided.usage.cost);
  assert.equal(data.usage, decided.usage.cost);
  assert.equal(data.sessionId, 'session-9');
  assert.equal(data.externalUser, 'user-9');
  assert.deepEqual(data.providerResponses.map((each) => each.status), [200]);
  assert.ok(Math.abs(Date.now() - Date.parse(data.createdAt)) < 120_000, `it was made at ${data.createdAt}`);
}

async function generationsOfOthers() {
  const { id } = await ENTRIES.alpha({});
  verifyError(await raises(errors.UnauthorizedResponseError, 401, () => stranger.generations.getGeneration({ id })), 401);
  const absent = () => inference.generations.getGeneration({ id: `${id}0` });
  verifyError(await raises(errors.NotFoundResponseError, 404, absent), 404);
}

async function ownKey() {
  const { data } = await inference.apiKeys.getCurrentKeyMetadata();
  assert.equal(data.isManagementKey, false);
  assert.equal(typeof data.workspaceId, 'string');
  assert.equal(data.limit, null);
  assert.ok(data.usage >= 0 && data.usageDaily <= data.usage);
  const managing = await management.apiKeys.getCurrentKeyMetadata();
  assert.equal(managing.data.isManagementKey, true);
  assert.equal(managing.data.workspaceId, null);
}

async function assignKeys() {
  const call = { id: environment.guardrail, bulkAssignKeysRequest: { keyHashes: [environment.keyHash, 'f'.repeat(64)] } };
  assert.deepEqual(await management.guardrails.bulkAssignKeys(call), { assignedCount: 1 });
  verifyError(await raises(errors.ForbiddenResponseError, 403, () => inference.guardrails.bulkAssignKeys(call)), 403);
  const absent = () => management.guardrails.bulkAssignKeys({ ...call, id: 'nothing' });
  verifyError(await raises(errors.NotFoundResponseError, 404, absent), 404);
  const empty = () => management.guardrails.bulkAssignKeys({ ...call, bulkAssignKeysRequest: { keyHashes: [] } });
  verifyError(await raises(errors.BadRequestResponseError, 400, empty), 400);
}

async function promote() {
  const call = { containerId: environment.container, fileId: environment.file };
  const file = await inference.containers.promoteContainerFile(call);
  assert.equal(file.shape, 'openrouter');
  assert.equal(file.filename, 'out/report.txt');
  assert.equal(file.sizeBytes, 20);
  assert.equal(file.downloadable, true);
  const absent = () => inference.containers.promoteContainerFile({ ...call, containerId: 'sess_other' });
  verifyError(await raises(errors.NotFoundResponseError, 404, absent), 404);
  verifyError(await raises(errors.ForbiddenResponseError, 403, () => management.containers.promoteContainerFile(call)), 403);
}

await run('@openrouter/sdk', [
  ['noul, choice and score through systemOne and both paths of alpha.decisions, with equal answers', allTypes],
  ['state as text, as an array and as an object', formsOfState],
  ['bare names, aliases and variants of models', namesOfModels],
  ['session, user and trace are taken and never reach the provider', observability],
  ['every routing preference is honoured or refused', preferences],
  ['a refusal of one question stays one, and the rest is answered', refusals],
  ['each status is the class that the package has for it', statuses],
  ['wrong keys are 401, keys of the other kind 403', wrongKeys],
  ['a fault of the request is 400 and names its path', validation],
  ['a body beyond the limit is 413', tooLarge],
  ['429 and 529 are retried after the wait that the gateway asks for', retries],
  ['a provider that is overloaded for a moment is waited for', recovery],
  ['models.list decodes', listModels],
  ['models.list goes through the pages', pageModels],
  ['models.count equals the length of the list', countModels],
  ['models.get by id, variant and alias', getModel],
  ['endpoints.list by id, variant and alias', listEndpoints],
  ['providers.list names the configured ones', listProviders],
  ['generations.getGeneration tells what a decision was', generation],
  ["generations.getGeneration of what is not one's own", generationsOfOthers],
  ['apiKeys.getCurrentKeyMetadata of both kinds of keys', ownKey],
  ['guardrails.bulkAssignKeys', assignKeys],
  ['containers.promoteContainerFile', promote],
]);
