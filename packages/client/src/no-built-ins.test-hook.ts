import { isBuiltin, registerHooks } from 'node:module';

/** Preloaded into a child process: imports of Node modules fail there, and globals that only Node has are hidden. */
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (isBuiltin(specifier)) throw new Error(`${context.parentURL} imports ${specifier}`);
    return nextResolve(specifier, context);
  },
});

/** Node's own fetch uses these globals at run time, so it can still see them. */
function hide(place: object, name: string | symbol): void {
  const value: unknown = Reflect.get(place, name);
  const get = () => (new Error().stack?.split('\n')[2]?.includes('node:internal') ? value : undefined);
  Object.defineProperty(place, name, { get });
}

for (const name of ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate']) hide(globalThis, name);
// Hidden too, because some browsers cannot iterate a stream.
hide(ReadableStream.prototype, Symbol.asyncIterator);
// It is also hidden, because pages without TLS do not have it.
hide(Object.getPrototypeOf(crypto), 'randomUUID');
