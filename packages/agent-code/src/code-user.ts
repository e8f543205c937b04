import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The user of a process, by number. */
export type CodeUser = { uid: number; gid: number };

/** Users of the code of agents, when this process may choose them: the range of DynamicUser of systemd, which no package gives to a person. */
const UID_FIRST = 61_184;
const UIDS = 4_336;

const BOTH = /^(\d{1,10}):(\d{1,10})$/;
const [READ, SEARCH] = [0o4, 0o1];

/** The user as which the code runs. `shared`: why it runs as the user of the sub-agent, whose credentials it can then read. */
export type CodeUserChoice = { user: CodeUser; shared?: undefined } | { user?: undefined; shared: string };

export type CodeUserOptions = {
  /** `auto`, `same`, or `uid:gid`. */
  setting: string;
  /** Name of the agent. */
  name: string;
  /** Files and folders that the code needs to read. */
  paths: readonly string[];
  /** The user of this process; undefined where users have no numbers. */
  ownUid: number | undefined;
  /** Whether a process of the user can be started: a container may lack the capability, or the number. */
  canStart: (user: CodeUser) => boolean;
};

/** Throws for a setting of another form. */
export function chooseCodeUser({ setting, name, paths, ownUid, canStart }: CodeUserOptions): CodeUserChoice {
  if (setting === 'same') return { shared: 'HOPLINE_CODE_USER is `same`' };
  const given = BOTH.exec(setting);
  if (given !== null) return { user: { uid: Number(given[1]), gid: Number(given[2]) } };
  if (setting !== 'auto') throw new Error('HOPLINE_CODE_USER must be auto, same, or two numbers UID:GID');
  if (ownUid !== 0) return { shared: 'only root may start a process of another user' };
  // One user for each agent, because processes of the same user can read each other's variables.
  const uid = UID_FIRST + (createHash('sha256').update(name).digest().readUInt32LE(0) % UIDS);
  const user = { uid, gid: uid };
  const closed = paths.find(path => !isOpenTo(user, path));
  if (closed !== undefined) return { shared: `another user cannot read ${closed}` };
  return canStart(user) ? { user } : { shared: 'no process of another user can be started' };
}

/**
 * Whether a user may read a file or folder, judged by its mode and the modes of the folders above it. True if the file is missing, because
 * then no user could read it.
 */
function isOpenTo({ uid, gid }: CodeUser, path: string): boolean {
  for (let at = path, bits = READ; ; at = dirname(at), bits = SEARCH) {
    const found = statSync(at, { throwIfNoEntry: false });
    if (found !== undefined) {
      const shift = found.uid === uid ? 6 : found.gid === gid ? 3 : 0;
      const needed = found.isDirectory() ? SEARCH : bits;
      if (((found.mode >> shift) & needed) !== needed) return false;
    }
    if (dirname(at) === at) return true;
  }
}
