import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Task } from '@hopline/a2a';
import { timeOfTaskId } from '@hopline/events';
import { addEnded, type ListedTask, LogUnavailable, listPrefixOf, putTask } from '@hopline/log';
import { until } from '../../../test/kit/until.ts';
import { call, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

type Listed = { tasks: Task[]; nextPageToken: string; pageSize: number; totalSize: number };

async function list(rig: Rig, params: Record<string, unknown> = {}): Promise<Listed> {
  const { result, error } = await rpc(rig, params);
  assert.equal(error, undefined, JSON.stringify(error));
  return result as Listed;
}

async function rpc(
  rig: Rig,
  params: unknown,
  version = '1.0',
): Promise<{ result?: unknown; error?: { code: number; message: string } }> {
  const response = await fetch(rig.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: version === '1.0' ? 'ListTasks' : 'tasks/list', params }),
  });
  return (await response.json()) as { result?: unknown; error?: { code: number; message: string } };
}

/** From now on the relay does not write the lists. */
function stopIndex({ log }: Rig): void {
  log.taskLists.put = async () => 0;
}

const idsOf = ({ tasks }: Listed) => tasks.map(task => task.id);

/** Tasks with statuses of different milliseconds, oldest first; every third waits for input, the others have ended. */
async function fill(rig: Rig, count: number, contextOf: (n: number) => string = () => 'c'): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    rig.relay.onClient = async taskId => {
      if (n % 3 !== 0) return rig.relay.answer(taskId, ['text']);
      await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
      await rig.relay.end(taskId, 'INPUT_REQUIRED');
    };
    const { result } = await call(rig, 'send', sendParams(userMessage(`${n}`, { contextId: contextOf(n) })));
    ids.push(result.task.id);
    await sleep(2);
  }
  return ids;
}

test('ListTasks returns newest status first, without artifacts, with totals, over both bindings and on any process', async t => {
  const rig = await openRig(t);
  const ids = await fill(rig, 5);
  const other = await rig.another();
  const page = await list(rig);
  assert.deepEqual(idsOf(page), ids.toReversed());
  assert.deepEqual({ ...page, tasks: [] }, { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 5 });
  assert.deepEqual(await list(other), page);
  assert.deepEqual((await rest(other, 'GET /tasks')).body, page);
  for (const task of page.tasks) {
    const { artifacts, ...got } = (await call(rig, 'get', { id: task.id })).result;
    assert.deepEqual(task, got);
    assert.equal('artifacts' in task, false);
  }
});

test('a new task is listed at once by the process that answered, and a new status moves it to the front', async t => {
  const rig = await openRig(t);
  await list(rig);
  const [first, second] = await fill(rig, 2);
  stopIndex(rig);
  assert.deepEqual(idsOf(await list(rig)), [second, first]);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  await call(rig, 'send', sendParams(userMessage('y', { taskId: first! })));
  assert.deepEqual(idsOf(await list(rig)), [first, second]);
});

test('a server that may not write the index lists its own new tasks at once', async t => {
  const rig = await openRig(t, { writesIndex: false });
  await list(rig);
  stopIndex(rig);
  rig.log.taskLists.create = async () => assert.fail('the lists were written');
  const [only] = await fill(rig, 1);
  assert.deepEqual(idsOf(await list(rig)), [only]);
});

test('a task seen on one process is in the next list of any other, even if the other’s index lags', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  assert.deepEqual(idsOf(await list(other)), []);
  stopIndex(rig);
  const [waiting, done] = await fill(rig, 2);
  assert.deepEqual(idsOf(await list(other)), [done, waiting]);
  assert.deepEqual(idsOf(await list(other, { status: 'TASK_STATE_INPUT_REQUIRED' })), [waiting]);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  await call(rig, 'send', sendParams(userMessage('y', { taskId: waiting! })));
  const ended = await list(other, { status: 'TASK_STATE_COMPLETED' });
  assert.deepEqual([idsOf(ended), ended.totalSize], [[waiting, done], 2]);
});

