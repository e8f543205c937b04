import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergedSkills } from './merged-skills.ts';

const skill = (id: string) => ({ id, name: id.toUpperCase(), description: id, tags: ['t'] });
const agent = (name: string, ...ids: string[]) => ({ name, description: name, skills: ids.map(skill) });

test('skills of all agents are merged, and equal ids or names are qualified by the agent [S4-3]', () => {
  const skills = mergedSkills([agent('a', 'version'), agent('b', 'version', 'logs')]);
  assert.deepEqual(
    skills.map(one => [one.id, one.name]),
    [
      ['version', 'VERSION'],
      ['b.version', 'VERSION (b)'],
      ['logs', 'LOGS'],
    ],
  );
});

test('ids and names are unique whatever the agents send, and no skill is lost [S4-3]', () => {
  const word = fc.constantFrom('x', 'y', 'x.y', 'x.x', 'x (x)', 'x.x 2');
  const agents = fc.array(
    fc.record({
      name: word,
      description: word,
      skills: fc.array(
        fc.record({ id: word, name: word, description: fc.constantFrom('', 'd'), tags: fc.constant<string[]>([]) }),
      ),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(agents, given => {
      const skills = mergedSkills(given);
      assert.equal(skills.length, given.flatMap(one => one.skills).length);
      assert.equal(new Set(skills.map(one => one.id)).size, skills.length);
      assert.equal(new Set(skills.map(one => one.name)).size, skills.length);
      for (const one of skills) assert.ok(one.description !== '' && one.tags.length > 0);
    }),
  );
});
