import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { activeExtensions, extensionUris, HEADER_EXTENSIONS_MAX } from './extensions.ts';

const offered = (uri: string, required = false) => ({ uri, description: '', required });

test('URIs of a header are read despite blanks and gaps, up to a bound', () => {
  assert.deepEqual(extensionUris(undefined), []);
  assert.deepEqual(extensionUris(''), []);
  assert.deepEqual(extensionUris(' urn:a ,, urn:b'), ['urn:a', 'urn:b']);
  const many = Array.from({ length: HEADER_EXTENSIONS_MAX + 1 }, (_, at) => `urn:${at}`);
  assert.deepEqual(extensionUris(many.join(',')), many.slice(0, HEADER_EXTENSIONS_MAX));
});

test('an extension is active if it is both requested and offered; a required one must be requested', () => {
  assert.deepEqual(activeExtensions(['urn:b', 'urn:x'], [offered('urn:a'), offered('urn:b')]), ['urn:b']);
  assert.deepEqual(activeExtensions(['urn:a'], [offered('urn:a', true)]), ['urn:a']);
  assert.throws(
    () => activeExtensions(['urn:x'], [offered('urn:a', true)]),
    (error: unknown) => error instanceof A2AError && error.code === 'EXTENSION_SUPPORT_REQUIRED',
  );
});