test('open tasks beyond the bound of reads are listed with their state in the index', async t => {
  const rig = await openRig(t, { limits: { listedOpenTasksMax: 2 } });
  const other = await rig.another();
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const { result } = await call(rig, 'send', sendParams(userMessage(`${n}`)));
    ids.push(result.task.id);
    await sleep(2);
  }
  assert.deepEqual(idsOf(await list(other)), ids.toReversed());
  stopIndex(rig);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const taskId of ids) await call(rig, 'send', sendParams(userMessage('y', { taskId })));
  assert.deepEqual(idsOf(await list(other, { status: 'TASK_STATE_COMPLETED' })), [ids[2], ids[1]]);
});

test('when the index lags, a page has the states and the order of the log', async t => {
  const rig = await openRig(t, { limits: { listedOpenTasksMax: 1 } });
  const other = await rig.another();
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    ids.push((await call(rig, 'send', sendParams(userMessage(`${n}`)))).result.task.id);
    await sleep(2);
  }
  await list(other);
  stopIndex(rig);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const n of [2, 1, 0]) {
    await call(rig, 'send', sendParams(userMessage('y', { taskId: ids[n]! })));
    await sleep(2);
  }
  // Only the newest task was read from the log. The index still lists the others as waiting for input.
  const waiting = await list(other, { status: 'TASK_STATE_INPUT_REQUIRED' });
  assert.deepEqual(idsOf(waiting), []);
  assert.deepEqual(idsOf(await list(await rig.another())), ids, 'the newest status first');
});

test('a task whose only status comes from its first fact is listed even if the index lacks that fact', async t => {
  const rig = await openRig(t);
  stopIndex(rig);
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  assert.deepEqual(idsOf(await list(await rig.another())), [result.task.id]);
});

test('a task that the log has removed is not listed, counted or read', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 0 } });
  const gone = { contextId: 'c', role: 'supervisor', startSeq: 1, generation: 3, at: 1, seq: 1 } as const;
  await putTask(rig.log, 'gone', { ...gone, state: 'TASK_STATE_COMPLETED' });
  await addEnded(rig.log.taskLists, listPrefixOf('gone', gone, rig.log.layouts), [
    ['long-gone', 'c', 'TASK_STATE_FAILED', 1, 2, 1],
  ]);
  const [only] = await fill(rig, 1);
  const { seq } = (await rig.log.facts.last(only!))!;
  rig.log.expireAll('facts', seq);
  const reads: string[] = [];
  const last = rig.log.facts.lastOfEach.bind(rig.log.facts);
  rig.log.facts.lastOfEach = taskIds => {
    reads.push(...taskIds);
    return last(taskIds);
  };
  const page = await list(await rig.another());
  assert.deepEqual([idsOf(page), page.totalSize], [[only], 1]);
  assert.deepEqual([...new Set(reads)], []);
  assert.deepEqual(idsOf(await list(rig)), [only]);
  assert.deepEqual([...new Set(reads)], [only]);
});

test('an appended but unprocessed message is not listed as a task, and the index keeps it', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  const appended = Promise.withResolvers<string>();
  const go = Promise.withResolvers<void>();
  const create = rig.log.taskLists.create.bind(rig.log.taskLists);
  rig.log.taskLists.create = async (key, value) => {
    const revision = await create(key, value);
    appended.resolve(key.slice(key.lastIndexOf('.') + 1));
    await go.promise;
    return revision;
  };
  stopIndex(rig);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const append = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = async (...args) => {
    await go.promise;
    return append(...args);
  };
  const sent = call(rig, 'send', sendParams(userMessage('x')));
  const id = await appended.promise;
  const none = await list(other);
  assert.deepEqual([none.tasks, none.totalSize], [[], 0]);
  go.resolve();
  await sent;
  assert.deepEqual(idsOf(await list(other)), [id]);
});

