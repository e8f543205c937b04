import * as nodeModule from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Agent, type AgentDefinition, AgentMisuse, defineAgent } from '@hopline/agent';

export type ModuleAgentOptions = {
  /** An ES module: .ts (types that can be stripped), .mts, .js or .mjs. */
  path: string;
  /** Default: `default`. */
  export?: string;
  /** Relative paths begin here. */
  folder: string;
};

/**
 * The agent a module exports: made by `defineAgent`, or a definition. Rejects with one sentence when there is none; the error of a module that cannot be loaded is its author's own and is
 * told whole, no message of anybody has been there yet.
 */
export async function loadModuleAgent({ path, export: name = 'default', folder }: ModuleAgentOptions): Promise<Agent> {
  const exported = await loadExport({ path, name, folder });
  try {
    return isAgent(exported) ? exported : defineAgent(exported as AgentDefinition);
  } catch (error) {
    if (!(error instanceof AgentMisuse)) throw error;
    throw new Error(`${path}: export ${name} is no agent: ${error.message}`);
  }
}

export async function loadExport({ path, name, folder }: { path: string; name: string; folder: string }): Promise<unknown> {
  lendTheKit();
  const loaded = await import(pathToFileURL(resolve(folder, path)).href).catch(error => {
    throw new Error(`${path} cannot be loaded`, { cause: error });
  });
  if (!(name in loaded)) throw new Error(`${path} exports no ${name}; it has ${Object.keys(loaded).join(', ') || 'no exports'}`);
  return await loaded[name];
}

function isAgent(value: unknown): value is Agent {
  const { run, skills, close } = (value ?? {}) as Partial<Agent>;
  return typeof run === 'function' && typeof skills === 'function' && typeof close === 'function';
}

/** A package as the module at `path` would import it; undefined where it is not installed for that module. */
export async function importAs(
  specifier: string,
  { path, folder }: { path: string; folder: string },
): Promise<Record<string, unknown> | undefined> {
  const parentURL = pathToFileURL(resolve(folder, path)).href;
  // Node 20, on which the published command runs, has no hooks.
  if (nodeModule.registerHooks === undefined) return undefined;
  const as = nodeModule.registerHooks({
    resolve: (asked, context, next) => (asked === specifier ? next(asked, { ...context, parentURL }) : next(asked, context)),
  });
  try {
    return await import(specifier);
  } catch {
    return undefined;
  } finally {
    as.deregister();
  }
}

const KIT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '@hopline/agent': import.meta.resolve('@hopline/agent'),
    '@hopline/agent/test-kit': import.meta.resolve('@hopline/agent/test-kit'),
  }),
);
let lent = false;

/** An agent's file lies anywhere, also where nothing is installed: it imports the kit that runs it, unless it has its own. */
function lendTheKit(): void {
  if (lent) return;
  lent = true;
  nodeModule.registerHooks?.({
    resolve: (specifier, context, next) => {
      const ours = KIT.get(specifier);
      if (ours === undefined) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        return { url: ours, shortCircuit: true };
      }
    },
  });
}
