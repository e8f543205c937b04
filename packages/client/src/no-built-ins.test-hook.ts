import { isBuiltin, registerHooks } from 'node:module';

/** Preloaded into a child process: modules of Node cannot be had there, whoever asks, and what only Node has is not there. */
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (isBuiltin(specifier)) throw new Error(`${context.parentURL} imports ${specifier}`);
    return nextResolve(specifier, context);
  },
});

/** Node's own fetch is made of these and looks them up when it is used: it alone still finds them. */
function hide(place: object, name: string | symbol): void {
  const value: unknown = Reflect.get(place, name);
  const get = () => (new Error().stack?.split('\n')[2]?.includes('node:internal') ? value : undefined);
  Object.defineProperty(place, name, { get });
}

for (const name of ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate']) hide(globalThis, name);
// Not every browser can iterate a stream.
hide(ReadableStream.prototype, Symbol.asyncIterator);
// A page without TLS has none.
hide(Object.getPrototypeOf(crypto), 'randomUUID');
