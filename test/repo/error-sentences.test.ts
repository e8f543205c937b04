import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectFiles, read } from './source-files.ts';

/** Errors of the commands, which are printed after `hopline: `. */
const THROWN = /new (?:EnvironmentError|LaunchError|SetupError|UsageError)\(\s*([`'"][\s\S]*?[`'"]),?\s*\)+[;,]?\n/g;
/** Names that keep their capital letter. */
const BEGINS = /^[`'"](?:[^A-Z]|HOPLINE_|NATS|Hopline|Node )/;

test('errors of the commands are sentences of one style: they begin in lower case and end without a period', () => {
  const files = projectFiles().filter(file =>
    /^(?:infra|packages\/(?:cli|local-cluster))\/.*(?<!\.test)\.(?:ts|mjs)$/.test(file),
  );
  const thrown = files.flatMap(file => [...read(file).matchAll(THROWN)].map(([, sentence]) => `${file}: ${sentence}`));
  assert.ok(thrown.length > 60, `${thrown.length} errors`);
  for (const where of thrown) {
    const sentence = where.slice(where.indexOf(': ') + 2);
    assert.match(sentence, BEGINS, where);
    assert.doesNotMatch(sentence, /\.[`'"]$/, where);
  }
});