test('filters apply: context, state, time of the status, and all combined', async t => {
  const rig = await openRig(t);
  const ids = await fill(rig, 6, n => (n < 4 ? 'one' : 'two'));
  const { tasks } = await list(rig);
  const third = tasks.find(task => task.id === ids[2])!.status.timestamp!;
  const cases: [params: Record<string, unknown>, expected: number[]][] = [
    [{ contextId: 'one' }, [3, 2, 1, 0]],
    [{ contextId: 'none' }, []],
    [{ status: 'TASK_STATE_INPUT_REQUIRED' }, [3, 0]],
    [{ status: 'TASK_STATE_UNSPECIFIED', contextId: '' }, [5, 4, 3, 2, 1, 0]],
    [{ status: 'TASK_STATE_REJECTED' }, []],
    [{ statusTimestampAfter: third }, [5, 4, 3, 2]],
    [{ statusTimestampAfter: third.replace('Z', '001Z') }, [5, 4, 3]],
    [{ statusTimestampAfter: third.replace('Z', '+00:00'), contextId: 'one', status: 'TASK_STATE_COMPLETED' }, [2]],
  ];
  for (const [params, expected] of cases) {
    const page = await list(rig, params);
    assert.deepEqual([idsOf(page), page.totalSize], [expected.map(n => ids[n]), expected.length], JSON.stringify(params));
    const query = new URLSearchParams(params as Record<string, string>);
    assert.deepEqual((await rest(rig, `GET /tasks?${query}`)).body, page);
  }
});

test('pages of any size have each task once, an empty token on the last one, and a constant total', async t => {
  const rig = await openRig(t);
  const ids = await fill(rig, 7);
  for (const pageSize of [1, 2, 3, 7, 100]) {
    const seen: string[] = [];
    for (let token = '', pages = 1; ; pages += 1) {
      const page = await list(rig, { pageSize, pageToken: token });
      assert.deepEqual([page.pageSize, page.totalSize], [pageSize, 7]);
      assert(page.tasks.length <= pageSize);
      seen.push(...idsOf(page));
      token = page.nextPageToken;
      if (token === '') {
        assert.equal(pages, Math.ceil(7 / pageSize));
        break;
      }
    }
    assert.deepEqual(seen, ids.toReversed());
  }
});

test('a task created or changed between two pages does not shift an unseen one out of the list', async t => {
  const rig = await openRig(t);
  const ids = await fill(rig, 4);
  const first = await list(rig, { pageSize: 2 });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  await call(rig, 'send', sendParams(userMessage('new')));
  await call(rig, 'send', sendParams(userMessage('y', { taskId: ids[3]! })));
  const second = await list(rig, { pageSize: 2, pageToken: first.nextPageToken });
  assert.deepEqual([...idsOf(first), ...idsOf(second)], ids.toReversed());
});

test('includeArtifacts and historyLength apply', async t => {
  const rig = await openRig(t);
  await fill(rig, 2);
  const { tasks } = await list(rig, { includeArtifacts: true, historyLength: 0 });
  assert.deepEqual(
    tasks.map(({ artifacts, history }) => [artifacts?.map(artifact => artifact.parts), history]),
    [
      [[[{ text: 'text' }]], undefined],
      [[], undefined],
    ],
  );
  const byRest = await rest(rig, 'GET /tasks?includeArtifacts=true&historyLength=0');
  assert.deepEqual(byRest.body.tasks, tasks);
});

test('a page ends before a task with which it would exceed the size that gRPC clients accept, and the next one continues', async t => {
  const rig = await openRig(t);
  const ids = await fill(rig, 3);
  const answer = async (pieces: number) => {
    rig.relay.onClient = async taskId => {
      await rig.relay.openArtifact(taskId, 'large');
      for (let sent = 0; sent < pieces; sent += 1) await rig.relay.text(taskId, 'large', 'x'.repeat(512 * 1024));
      await rig.relay.end(taskId);
    };
    ids.push((await call(rig, 'send', sendParams(userMessage('large')))).result.task.id);
    await sleep(2);
  };
  // A single task may be larger.
  for (const pieces of [9, 4, 3, 3]) await answer(pieces);
  const pages: string[][] = [];
  for (let token = ''; pages.length === 0 || token !== ''; ) {
    const page = await list(rig, { includeArtifacts: true, pageToken: token });
    if (page.tasks.length > 1) assert.ok(JSON.stringify(page).length < 4 * 1024 * 1024);
    pages.push(idsOf(page));
    token = page.nextPageToken;
  }
  assert.deepEqual(pages, [[ids[6], ids[5]], [ids[4]], [ids[3]], [ids[2], ids[1], ids[0]]]);
});

