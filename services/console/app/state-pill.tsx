/** The state of a task; its color only repeats the word. */
export function StatePill({ state }: { state: string }) {
  return <span class={`pill pill-${state.replaceAll(/[^a-z-]/g, '')}`}>{state}</span>;
}
