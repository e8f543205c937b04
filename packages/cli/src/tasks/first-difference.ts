/** A member that has different values in two JSON values. `path`: the names that lead to it; empty for the values themselves. */
type JsonDifference = { path: readonly string[]; a: unknown; b: unknown };

/** The first member, depth first, in which two JSON values differ; undefined if they are equal. */
export function firstDifference(a: unknown, b: unknown): JsonDifference | undefined {
  const [membersA, membersB] = [membersOf(a), membersOf(b)];
  if (membersA === undefined || membersB === undefined) return a === b ? undefined : { path: [], a, b };
  for (const name of new Set([...membersA.keys(), ...membersB.keys()])) {
    const found = firstDifference(membersA.get(name), membersB.get(name));
    if (found !== undefined) return { ...found, path: [name, ...found.path] };
  }
  return undefined;
}

/** The members of an object or array; undefined for any other value. */
function membersOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : undefined;
}
