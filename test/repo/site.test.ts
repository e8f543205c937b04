import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anchorOf, linkOnSite, llmsText, PAGES, pathOnSite, sections, staysHtml, titleOf } from '../../infra/site/pages.ts';
import { projectFiles, read } from './source-files.ts';

const REPOSITORY = 'https://github.com/o/hopline';

test('the menu is the index of the documents, and every entry is a page with a title', () => {
  const menu = sections();
  assert.deepEqual(
    menu.map(({ title }) => title),
    ['I want to …', 'I look for …', 'I want to understand …'],
  );
  for (const { path } of menu.flatMap(({ entries }) => entries)) {
    assert.ok(PAGES.has(path), path);
    assert.notEqual(titleOf(path), path);
  }
  assert.ok(menu[0]!.entries.length > 20);
});

test('every document of the repository is a page, except those that other products read', () => {
  const elsewhere = /^infra\/(?:create-hopline\/template\/|release\/hopline-package)|^test\/support\/|^\./;
  const documents = projectFiles().filter(path => path.endsWith('.md') && !elsewhere.test(path));
  assert.deepEqual([...PAGES], documents.toSorted());
  assert.equal(new Set([...PAGES].map(pathOnSite)).size, PAGES.size);
});

test('every link of every page leads to a page or to a file of the repository', () => {
  let links = 0;
  for (const path of PAGES) {
    for (const [, href] of read(path).matchAll(/\]\(([^)\s]+)\)/g)) {
      const there = linkOnSite(path, decodeURI(href!), REPOSITORY);
      if (there.endsWith('.md') && there.startsWith('.')) links += 1;
      assert.ok(/^(?:[a-z]+:|#|\.)/.test(there), `${path}: ${href} became ${there}`);
    }
  }
  assert.ok(links > 300, `${links} links between pages`);
});

test('pictures in both color schemes, line ends and anchors are HTML on the site, and other HTML is text', () => {
  let pictures = 0;
  for (const path of PAGES)
    for (const [picture] of read(path).matchAll(/^<picture>$[\s\S]*?^<\/picture>$/gm)) {
      assert.ok(staysHtml(picture), `${path}: ${picture}`);
      pictures += 1;
    }
  assert.ok(pictures > 10, `${pictures} pictures`);
  for (const html of ['<br>', '<a id="x">', '</a>']) assert.ok(staysHtml(html), html);
  for (const html of ['<id>', '<script>alert(1)</script>', '<picture>', '<br onclick="x()">']) assert.ok(!staysHtml(html), html);
});

test('a link to a README, a folder and a source', () => {
  const link = (href: string) => linkOnSite('docs/guides/first-agent.md', href, REPOSITORY);
  assert.equal(link('../../packages/agent/README.md#attempts'), '../../packages/agent/index.md#attempts');
  assert.equal(link('../../infra/examples'), '../../infra/examples/index.md');
  assert.equal(link('console.md'), './console.md');
  assert.equal(link('../../infra/examples/web-page/index.html'), `${REPOSITORY}/blob/main/infra/examples/web-page/index.html`);
  assert.equal(link('https://a2a-protocol.org'), 'https://a2a-protocol.org');
  assert.throws(() => link('missing.md'), /docs\/guides\/first-agent\.md links to missing\.md/);
});

test('anchors match GitHub’s', () => {
  assert.equal(anchorOf('1. A cluster with one command'), '1-a-cluster-with-one-command');
  assert.equal(anchorOf('Test it without a cluster: `playTurn`'), 'test-it-without-a-cluster-playturn');
});

test('llms.txt has what Hopline is, and every entry of the index as Markdown', () => {
  const text = llmsText('https://hopline.example/');
  assert.match(text, /^# Hopline\n\n> Hopline is an event-sourced relay cluster for A2A \(Agent2Agent\) streams: /);
  assert.doesNotMatch(text.split('\n')[2]!, /[*[\]]/);
  for (const { path } of sections().flatMap(({ entries }) => entries)) {
    assert.ok(text.includes(`- [${titleOf(path)}](https://hopline.example/${path}): `), path);
  }
});

test('the skill for coding agents has a name and a description, and names commands that exist', () => {
  const text = read('docs/skills/hopline/SKILL.md');
  const [, description] = /^---\nname: hopline\ndescription: (.+)\n---\n/.exec(text) ?? assert.fail('no front matter');
  assert.ok(description!.length < 1024);
  const names = new Set([...read('docs/reference/cli.md').matchAll(/^## ([a-z-]+)$/gm)].map(([, name]) => name!));
  const used = [...text.matchAll(/^npx --no hopline ([a-z-]+)/gm)].map(([, name]) => name!);
  assert.ok(used.length > 8);
  for (const name of used) assert.ok(names.has(name), name);
});
