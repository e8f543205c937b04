/** Runs the peers in turn, A B C A B C …, so that other load affects all of them alike. */
export async function interleave<K extends string, R>(
  rounds: number,
  peers: Record<K, () => Promise<R>>,
): Promise<Record<K, R[]>> {
  const names = Object.keys(peers) as K[];
  const results = Object.fromEntries(names.map(name => [name, [] as R[]])) as Record<K, R[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) results[name].push(await peers[name]());
  }
  return results;
}