test('one page reads a bounded number of removed tasks, and later pages find the others', async t => {
  const rig = await openRig(t);
  const [only] = await fill(rig, 1);
  const gone = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_COMPLETED', startSeq: 1, generation: 3 } as const;
  for (let n = 0; n < 250; n += 1) await putTask(rig.log, `gone-${n}`, { ...gone, at: Date.now() + n });
  let reads = 0;
  const last = rig.log.facts.lastOfEach.bind(rig.log.facts);
  rig.log.facts.lastOfEach = taskIds => {
    reads += taskIds.length;
    return last(taskIds);
  };
  const found: string[] = [];
  for (let token = '', pages = 1; ; pages += 1) {
    reads = 0;
    const page = await list(rig, { pageToken: token });
    assert.ok(reads < 110, `${reads} reads for a page`);
    found.push(...idsOf(page));
    token = page.nextPageToken;
    if (token === '') break;
    assert.ok(pages < 5);
  }
  assert.deepEqual(found, [only]);
});

test('a server lists only the tasks of its role', async t => {
  const rig = await openRig(t);
  const agent = await rig.another({ role: 'agent.argocd' });
  const [id] = await fill(rig, 1);
  assert.deepEqual([idsOf(await list(rig)), idsOf(await list(agent))], [[id], []]);
});

test('limits apply exactly at their edges, and invalid members are named', async t => {
  const rig = await openRig(t);
  assert.equal((await list(rig, { pageSize: 100 })).pageSize, 100);
  const refused = [
    { pageSize: 0 },
    { pageSize: 101 },
    { pageSize: '5' },
    { status: 'working' },
    { statusTimestampAfter: 'yesterday' },
    { statusTimestampAfter: '2026-13-01T00:00:00Z' },
    { historyLength: -1 },
    { pageToken: 'x' },
    { pageToken: 'x'.repeat(513) },
    { includeArtifacts: 'yes' },
    { contextId: 'c'.repeat(257) },
  ];
  for (const params of refused) {
    const { error } = await rpc(rig, params);
    assert.equal(error?.code, -32602, JSON.stringify(params));
    assert.match(error!.message, new RegExp(`params\\.${Object.keys(params)[0]}`));
  }
  assert.equal((await rpc(rig, {}, '0.3')).error?.code, -32601, '0.3 has no such method');
});

test('removed tasks are skipped', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 0 } });
  const ids = (await fill(rig, 5)).slice(2);
  const other = await rig.another();
  rig.log.expire('facts', ids[1]!, 1_000);
  const page = await list(other, { pageSize: 4 });
  const rest = await list(other, { pageSize: 4, pageToken: page.nextPageToken });
  assert.deepEqual([...idsOf(page), ...idsOf(rest)].slice(0, 2), [ids[2], ids[0]]);
  assert.equal(page.totalSize, 4);
});

test('an unreadable index is UNAVAILABLE until it can be read', async t => {
  const rig = await openRig(t, { limits: { freshMsMax: 30 } });
  const match = rig.log.taskLists.match.bind(rig.log.taskLists);
  rig.log.taskLists.match = async () => {
    throw new LogUnavailable('no leader');
  };
  const { status, headers, body } = await rest(rig, 'GET /tasks');
  assert.deepEqual([status, headers.get('retry-after'), body.error.status], [503, '1', 'UNAVAILABLE']);
  rig.log.taskLists.match = match;
  for (;;) {
    const answer = await rest(rig, 'GET /tasks');
    if (answer.status === 200) break;
    assert.equal(answer.status, 503);
  }
});

