import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAppFiles } from './app-files.ts';

/** Limit for the gzipped script of the first view. */
const FIRST_SCRIPT_BYTES_MAX = 100 * 1024;

test('the first view loads less than 100 KB of script, nothing inline, and nothing from other hosts', () => {
  const files = readAppFiles();
  const html = files.get('/')!.bytes.toString();
  const scripts = [...html.matchAll(/<script\b[^>]*\bsrc="([^"]+)"[^>]*><\/script>/g)].map(([, path]) => path!);
  assert.equal(scripts.length, (html.match(/<script/g) ?? []).length);
  const preloads = [...html.matchAll(/rel="modulepreload"[^>]*href="([^"]+)"/g)].map(([, path]) => path!);
  const bytes = [...scripts, ...preloads].reduce((sum, path) => sum + files.get(path)!.gzipped.length, 0);
  assert.ok(bytes > 0 && bytes < FIRST_SCRIPT_BYTES_MAX, `${bytes} bytes`);
  assert.doesNotMatch(html, /<style|style="|https?:\/\//);
});

test('a console without a built page does not start, and its error names the command that builds it', () => {
  assert.throws(() => readAppFiles(['/nowhere/']), { message: /npm start.*build/ });
});
