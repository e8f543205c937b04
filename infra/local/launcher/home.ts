import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NATS_USERS_FILE } from '@hopline/local-cluster';
import { LaunchError } from './launch-error.ts';

/** Incremented when a version cannot read the data of the previous one. */
export const HOME_FORMAT = 2;

export type Home = {
  folder: string;
  store: string;
  logs: string;
  runFile: string;
  lockFile: string;
  natsConfig: string;
  natsUsers: string;
  /** HOPLINE_SECRETS_KEY_FILE of ingress and notifier. */
  secretsKey: string;
};

/** Full paths of the files in a home. */
export function homePaths(folder: string): Home {
  return {
    folder,
    store: join(folder, 'nats'),
    logs: join(folder, 'logs'),
    runFile: join(folder, 'run.json'),
    lockFile: join(folder, 'lock'),
    natsConfig: join(folder, 'nats.conf'),
    natsUsers: join(folder, NATS_USERS_FILE),
    secretsKey: join(folder, 'secrets.key'),
  };
}

/** Creates the home. Throws a LaunchError when it is not writable. */
export function createHome(home: Home): void {
  try {
    makeFolder(home.folder);
    // A folder with other files keeps the mode that its owner has chosen, because HOPLINE_HOME may be any folder.
    const isNew = readdirSync(home.folder).length === 0;
    for (const folder of [home.store, home.logs]) makeFolder(folder);
    // The log store and the logs of a home contain users' questions.
    for (const folder of [...(isNew ? [home.folder] : []), home.store, home.logs]) chmodSync(folder, 0o700);
    writeOnce(home.secretsKey, `${randomBytes(32).toString('base64')}\n`);
  } catch (error) {
    throw new LaunchError(
      `the home ${home.folder} cannot be written (${(error as NodeJS.ErrnoException).code}); choose another with HOPLINE_HOME`,
    );
  }
}

/** If two starts run at the same time, only one writes. */
function writeOnce(path: string, text: string): void {
  if (existsSync(path)) return;
  try {
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Creates one level at a time, because mkdir with `recursive` never returns below /proc (Node 26.10). */
function makeFolder(folder: string): void {
  const parent = dirname(folder);
  if (parent !== folder && !existsSync(parent)) makeFolder(parent);
  if (!existsSync(folder)) mkdirSync(folder);
}

/** Checks the format marker of a home and writes it into a new one. */
export function checkHomeFormat(home: Home): void {
  const marker = join(home.folder, 'format');
  if (!existsSync(marker)) {
    if (readdirSync(home.store).length > 0) throw wrongFormat(home, 'no format marker');
    writeFileSync(marker, `${HOME_FORMAT}\n`);
    return;
  }
  const found = readFileSync(marker, 'utf8').trim().slice(0, 20);
  if (found !== String(HOME_FORMAT)) throw wrongFormat(home, `format "${found}"`);
}

function wrongFormat(home: Home, found: string): LaunchError {
  return new LaunchError(
    `the data in ${home.folder} has ${found} and this version reads format ${HOME_FORMAT}; move that folder away (mv ${home.folder} ${home.folder}.old) or choose another with HOPLINE_HOME`,
  );
}
