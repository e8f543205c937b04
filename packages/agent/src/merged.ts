/**
 * Runs generators concurrently, yields what any of them yields, and returns their results in the order of `generators`. If one throws, it
 * throws that error and no longer waits for the others.
 */
export async function* merged<E, T>(generators: readonly AsyncGenerator<E, T, unknown>[]): AsyncGenerator<E, T[], unknown> {
  type Next = { index: number; result?: IteratorResult<E, T>; error?: unknown };
  const results: T[] = [];
  const running = new Map<number, Promise<Next>>();
  const advance = (index: number) =>
    running.set(
      index,
      // Never rejects, because no caller may be waiting for a generator that was abandoned.
      generators[index]!.next().then(
        result => ({ index, result }),
        error => ({ index, error: error as unknown }),
      ),
    );
  for (const index of generators.keys()) advance(index);
  try {
    while (running.size > 0) {
      const { index, result, error } = await Promise.race(running.values());
      running.delete(index);
      if (result === undefined) throw error;
      if (result.done) {
        results[index] = result.value;
        continue;
      }
      yield result.value;
      advance(index);
    }
    return results;
  } finally {
    for (const generator of generators) void generator.return(undefined as never).catch(() => {});
  }
}
