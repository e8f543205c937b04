import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cardReport } from '@hopline/agent-card';
import { agentsOf } from './agents.ts';

const listed = { description: '', state: 'live', default: false, skills: [{ id: 'chat', name: 'Chat' }] };

test('a skill has its own agent’s description, even if two agents have a skill with the same id', () => {
  const described = [
    { id: 'chat', description: 'of a', tags: ['x'], examples: ['hello'] },
    { id: 'b.chat', description: 'of b' },
  ];
  const agents = agentsOf(
    [
      { ...listed, name: 'a' },
      { ...listed, name: 'b' },
    ],
    { skills: described },
  );
  assert.deepEqual(
    agents.map(({ skills }) => skills[0]),
    [
      { id: 'chat', name: 'Chat', description: 'of a', tags: ['x'], examples: ['hello'] },
      { id: 'chat', name: 'Chat', description: 'of b', tags: [], examples: [] },
    ],
  );
});

test('an agent has the card of its entry, if the page knows the card’s form, and the reason why the agent does not work', () => {
  const card = cardReport({ name: 'Remote' });
  const [known, later, failing] = agentsOf(
    [
      { ...listed, name: 'a', card, fault: 'ECONNREFUSED' },
      { ...listed, name: 'b', card: { findings: [{ path: 'x' }] } },
      { ...listed, name: 'c', failing: 'http_500' },
    ],
    {},
  );
  assert.deepEqual([known?.card, known?.fault], [card, 'does not answer: ECONNREFUSED']);
  assert.deepEqual([later?.card, later?.fault, failing?.fault], [undefined, undefined, 'its last turns failed: http_500']);
});
