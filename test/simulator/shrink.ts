import type { Scenario } from './scenario.ts';

/** The maximum of runs for one shrinking. */
const RUNS_MAX = 300;

/**
 * Finds a smaller scenario that still fails. It leaves out each part in turn, halves first, and then reduces the parts themselves. The seed of
 * the delays stays the same.
 */
export async function shrink(scenario: Scenario, fails: (smaller: Scenario) => Promise<boolean>): Promise<Scenario> {
  let smallest = scenario;
  let runs = 0;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerThan(smallest)) {
      if (++runs > RUNS_MAX) return smallest;
      if (!(await fails(candidate))) continue;
      smallest = candidate;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

function* smallerThan(scenario: Scenario): Generator<Scenario> {
  const { tasks, faults, settings } = scenario;
  for (const fewer of without(faults)) yield { ...scenario, faults: fewer };
  for (const fewer of without(tasks)) if (fewer.length > 0) yield { ...scenario, tasks: fewer };
  if (settings.copyForwardAfterMs !== undefined) yield { ...scenario, settings: { ...settings, copyForwardAfterMs: undefined } };
  if (settings.limits !== undefined) {
    const { limits: _limits, ...rest } = settings;
    yield { ...scenario, settings: rest };
  }
  if (settings.follow !== undefined) {
    const { follow: _follow, ...rest } = settings;
    yield { ...scenario, settings: rest };
  }
  const fewerReplicas = (name: string) => ({ ...settings, topology: { ...settings.topology, [name]: 1 } });
  for (const [name, replicas] of Object.entries(settings.topology))
    if (replicas > 1 && !faults.some(fault => 'slot' in fault && fault.slot.startsWith(name)))
      yield { ...scenario, settings: fewerReplicas(name) };
  for (const [at, task] of tasks.entries()) {
    const replaced = (change: Partial<typeof task>) => ({ ...scenario, tasks: tasks.with(at, { ...task, ...change }) });
    if (task.cancelAfterMs !== undefined) yield replaced({ cancelAfterMs: undefined });
    for (const fewer of without(task.looks ?? [])) yield replaced({ looks: fewer });
    for (const fewer of without(task.intrusions ?? [])) yield replaced({ intrusions: fewer });
    const { dialect, fork, ...rest } = task;
    if (task.isCopied) {
      const { isCopied: _isCopied, ...once } = task;
      yield { ...scenario, tasks: tasks.with(at, once) };
    }
    const others = (plan: typeof task) => ({ ...scenario, tasks: tasks.with(at, plan) });
    if (dialect !== undefined) yield others({ ...rest, ...(fork && { fork }) });
    if (fork !== undefined) yield others({ ...rest, ...(dialect && { dialect }) });
    if (task.webhook !== undefined) yield replaced({ webhook: undefined });
    if (task.viewers.length > 1) yield replaced({ viewers: task.viewers.slice(0, 1) });
    const [viewer] = task.viewers;
    if (viewer !== undefined && viewer.leavesAfter.length > 0)
      yield replaced({ viewers: [{ ...viewer, leavesAfter: [] }, ...task.viewers.slice(1)] });
    for (const fewer of without(task.turns)) if (fewer.length > 0) yield replaced({ turns: fewer });
  }
}

/** The list without its halves, quarters, … and single members. */
function* without<T>(list: readonly T[]): Generator<T[]> {
  for (let size = Math.ceil(list.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < list.length; from += size) yield [...list.slice(0, from), ...list.slice(from + size)];
}
