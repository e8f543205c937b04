import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArtifactUpdated, Fact, FactRecord, TaskCreated } from '@hopline/events';
import { ByteBudget } from './byte-budget.ts';
import { HeldView } from './held-view.ts';
import { VisibleEntry } from './visible-entry.ts';

const created: TaskCreated = {
  kind: 'task.created',
  at: 0,
  generation: 1,
  event: { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } },
  role: 'supervisor',
  profile: 'caipe',
};

function text(generation: number, text: string, append = true): ArtifactUpdated {
  const artifact = { artifactId: 'a', parts: [{ text }] };
  const artifactUpdate = { taskId: 't', contextId: 'c', artifact, append, lastChunk: false };
  return { kind: 'artifact.updated', at: 0, generation, event: { artifactUpdate }, lane: 'l', producer: 'p', attempt: 1 };
}

const contentOf = (fact: Fact) => ('event' in fact ? new VisibleEntry(fact, 1).contentBytes : 0);
const add = (view: HeldView, ...facts: Fact[]) => view.add({ facts, aggregate: {} } as unknown as FactRecord, contentOf);
const heldText = (view: HeldView) => view.view?.task.artifacts?.[0]?.parts[0]?.text;

/** Bytes of a view that has folded the facts. */
function bytesOf(...facts: Fact[]): number {
  const budget = new ByteBudget(1_000_000);
  add(new HeldView(budget, 1_000_000), created, ...facts);
  return budget.bytes;
}

test('the bytes of all views together are bounded: beyond the bound the view that has been idle for longest is dropped', () => {
  const one = bytesOf(text(2, 'x'.repeat(1_000)));
  const budget = new ByteBudget(2 * one);
  const [first, second] = [new HeldView(budget, 2 * one), new HeldView(budget, 2 * one)];
  for (const view of [first, second]) add(view, created, text(2, 'x'.repeat(1_000)));
  assert.deepEqual([first.isDropped, second.isDropped, budget.bytes], [false, false, 2 * one]);
  add(first, text(3, 'y'));
  assert.deepEqual([first.isDropped, second.isDropped], [false, true]);
  assert.equal(heldText(first), `${'x'.repeat(1_000)}y`);
  assert.equal(second.view, undefined);
});

test('a view larger than the bound is dropped at once, and afterwards only counts its facts', () => {
  const one = bytesOf(text(2, 'x'));
  const budget = new ByteBudget(one);
  const view = new HeldView(budget, one);
  add(view, created, text(2, 'x'));
  assert.equal(heldText(view), 'x');
  const seen: number[] = [];
  view.add({ facts: [text(3, 'y'), text(4, 'z')], aggregate: {} } as unknown as FactRecord, fact => {
    if (fact.kind === 'artifact.updated') seen.push(fact.generation);
    return contentOf(fact);
  });
  add(view, text(5, 'z'));
  assert.deepEqual([view.isDropped, view.view, budget.bytes, seen], [true, undefined, 0, [3, 4]]);
});

test('a replaced artifact counts once, and messages of the client count as well', () => {
  const replaced = bytesOf(text(2, 'x'.repeat(1_000)), text(3, 'y'.repeat(1_000), false), text(4, 'z', false));
  assert.equal(replaced, bytesOf(text(2, 'z')));
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x'.repeat(500) }] };
  const received = { kind: 'message.received', at: 0, message, turn: 2 } as Fact;
  assert.ok(bytesOf(received) > bytesOf() + 500);
});
