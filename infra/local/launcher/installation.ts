import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The launcher starts the sources of a checkout, or the bundles of the package `hopline`, which lie beside its own. */
export type Installation = {
  /** Working directory of the services. */
  folder: string;
  /** The file that Node runs for a service. */
  programOf(service: string): string;
  /** Folder with `agents.json` and `question.json`. */
  demo: string;
  help: string;
  /** Where NODE_COMPILE_CACHE is, for a cluster with its state in `home`. */
  compileCache(home: string): string;
  /** The folder in which `.hopline` is by default. `current`: the current folder of the user. */
  homeBase(current: string): string;
};

const HERE = fileURLToPath(new URL('.', import.meta.url));

export const INSTALLATION: Installation = existsSync(join(HERE, 'installation.ts'))
  ? checkout(resolve(HERE, '../../..'))
  : bundles(HERE);

function checkout(root: string): Installation {
  return {
    folder: root,
    programOf: service => join(root, 'services', service, 'src', 'main.ts'),
    demo: join(root, 'infra/local/demo'),
    help: join(HERE, 'help.txt'),
    compileCache: () => join(root, 'node_modules/.cache/hopline-compile'),
    homeBase: () => root,
  };
}

/** A package may be installed where its user cannot write. */
function bundles(folder: string): Installation {
  return {
    folder,
    programOf: service => join(folder, `${service}.mjs`),
    demo: join(folder, 'demo'),
    help: join(folder, 'help.txt'),
    compileCache: home => join(home, 'compile-cache'),
    homeBase: current => current,
  };
}
