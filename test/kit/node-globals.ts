/** Globals that Node has and browsers lack, as code uses them. Names of members (`hash.process(…)`) and words of sentences do not count. */
const USE = /(?<![\w$.])(?:(?:Buffer|process|global)(?:\.(?=[\w$])|\[)|(?:setImmediate|clearImmediate)\()/g;
const AROUND_CHARS = 40;

/** The places at which bundled code uses globals of Node, in any branch. */
export function nodeGlobalsIn(code: string): string[] {
  return [...code.matchAll(USE)].map(({ index }) => code.slice(Math.max(0, index - AROUND_CHARS), index + AROUND_CHARS));
}