test('a list by text ignores case, and finds only questions and answers of its caller', async t => {
  const rig = await openRig(t);
  const ids: string[] = [];
  for (const question of ['Where is the STATION?', 'a joke', 'the next station']) {
    rig.relay.onClient = taskId => rig.relay.answer(taskId, [question === 'a joke' ? 'a Platform jokes' : 'there']);
    ids.push((await call(rig, 'send', sendParams(userMessage(question)))).result.task.id);
    await sleep(2);
  }
  const [first, joke, next] = ids;
  const found = await list(rig, { text: 'station' });
  assert.deepEqual([idsOf(found), found.totalSize], [[next, first], undefined]);
  assert.deepEqual(idsOf(await list(rig, { text: 'PLATFORM' })), [joke]);
  assert.deepEqual(idsOf(await list(rig, { text: 'nowhere' })), []);
  assert.equal((await list(rig, { text: '' })).totalSize, 3, 'as without it');
  assert.deepEqual((await rest(rig, 'GET /tasks?text=joke')).body, await list(rig, { text: 'joke' }));
  const { error } = await rpc(rig, { text: 'x'.repeat(257) });
  assert.equal(error?.code, -32602);
  const firstPage = await list(rig, { text: 'station', pageSize: 1 });
  assert.deepEqual(idsOf(firstPage), [next]);
  assert.deepEqual(idsOf(await list(rig, { text: 'station', pageSize: 1, pageToken: firstPage.nextPageToken })), [first]);
});

const STARTED = Date.parse('2026-01-01T00:00:00Z');
const START_HEX = STARTED.toString(16).padStart(12, '0');
/** An id that was made at STARTED. */
const idAt = (n: number) => `${START_HEX.slice(0, 8)}-${START_HEX.slice(8)}-7000-8000-${`${n}`.padStart(12, '0')}`;

/** The row of an ended task that took `ms`. The log has no record of the task. */
async function putRow(rig: Rig, taskId: string, ms: number, listed?: ListedTask): Promise<void> {
  const row = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_COMPLETED', startSeq: 1, generation: 3 } as const;
  await putTask(rig.log, taskId, { ...row, at: STARTED + ms, ...(listed && { listed }) });
}

/** Counts the records of tasks that a process reads. */
function countRecords({ log }: Rig): () => number {
  let reads = 0;
  const last = log.facts.lastOfEach.bind(log.facts);
  log.facts.lastOfEach = taskIds => {
    reads += taskIds.length;
    return last(taskIds);
  };
  return () => reads;
}

test('a list by agent finds the tasks that it worked in and the tasks that name it, on any process', async t => {
  const rig = await openRig(t);
  const ids: string[] = [];
  for (const [sourceAgent, named] of [
    ['guide', undefined],
    ['files', undefined],
    ['files', 'guide'],
  ]) {
    rig.relay.onClient = async taskId => {
      await rig.relay.publish(taskId, { kind: 'open', lane: 'l', artifact: { name: 'answer', metadata: { sourceAgent } } });
      await rig.relay.text(taskId, 'l', 'a joke');
      await rig.relay.end(taskId);
    };
    const message = userMessage('x', named === undefined ? {} : { metadata: { agent: named } });
    ids.push((await call(rig, 'send', sendParams(message))).result.task.id);
    await sleep(2);
  }
  const [guide, files, both] = ids;
  for (const process of [rig, await rig.another()]) {
    const found = await list(process, { agent: 'guide' });
    assert.deepEqual([idsOf(found), found.totalSize, found.nextPageToken], [[both, guide], undefined, '']);
    assert.deepEqual((await rest(process, 'GET /tasks?agent=guide')).body, found);
    assert.deepEqual(idsOf(await list(process, { agent: 'files', text: 'JOKE' })), [both, files]);
    assert.deepEqual(idsOf(await list(process, { agent: 'files', text: 'nowhere' })), []);
    assert.deepEqual(idsOf(await list(process, { agent: 'gui' })), [], 'a part of a name');
    assert.equal((await list(process, { agent: '' })).totalSize, 3, 'as without it');
    const first = await list(process, { agent: 'guide', pageSize: 1 });
    const second = await list(process, { agent: 'guide', pageSize: 1, pageToken: first.nextPageToken });
    assert.deepEqual([...idsOf(first), ...idsOf(second)], [both, guide]);
  }
});

