import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergedSkills } from './merged-skills.ts';

const skill = (id: string) => ({ id, name: id, description: id, tags: [] });
const agent = (name: string, ...ids: string[]) => ({ name, description: name, url: '', skills: ids.map(skill), beat: 1 });

test('S4-3 skills of all agents, told apart by the agent where two have the same', () => {
  const skills = mergedSkills([agent('a', 'version'), agent('b', 'version', 'logs')]);
  assert.deepEqual(
    skills.map(one => one.id),
    ['version', 'b.version', 'logs'],
  );
});
