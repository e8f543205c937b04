import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorText, resultEvents, shownResult } from './tool-result.ts';

test('each text item is one unchanged text of the answer', () => {
  const content = ['  a\n', '', '✅ done'].map(text => ({ type: 'text' as const, text }));
  assert.deepEqual(
    [...resultEvents('x', { content })],
    [
      { type: 'text', text: '  a\n' },
      { type: 'text', text: '✅ done' },
    ],
  );
});

test('every other item is an artifact', () => {
  const events = [
    ...resultEvents('shot', {
      content: [
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource', resource: { uri: 'file:///a.md', text: '# é', mimeType: 'text/markdown' } },
        { type: 'resource', resource: { uri: 'file:///b', blob: 'BBBB' } },
        { type: 'resource_link', uri: 'https://x.test/c', name: 'c' },
      ],
    }),
  ];
  const artifacts = events.map(event => (event.type === 'artifact' ? event : assert.fail()));
  assert.deepEqual(
    artifacts.map(event => event.artifact.parts),
    [
      [{ raw: 'AAAA', mediaType: 'image/png' }],
      [{ raw: Buffer.from('# é').toString('base64'), filename: 'file:///a.md', mediaType: 'text/markdown' }],
      [{ raw: 'BBBB', filename: 'file:///b' }],
      [{ url: 'https://x.test/c', filename: 'c' }],
    ],
  );
  assert.ok(artifacts.every(event => event.artifact.name === 'shot' && !event.append && event.lastChunk));
  assert.equal(new Set(artifacts.map(event => event.artifact.artifactId)).size, 4);
});

test('the notice of a call has the structured content, or the texts with notes about files', () => {
  const content = [
    { type: 'text' as const, text: 'a map: ' },
    { type: 'image' as const, data: 'AAAA', mimeType: 'image/png' },
    { type: 'resource' as const, resource: { uri: 'file:///b', blob: 'BBBB' } },
  ];
  assert.equal(shownResult({ content }), 'a map: [image/png][a file]');
  assert.deepEqual(shownResult({ content, structuredContent: { sunny: true } }), { sunny: true });
});

test('the text of an error joins its text items', () => {
  const content = [
    { type: 'text' as const, text: 'no ' },
    { type: 'image' as const, data: '', mimeType: 'image/png' },
    { type: 'text' as const, text: 'file' },
  ];
  assert.equal(errorText({ content, isError: true }), 'no file');
});

test('structured content is used only without other content', () => {
  const structuredContent = { n: 1 };
  assert.deepEqual(
    [...resultEvents('x', { content: [{ type: 'text', text: '{"n":1}' }], structuredContent })],
    [{ type: 'text', text: '{"n":1}' }],
  );
  const [alone] = resultEvents('x', { content: [], structuredContent });
  assert.deepEqual(alone?.type === 'artifact' && alone.artifact.parts, [{ data: { n: 1 }, mediaType: 'application/json' }]);
});
