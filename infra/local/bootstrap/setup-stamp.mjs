import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const STAMP = 'node_modules/.hopline-set-up';
/** pnpm writes this file last: without it node_modules is incomplete. */
const PNPM_MARKER = 'node_modules/.modules.yaml';

/**
 * A hash of everything that determines the content of node_modules: lockfile, workspace file, every package.json, platform, Node
 * major.
 * @param {string} root @param {string} platform @param {string} nodeVersion @returns {string} hex
 */
export function setupKey(root, platform, nodeVersion) {
  const hash = createHash('sha256').update(`${platform} ${nodeVersion.split('.')[0]}\n`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests(root)]) {
    hash.update(`${file}\n`).update(readIfPresent(join(root, file)));
  }
  return hash.digest('hex');
}

/** The package.json files of the workspace, in a fixed order. @param {string} root */
function manifests(root) {
  const folders = ['.', 'infra/examples', 'infra/local', 'test'];
  for (const parent of ['packages', 'services']) {
    if (existsSync(join(root, parent))) folders.push(...readdirSync(join(root, parent)).map(name => `${parent}/${name}`));
  }
  return folders.sort().map(folder => `${folder}/package.json`);
}

function readIfPresent(path) {
  try {
    return readFileSync(path);
  } catch {
    return '';
  }
}

/** @param {string} root @param {string} key @returns {boolean} whether node_modules was installed for this key */
export function isSetUp(root, key) {
  return existsSync(join(root, PNPM_MARKER)) && readIfPresent(join(root, STAMP)).toString() === key;
}

/** @param {string} root @param {string} key */
export function markSetUp(root, key) {
  writeFileSync(join(root, STAMP), key);
}
