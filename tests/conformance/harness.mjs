// The common parts of the Node checks: one line per check, and the properties of answers from any provider.

import assert from 'node:assert/strict';

export const environment = {
  base: process.env.CONFORMANCE_BASE,
  key: process.env.CONFORMANCE_KEY,
  keyHash: process.env.CONFORMANCE_KEY_HASH,
  managementKey: process.env.CONFORMANCE_MANAGEMENT_KEY,
  guardrail: process.env.CONFORMANCE_GUARDRAIL,
  container: process.env.CONFORMANCE_CONTAINER,
  file: process.env.CONFORMANCE_FILE,
  fakeProvider: process.env.CONFORMANCE_FAKE_PROVIDER,
};

// Numbers have two decimals, with an error of half of the last digit.
const HALF_STEP = 0.005 + 1e-9;

// Runs the checks, pairs of a line and a function, in order; ends the process at the first failure.
export async function run(name, checks) {
  for (const [line, check] of checks) {
    try {
      await check();
    } catch (error) {
      console.error([error.stack, error.body, error.cause].filter(Boolean).join('\n'));
      console.log(`FAILED ${name}: ${line}: ${error.name}: ${String(error.message).split('\n')[0]}`);
      process.exit(1);
    }
    console.log(`ok     ${name}: ${line}`);
  }
  console.log(`passed ${name}: ${checks.length} checks`);
}

// Fails unless the call throws exactly that class, with that status; returns the error.
export async function raises(errorClass, status, call) {
  let thrown;
  try {
    await call();
  } catch (error) {
    thrown = error;
  }
  assert.ok(thrown, `nothing was thrown, and ${errorClass.name} should have been`);
  assert.equal(thrown.constructor, errorClass, `${thrown.name} was thrown, not ${errorClass.name}: ${thrown.message}`);
  assert.equal(thrown.statusCode, status, 'the status');
  return thrown;
}

// Clears the recorded requests of the fake provider.
export async function forget() {
  await fetch(`${environment.fakeProvider}/seen`, { method: 'DELETE' });
}

// Returns the requests that the fake provider received, oldest first.
export async function seen() {
  return (await fetch(`${environment.fakeProvider}/seen`)).json();
}

function isProbability(number) {
  return typeof number === 'number' && number >= 0 && number <= 1;
}

// Checks a complete distribution over exactly these names, in this order. JavaScript sorts integer names.
function distribution(probabilities, names) {
  assert.deepEqual(Object.keys(probabilities), names, 'the names of the distribution');
  const values = Object.values(probabilities);
  assert.ok(values.every(isProbability), `a probability lies outside 0 to 1: ${values}`);
  const sum = values.reduce((total, value) => total + value, 0);
  assert.ok(Math.abs(sum - 1) <= HALF_STEP * values.length, `the probabilities sum to ${sum}`);
}

export function noul(answer) {
  assert.equal(answer.type, 'noul');
  assert.ok(isProbability(answer.noul), `${answer.noul} is no probability`);
}

// Checks that a choice is its likeliest option, and that its confidence is the rescaled peak.
export function choice(answer, names) {
  assert.equal(answer.type, 'choice');
  distribution(answer.probabilities, names);
  const most = Math.max(...Object.values(answer.probabilities));
  assert.equal(answer.probabilities[answer.choice], most, 'the probability of the chosen option');
  const expected = names.length === 1 ? 1 : Math.max(0, (names.length * most - 1) / (names.length - 1));
  assert.ok(Math.abs(answer.confidence - expected) <= 3 * HALF_STEP, `confidence is ${answer.confidence}, not ${expected}`);
}

// Checks that a score is its expectation, with a legend of the levels.
export function score(answer, levels) {
  assert.equal(answer.type, 'score');
  distribution(answer.probabilities, levels.map((_, place) => String(place)));
  const expected = Object.entries(answer.probabilities).reduce((sum, [level, p]) => sum + Number(level) * p, 0);
  const slack = HALF_STEP * (1 + levels.reduce((sum, _, place) => sum + place, 0));
  assert.ok(Math.abs(answer.score - expected) <= slack, `score is ${answer.score}, its expectation ${expected}`);
  assert.ok(isProbability(answer.confidence), `${answer.confidence} is no confidence`);
  assert.deepEqual(Object.values(answer.legend), levels, 'the legend');
}
