import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { optionsOf, parseArguments } from '../../packages/cli/src/command/parse-arguments.ts';
import { COMMANDS } from '../../packages/cli/src/commands.ts';
import { codeBlocks, runnableParts } from '../support/guides/guide.ts';
import { NOT_RUN, notRun } from '../support/guides/not-run.ts';
import { projectFiles, read } from './source-files.ts';

/** The tests of the guides run their code (ADR 183). These find a guide that no test reads, and an exception that no longer matches. */

const files = projectFiles();
const guides = files.flatMap(path => /^docs\/guides\/(.+\.md)$/.exec(path)?.[1] ?? []);
const blocksOf = (guide: string) => codeBlocks(read(`docs/guides/${guide}`));

test('every block of a guide has a language', () => {
  assert.ok(guides.length >= 20);
  for (const guide of guides)
    for (const { language, text } of blocksOf(guide)) assert.notEqual(language, '', `${guide}: ${text.slice(0, 60)}`);
});

test('every guide with code has a test that runs all of it, except the parts that not-run.ts explains', () => {
  // A part of a test file counts: the tutorial is in a file of its own.
  const tests = files.filter(path => /^test\/(?!repo\/|support\/).*\.ts$/.test(path)).map(read);
  for (const guide of guides) {
    if (runnableParts(blocksOf(guide)).every(part => notRun(guide, part) !== undefined)) continue;
    const readers = tests.filter(text => text.includes(`new Guide('${guide}')`));
    assert.ok(
      readers.some(text => text.includes('.assertAllTaken()')),
      `no test runs ${guide}`,
    );
  }
});

test('every exception has a reason, and matches a part of its guide', () => {
  for (const { guide, begins, because } of NOT_RUN) {
    assert.match(because, /\w{5}/);
    assert.ok(
      runnableParts(blocksOf(guide)).some(part => part.startsWith(begins)),
      `${guide} has nothing that begins with "${begins}"`,
    );
    for (const [file] of because.matchAll(/test\/[\w./-]+\.ts/g)) assert.ok(files.includes(file), file);
  }
});

test('the values of the guides are accepted by the schemas of the charts', () => {
  const schemaOf = (chart: string) =>
    new Ajv({ strict: false }).compile(JSON.parse(read(`infra/helm/${chart}/values.schema.json`)));
  const [cluster, agent] = [schemaOf('hopline'), schemaOf('hopline-agent')];
  let checked = 0;
  const check = (matches: typeof agent, text: string, name: string) => {
    checked += 1;
    assert.ok(matches(parse(text)), `${name}: ${JSON.stringify(matches.errors)}`);
  };
  for (const guide of guides)
    for (const { language, text } of blocksOf(guide)) {
      if (language === 'yaml') check(cluster, text, guide);
      for (const [, values] of text.matchAll(/<<'END'\n([\s\S]*?)^END$/gm)) check(agent, values!, guide);
    }
  assert.ok(checked >= 5, `${checked} values`);
});

test('every command line of hopline in a document has a command and options that exist', () => {
  let checked = 0;
  for (const path of files.filter(file => /^(?:README|docs\/(?:guides|skills)\/.*|packages\/.*|infra\/.*)\.md$/.test(file))) {
    for (const [, line] of read(path).matchAll(/`hopline ([a-z][a-z-]*(?: [^`]*)?)`/g)) {
      // A line with a placeholder for options, or that only names a command in a pattern.
      const words = (line!.match(/"[^"]*"|\S+/g) ?? []).map(word => word.replaceAll('"', ''));
      if (words.some(word => /[…[{|]/.test(word))) continue;
      checked += 1;
      assert.doesNotThrow(() => commandOf(words), `${path}: hopline ${line}`);
    }
  }
  assert.ok(checked > 40, `${checked} command lines`);
});

test('the command dev has the options of the launcher', () => {
  const inHelp = [...read('infra/local/launcher/help.txt').matchAll(/^ {2}--([\w-]+)/gm)].map(([, option]) => option!);
  const dev = COMMANDS.find(({ name }) => name === 'dev')!;
  assert.deepEqual(
    optionsOf(dev).map(([option]) => option),
    inHelp,
  );
});

/** Throws for an unknown command or option. A document may leave out the subject, or the value of the last option. */
function commandOf([name = '', ...args]: string[]): void {
  if (name === 'console') return;
  const command = COMMANDS.find(one => one.name === name);
  const last = optionsOf(command ?? COMMANDS[0]!).find(([option]) => args.at(-1) === `--${option}`);
  const value = last?.[1].value === undefined ? [] : ['VALUE'];
  parseArguments([name, ...args, ...value, '--help'], COMMANDS, undefined);
}
