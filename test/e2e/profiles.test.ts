import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { PROFILES } from '@hopline/profiles';
import { Cluster } from '../support/cluster/cluster.ts';
import { Guide } from '../support/guides/guide.ts';

/** The frames of the guide to profiles, of one task in a cluster with each profile. */
const GUIDE = new Guide('profiles.md');
const text = readFileSync(new URL('../../docs/guides/profiles.md', import.meta.url), 'utf8');

/** A frame as the guide shows it, without ids, times and metadata. */
function lineOf(event: StreamResponse): string {
  if ('task' in event) return `task      ${stateOf(event.task.status.state)}`;
  if ('message' in event) return `message   ${JSON.stringify(textIn(event.message.parts))}`;
  if ('statusUpdate' in event) {
    const { state, message } = event.statusUpdate.status;
    return `status    ${stateOf(state)}${message === undefined ? '' : ` ${JSON.stringify(textIn(message.parts))}`}`;
  }
  const { artifact, append, lastChunk } = event.artifactUpdate;
  const flags = [append && 'append', lastChunk && 'lastChunk'].filter(Boolean).join(' ');
  return `artifact  ${artifact.name} ${JSON.stringify(textIn(artifact.parts))}${flags === '' ? '' : ` ${flags}`}`;
}

const stateOf = (state: string) => state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-');
const textIn = (parts: readonly { text?: string }[]) => parts.map(({ text }) => text ?? '').join('');

for (const profile of PROFILES.keys())
  test(`the frames of profile ${profile} match the guide`, { timeout: 120_000 }, async t => {
    const folder = GUIDE.folder(t, ['weather.ts']);
    await using cluster = await Cluster.shared({
      profile,
      agents: [{ name: `weather-${profile}`, adapter: 'module', path: join(folder, 'weather.ts') }],
    });
    const lines: string[] = [];
    for await (const item of createClient({ url: cluster.url }).stream('Paris'))
      if ('event' in item) lines.push(lineOf(item.event));
    const shown = new RegExp(`^### ${profile}\\n\\n\`\`\`text\\n([\\s\\S]*?)\\n\`\`\``, 'm').exec(text)?.[1];
    assert.equal(lines.join('\n').replaceAll(new RegExp(`Weather-${profile}`, 'gi'), 'Weather'), shown);
  });

test('every start in the guide names a profile that exists', () => {
  const { env } = GUIDE.npmStart('HOPLINE_PROFILE');
  assert.ok(PROFILES.has(env.HOPLINE_PROFILE!));
  GUIDE.assertAllTaken();
});
