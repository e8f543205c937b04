import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectFiles, read } from './source-files.ts';

/**
 * No registry has these names, so a stranger who registers one could run code on every machine that installs it. Until they are published,
 * everything installs the tarballs of a checkout (`npm run pack`), or from a registry on this machine (`npm run dry-run`). CONTRIBUTING.md lists the names to reserve, and the changes for a release.
 */
const NAME = String.raw`(?:@hopline\/[\w-]+|hopline)(?:@[\w.^~-]+)?(?=[\s\`'"\\)]|$)`;
const INSTALLS = [
  // `npx --no` runs only installed packages and downloads nothing.
  new RegExp(String.raw`\b(?:npx|bunx|(?:pnpm|yarn) dlx)(?! --no\b)(?: -\S+(?: https?:\S+)?)* ${NAME}`),
  new RegExp(String.raw`\bnpm (?:exec|x)(?! --no\b)(?: -\S+)* (?:-- )?${NAME}`),
  new RegExp(String.raw`\b(?:npm|pnpm|yarn|bun) (?:install|i|add)(?: [^\s\`'"]+)*? ${NAME}`),
  new RegExp(String.raw`\b(?:npm|pnpm|yarn|bun) (?:create|init)(?: [^\s\`'"]+)*? ${NAME}`),
  /["']@hopline\/(?:agent|cli|client)["']: ["'`][\^~]?(?:\d|latest|\*|\$\{version)/,
];

/** A registry on this machine, which asks no other one for our names. */
const LOCAL_REGISTRY = / --registry (?:http:\/\/127\.0\.0\.1:\d+\/|\$\{url\}|URL) /;

const linesThatInstall = (text: string) =>
  text.split('\n').filter(line => !LOCAL_REGISTRY.test(line) && INSTALLS.some(pattern => pattern.test(line)));

test('no document, hint or program installs a name that no registry has', () => {
  const files = projectFiles().filter(
    file => !/^CHANGELOG\.md$|^pnpm-lock\.yaml$|^test\/repo\/unpublished-names|\.(?:png|ico|bin|gz)$/.test(file),
  );
  assert.deepEqual(
    files.flatMap(file => linesThatInstall(read(file)).map(line => `${file}: ${line.trim()}`)),
    [],
  );
});

test('lines that install an unpublished name are found, and those that cannot fetch one are not', () => {
  for (const line of [
    'npx @hopline/cli ask hello',
    '2. See it:       npx --yes hopline agents',
    "'npx hopline'",
    'npm exec -- hopline ask',
    'npm install -g @hopline/cli`, then',
    'npm i @hopline/client@0.1.0',
    'pnpm add zod hopline',
    'npm create hopline my-agent',
    'npx --registry https://packages.example.org/ hopline dev',
    '"@hopline/agent": "^0.1.0"',
  ])
    assert.equal(linesThatInstall(line).length, 1, line);
  for (const line of [
    'npx --no hopline ask',
    'npx --registry http://127.0.0.1:4873/ hopline dev',
    'npm create --yes --registry http://127.0.0.1:4873/ hopline my-agent',
    'npm run -s hopline -- ask hello',
    'helm install hopline infra/helm/hopline',
    'npm install ./dist/hopline-cli-0.1.0.tgz',
    '"@hopline/agent": "workspace:*"',
    '"@hopline/agent": "file:../dist/hopline-agent-0.1.0.tgz"',
  ])
    assert.equal(linesThatInstall(line).length, 0, line);
});
