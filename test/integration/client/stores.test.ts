import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chatStore, createClient, type TaskStore, taskStore } from '@hopline/client/tasks';
import { effectScope, onScopeDispose, shallowRef, watch } from '@vue/reactivity';
import { build } from 'esbuild';
import { Window } from 'happy-dom';
import { compile } from 'svelte/compiler';
import { startBadServer, story } from '../../../packages/client/src/bad-server.test-kit.ts';
import { until } from '../../kit/until.ts';

/** The stores of the client in Svelte and Vue, as the README of the client shows them. */

const ANSWER = Array.from({ length: 20 }, (_, index) => `${index} `).join('');
const DOM_NAMES = [
  'window',
  'document',
  'Node',
  'Element',
  'Text',
  'Comment',
  'HTMLElement',
  'HTMLMediaElement',
  'navigator',
] as const;

const HALF = ANSWER.slice(0, ANSWER.indexOf('10 '));

/** `breaks`: the stream breaks once, and then the task ends. `waits`: the stream stays open in the middle of the answer. */
async function withStore(kind: 'breaks' | 'waits', use: (store: TaskStore, openResponses: () => number) => Promise<void>) {
  const broken = (n: number) => (n === 0 ? ({ kind: 'cut', after: 5 } as const) : undefined);
  const waiting = () => ({ kind: 'silence', after: 12 }) as const;
  const server = await startBadServer({ events: story(20), fault: kind === 'breaks' ? broken : waiting });
  try {
    const client = createClient({ url: server.url, retry: { baseMs: 1, waitMsMax: 2 } });
    await use(taskStore(client, 'task-1'), server.openResponses);
  } finally {
    await server.close();
  }
}

type Svelte = {
  mount(component: unknown, options: { target: unknown; props: Record<string, unknown> }): unknown;
  unmount(mounted: unknown): Promise<void>;
  flushSync(): void;
  Page: unknown;
};

/** A component with Svelte's runtime for browsers. It gets the document as arguments, so that it needs no globals. */
async function svelteWith(component: string, page: Window): Promise<Svelte> {
  const { js } = compile(component, { generate: 'client', dev: false, name: 'Page' });
  const { outputFiles } = await build({
    stdin: {
      contents: `${js.code}\nexport { Page };\nexport { flushSync, mount, unmount } from 'svelte';`,
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
    },
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'app',
    conditions: ['browser', 'production'],
  });
  const evaluated = new Function(...DOM_NAMES, `${outputFiles[0]!.text}\nreturn app;`);
  return evaluated(...DOM_NAMES.map(name => page[name as keyof Window])) as Svelte;
}

test('a component of Svelte shows a task by `$task`, and leaves its stream when it is removed', { timeout: 90_000 }, async () => {
  const page = new Window({ url: 'http://127.0.0.1/' });
  const svelte = await svelteWith(
    `<script>let { task, chat } = $props();</script>
     <article title={$task.status}>{$task.view.answer}</article><p>{$chat.messages.length} {$chat.status}</p>`,
    page,
  );
  const mounted = (task: TaskStore) => {
    const chat = chatStore(createClient({ url: 'http://127.0.0.1:9/' }));
    const target = page.document.createElement('main');
    const component = svelte.mount(svelte.Page, { target, props: { task, chat } });
    const shown = () => {
      svelte.flushSync();
      return [target.querySelector('article')?.title, target.querySelector('article')?.textContent];
    };
    svelte.flushSync();
    assert.equal(target.querySelector('p')?.textContent, '0 ready');
    return { shown, remove: () => svelte.unmount(component) };
  };
  await withStore('breaks', async task => {
    const { shown, remove } = mounted(task);
    await until(() => shown()[0] === 'ended');
    assert.deepEqual(shown(), ['ended', ANSWER]);
    await remove();
  });
  await withStore('waits', async (task, openResponses) => {
    const { shown, remove } = mounted(task);
    await until(() => shown()[1] === HALF);
    assert.equal(openResponses(), 1);
    await remove();
    await until(() => openResponses() === 0);
  });
  await page.happyDOM.close();
});

test('a component of Vue shows a task by a shallow reference, and leaves its stream with its scope', {
  timeout: 90_000,
}, async () => {
  const setup = (task: TaskStore) => {
    const scope = effectScope();
    const answers: string[] = [];
    const value = scope.run(() => {
      const value = shallowRef(task.get());
      onScopeDispose(task.subscribe(next => (value.value = next)));
      watch(value, ({ view }) => answers.push(view.answer));
      return value;
    })!;
    return { value, answers, scope };
  };
  await withStore('breaks', async task => {
    const { value, answers, scope } = setup(task);
    await until(() => value.value.status === 'ended');
    assert.deepEqual([value.value.view.answer, answers.at(-1)], [ANSWER, ANSWER]);
    scope.stop();
  });
  await withStore('waits', async (task, openResponses) => {
    const { value, scope } = setup(task);
    await until(() => value.value.view.answer === HALF);
    assert.equal(openResponses(), 1);
    scope.stop();
    await until(() => openResponses() === 0);
  });
});
