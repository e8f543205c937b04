import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import ACME from '../../../test/support/profiles/acme.ts';
import { agentPresentation, answerArtifact, laneArtifact, withKind } from './artifacts.ts';
import { CAIPE } from './caipe.ts';
import { CHAT } from './chat.ts';
import { checkProfile, ProfileError } from './check-profile.ts';
import { artifactKind, kindOfArtifact } from './kinds.ts';
import { loadProfiles, PROFILES } from './registry.ts';
import { TRANSPARENT } from './transparent.ts';

const ACME_FILE = fileURLToPath(new URL('../../../test/support/profiles/acme.ts', import.meta.url));

test('a module adds one profile to the built-in ones', async () => {
  assert.deepEqual([...(await loadProfiles(undefined)).keys()], ['caipe', 'transparent', 'aion', 'chat']);
  assert.deepEqual([...(await loadProfiles(ACME_FILE)).keys()], ['caipe', 'transparent', 'aion', 'chat', 'acme']);
  await assert.rejects(loadProfiles('./missing.ts'), ProfileError);
});

test('every built-in profile is plain JSON that passes the check', () => {
  for (const profile of PROFILES.values()) assert.deepEqual(checkProfile(JSON.parse(JSON.stringify(profile))), profile);
});

test('a wrong profile is rejected with the path of the wrong member', () => {
  const cases: [unknown, RegExp][] = [
    [undefined, /^profile must be an object/],
    [{ ...CAIPE, name: 'Acme' }, /^profile\.name must be/],
    [{ ...CAIPE, turn: 'lead' }, /^profile\.turn must be/],
    [{ ...CAIPE, kinds: { plan: 'drawing' } }, /^profile\.kinds\.plan must be one of/],
    [{ ...CAIPE, answer: {} }, /^profile\.answer\.name must be/],
    [{ ...CHAT, plan: 'artifact' }, /^profile\.plan must be an object/],
    [{ ...CHAT, result: {} }, /^profile\.result\.name must be/],
    [{ ...CHAT, calls: { ...CHAT.calls, as: 'text' } }, /^profile\.calls\.as must be/],
    [{ ...CAIPE, agent: TRANSPARENT.agent }, /^profile\.agent\.text\.as must be answer/],
    [{ ...TRANSPARENT, agent: { ...TRANSPARENT.agent, notices: {} } }, /^profile\.agent\.notices\.start must be an object/],
  ];
  for (const [value, message] of cases) assert.throws(() => checkProfile(value), { name: 'ProfileError', message });
});

test('a call holds the kinds of all profiles, and the artifact of the answer', () => {
  const answer = answerArtifact(CAIPE, 'Platform Engineer', 'argocd', 'call-1-1');
  const presentation = agentPresentation({ ...CAIPE, kinds: { acme_plan: 'plan' } }, answer);
  assert.ok(presentation.text.as === 'answer');
  assert.deepEqual(presentation.text.artifact, {
    name: 'streaming_result',
    description: 'Streaming result from Platform Engineer',
    separateClose: true,
    metadata: { sourceAgent: 'argocd', toolCallId: 'call-1-1' },
  });
  const { kinds } = presentation.text;
  assert.deepEqual([artifactKind('acme_plan', kinds), artifactKind('execution_plan_update', kinds)], ['plan', 'plan']);
  assert.equal(artifactKind('toString'), undefined);
  assert.throws(() => agentPresentation(CAIPE), /no artifact/);
});

test('an artifact of a custom profile records its kind, one of a built-in profile is recognized by its name', () => {
  const plan = laneArtifact(ACME, ACME.plan.complete, 'Acme');
  assert.deepEqual([plan.metadata, kindOfArtifact(plan)], [{ artifactKind: 'plan' }, 'plan']);
  const answer = answerArtifact(ACME, 'Acme', 'argocd', 'c1');
  assert.deepEqual(answer.metadata, { artifactKind: 'answer', sourceAgent: 'argocd', toolCallId: 'c1' });
  assert.equal(laneArtifact(CAIPE, CAIPE.plan.complete, 'x').metadata, undefined);
  const text = { as: 'own', artifact: { name: 'acme_text' } } as const;
  const presentation = agentPresentation({
    ...TRANSPARENT,
    kinds: { acme_text: 'answer' },
    agent: { ...TRANSPARENT.agent, text },
  });
  assert.equal(kindOfArtifact(presentation.text.artifact), 'answer');
  assert.deepEqual(agentPresentation(TRANSPARENT).text.artifact, { name: 'response' });
});

test('a name of a built-in profile takes precedence over a recorded kind, and an unknown kind is ignored', () => {
  assert.equal(kindOfArtifact({ name: 'execution_plan_update', metadata: { artifactKind: 'answer' } }), 'plan');
  assert.equal(kindOfArtifact({ name: 'report', metadata: { artifactKind: 'drawing' } }), undefined);
  assert.equal(kindOfArtifact({ metadata: { artifactKind: ['plan'] } }), undefined);
  assert.deepEqual(withKind({ name: 'report' }, undefined), { name: 'report' });
});
