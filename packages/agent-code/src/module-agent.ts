import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject } from '@hopline/a2a';
import { type Agent, type AgentDefinition, AgentMisuse, defineAgent } from '@hopline/agent';

type ModuleAgentOptions = {
  /** Path of a module: .ts (with types that can be stripped), .mts, .js, .mjs, or CommonJS. */
  path: string;
  /** Default: `default`. */
  export?: string;
  /** Base of relative paths. */
  folder: string;
};

/**
 * Loads the agent that a module exports, from `defineAgent` or as a definition. Rejects with one sentence when there is none. The
 * error of a module that fails to load is its cause and may be logged: the module has not seen any message.
 */
export async function loadModuleAgent({ path, export: name = 'default', folder }: ModuleAgentOptions): Promise<Agent> {
  const exported = await loadExport({ path, name, folder });
  try {
    if (!isAgent(exported)) return defineAgent(exported as AgentDefinition);
    if (typeof exported.description !== 'string') throw new AgentMisuse('description must be a string');
    return exported;
  } catch (error) {
    if (!(error instanceof AgentMisuse)) throw error;
    throw new Error(`${path}: export ${name} is not an agent: ${error.message}`);
  }
}

export async function loadExport({ path, name, folder }: { path: string; name: string; folder: string }): Promise<unknown> {
  linkAgentKit();
  if (!existsSync(resolve(folder, path))) throw new Error(`${path} does not exist in ${folder}`);
  const loaded = await import(pathToFileURL(resolve(folder, path)).href).catch(error => {
    throw new Error(`${path} cannot be loaded`, { cause: error });
  });
  const exports = exportsOf(loaded);
  if (!(name in exports)) throw new Error(missingExport(path, name, Object.keys(exports)));
  return await exports[name];
}

/** The exports as the author wrote them. Compilers that write CommonJS put `export default` into a member of `module.exports`. */
function exportsOf(loaded: Record<string, unknown>): Record<string, unknown> {
  const { default: exported } = loaded;
  return isObject(exported) && exported.__esModule === true ? exported : loaded;
}

function missingExport(path: string, name: string, exports: readonly string[]): string {
  const found = exports.length === 0 ? 'no exports' : `${exports.join(', ')}; \`export\` (--export NAME) chooses one`;
  return `${path} does not export ${name}; it has ${found}`;
}

function isAgent(value: unknown): value is Agent {
  const { run, skills, close } = (value ?? {}) as Partial<Agent>;
  return typeof run === 'function' && typeof skills === 'function' && typeof close === 'function';
}

/** Imports a package as the module at `path` would. Undefined if that module cannot resolve it. */
export async function importAs(
  specifier: string,
  { path, folder }: { path: string; folder: string },
): Promise<Record<string, unknown> | undefined> {
  const parentURL = pathToFileURL(resolve(folder, path)).href;
  // Node 20, which the published command supports, does not have these hooks.
  if (nodeModule.registerHooks === undefined) return undefined;
  const hooks = nodeModule.registerHooks({
    resolve: (name, context, next) => next(name, name === specifier ? { ...context, parentURL } : context),
  });
  try {
    return await import(specifier);
  } catch {
    return undefined;
  } finally {
    hooks.deregister();
  }
}

const KIT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '@hopline/agent': import.meta.resolve('@hopline/agent'),
    '@hopline/agent/test-kit': import.meta.resolve('@hopline/agent/test-kit'),
  }),
);
let isLinked = false;

/** Lets a module outside any project import `@hopline/agent`: it resolves to this process's copy, unless the module has its own. */
function linkAgentKit(): void {
  if (isLinked) return;
  isLinked = true;
  nodeModule.registerHooks?.({
    resolve: (specifier, context, next) => {
      const url = KIT.get(specifier);
      if (url === undefined) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        return { url, shortCircuit: true };
      }
    },
  });
}
