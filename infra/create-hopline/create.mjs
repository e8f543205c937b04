#!/usr/bin/env node
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const USAGE = `create-hopline [FOLDER]
Makes FOLDER (my-agent) with an agent, its test, an agents file, and a page that shows the agent.`;
const TEMPLATE = fileURLToPath(new URL('template', import.meta.url));
/** Files that contain the name of the agent. */
const NAMED = ['package.json', 'agent.ts', 'agent.test.ts', 'agents.json', 'README.md', 'page/index.html', 'page/main.tsx'];

/** @param {string[]} args */
function main(args) {
  const [folder = 'my-agent', ...more] = args;
  if (more.length > 0 || folder.startsWith('-')) throw new Error(USAGE);
  const target = resolve(folder);
  const name = basename(target);
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(name))
    throw new Error(`"${name}" cannot be the name of an agent: use 1 to 32 of a-z, 0-9 and - (not first)`);
  if (existsSync(target) && readdirSync(target).length > 0) throw new Error(`${target} is not empty: choose another folder`);
  mkdirSync(target, { recursive: true });
  cpSync(TEMPLATE, target, { recursive: true });
  // npm leaves files of that name out of packages.
  renameSync(join(target, 'gitignore'), join(target, '.gitignore'));
  for (const file of NAMED) {
    const path = join(target, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('NAME', name));
  }
  // The project installs Hopline's packages from the registry of this program. npm sets the variable for every registry except its default.
  const registry = process.env.npm_config_registry;
  if (registry !== undefined) writeFileSync(join(target, '.npmrc'), `registry=${registry}\n`);
  console.log(`${relative(process.cwd(), target) || '.'}/ is ready. Next:

  cd ${relative(process.cwd(), target) || '.'} && npm install
  npm run dev       # starts a cluster with the agent; Ctrl-C stops it
  npm run ask       # in another terminal
  npm run page      # the page, at http://localhost:5173/
  npm test          # plays a turn of the agent without a cluster; Node 22.18 or newer`);
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
