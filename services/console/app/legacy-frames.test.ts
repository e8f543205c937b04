import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect } from '../../../test/kit/collect.ts';
import { RequestError, UnreachableError } from './connection.ts';
import { legacyFrames } from './legacy-frames.ts';

const frame = (cursor: string) => `id: ${cursor}\ndata: {"kind":"status-update"}\n\n`;

/** Reads frames over these responses, each of which is the text or the error of one connection. */
async function read(responses: (string | Error)[], end: string): Promise<{ cursors: string[]; opened: string[] }> {
  const opened: string[] = [];
  const open = async (cursor: string) => {
    opened.push(cursor);
    const next = responses.shift() ?? new RequestError(404, 'too many connections');
    if (next instanceof Error) throw next;
    return new Response(next);
  };
  const isEnd = (cursor: string | undefined) => cursor === end;
  const frames = await collect(legacyFrames({ open, isEnd, sleep: async () => {}, signal: new AbortController().signal }));
  return { cursors: frames.map(({ cursor }) => cursor), opened };
}

test('frames continue after a broken connection, while ingress is away and while it is busy', async () => {
  const broken = `${frame('1.1')}id: 2.2\ndata: {"ki`;
  const faults = [new UnreachableError('away'), new RequestError(503, 'starting'), new TypeError('network')];
  const { cursors, opened } = await read([broken, ...faults, frame('2.2') + frame('3.3')], '3.3');
  assert.deepEqual(cursors, ['1.1', '2.2', '3.3']);
  assert.deepEqual(opened, ['0.0', '1.1', '1.1', '1.1', '1.1']);
});

test('a refusal ends the frames', async () => {
  await assert.rejects(read([frame('1.1'), new RequestError(404, 'no such task')], '9.9'), /no such task/);
});