test('a list by agent reads no task if its row names the agents, and only a bounded number of other tasks', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'open', lane: 'l', artifact: { name: 'a', metadata: { sourceAgent: 'guide' } } });
    await rig.relay.text(taskId, 'l', 'x');
    await rig.relay.end(taskId);
  };
  const { id } = (await call(rig, 'send', sendParams(userMessage('x')))).result.task;
  const { log } = rig;
  const entry = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_COMPLETED', startSeq: 1, generation: 9 } as const;
  await putTask(log, id, { ...entry, at: STARTED - 1, listed: { messages: 1, answer: 'x', agents: ['guide'] } });
  for (let n = 0; n < 250; n += 1) await putRow(rig, idAt(n), n, { messages: 0, agents: ['files'] });
  const process = await rig.another();
  const reads = countRecords(process);
  const found = await list(process, { agent: 'guide' });
  assert.deepEqual([idsOf(found), found.nextPageToken, reads()], [[id], '', 0]);
  // Rows of an earlier version have words and no agents.
  await putTask(log, id, { ...entry, at: STARTED - 1, listed: { messages: 1, answer: 'x' } });
  for (let n = 0; n < 250; n += 1) await putRow(rig, idAt(n), n, { messages: 0, answer: 'words' });
  assert.deepEqual([idsOf(await list(process, { text: 'nowhere', agent: 'guide' })), reads()], [[], 0]);
  const ids: string[] = [];
  for (let token = '', pages = 1; ; pages += 1) {
    const before = reads();
    const page = await list(process, { agent: 'guide', pageToken: token });
    assert.ok(reads() - before < 110, `${reads() - before} reads for a page`);
    ids.push(...idsOf(page));
    token = page.nextPageToken;
    if (token === '') break;
    assert.ok(pages < 5);
  }
  assert.deepEqual(ids, [id]);
});

test('a list by duration finds ended tasks that took at least that long, without reading them', async t => {
  const rig = await openRig(t);
  for (const [n, ms] of [999, 1_000, 1_001].entries()) await putRow(rig, idAt(n), ms, { messages: 0 });
  await putRow(rig, 'chosen-by-a-client', 5_000, { messages: 0 });
  const process = await rig.another();
  const reads = countRecords(process);
  const found = await list(process, { minDurationMs: 1_000 });
  assert.deepEqual([idsOf(found), found.totalSize], [[idAt(2), idAt(1)], undefined]);
  assert.deepEqual((await rest(process, 'GET /tasks?minDurationMs=1000')).body, found);
  assert.deepEqual((await rest(process, 'GET /tasks?min_duration_ms=1000')).body, found);
  assert.deepEqual(idsOf(await list(process, { minDurationMs: 1_001 })), [idAt(2)]);
  assert.deepEqual(idsOf(await list(process, { minDurationMs: 1_002 })), []);
  assert.equal((await list(process, { minDurationMs: 0 })).totalSize, 4, 'as without it');
  assert.equal(reads(), 0);
  for (const params of [
    { minDurationMs: -1 },
    { minDurationMs: 31_536_000_001 },
    { minDurationMs: 'x' },
    { agent: 'a'.repeat(65) },
  ])
    for (const refused of [
      (await rpc(process, params)).error!.message,
      (await rest(process, `GET /tasks?${new URLSearchParams(params as Record<string, string>)}`)).body.error.message,
    ])
      assert.match(refused, new RegExp(`params\\.${Object.keys(params)[0]}`));
});

test('the duration grows while a task is in progress, and does not grow while it waits for input', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const { id } = (await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }))).result.task;
  const ageMs = () => Date.now() - timeOfTaskId(id)!;
  const process = await rig.another();
  const found = async (minDurationMs: number) => idsOf(await list(process, { minDurationMs }));
  assert.deepEqual(await found(60_000), []);
  await until(async () => (await found(200)).includes(id));
  await rig.relay.end(id, 'INPUT_REQUIRED');
  const longerMs = ageMs() + 1;
  await until(() => ageMs() > longerMs);
  assert.deepEqual(await found(longerMs), []);
});
