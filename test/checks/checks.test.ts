import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../kit/until.ts';
import { commandProgram, nodeOptionsOf, programOf } from '../support/cluster/service-process.ts';
import { Coverage } from './coverage.ts';
import { FileTimes } from './file-times.ts';
import { LONG_FILES } from './long-files.ts';
import { parseArguments } from './parse-arguments.ts';
import { ProcessorSlots } from './processor-slots.ts';
import { runStaticChecks } from './static-checks.ts';
import { findQuickFiles, findTestFiles } from './test-files.ts';
import { TestProcess } from './test-process.ts';
import { add, closingLine } from './totals.ts';
import { batchesOf, batchOf } from './unit-batches.ts';

function folderWith(t: TestContext, files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content, { mode: 0o755 });
  }
  return root;
}

test('the closing line counts skipped tests only when there are any', () => {
  const totals = add({ passed: 3, failed: 0, skipped: 0 }, { passed: 4, failed: 1, skipped: 0 });
  assert.equal(closingLine(totals), '7 passed, 1 failed');
  assert.equal(closingLine({ ...totals, skipped: 2 }), '7 passed, 1 failed, 2 skipped');
});

test('tests are found only in packages, services, infra and test', t => {
  const paths = [
    'packages/a/src/a.test.ts',
    'services/b/src/b.test.ts',
    'infra/c.test.ts',
    'infra/c.test.mjs',
    'test/repo/f.test.ts',
    'test/e2e/d.test.ts',
    'test/kubernetes/cluster.test.ts',
  ];
  const others = ['packages/a/node_modules/x/x.test.ts', 'packages/a/src/a.ts', 'docs/e.test.ts'];
  const root = folderWith(t, Object.fromEntries([...paths, ...others].map(path => [path, ''])));
  const found = findTestFiles(root, [], root);
  assert.deepEqual(found.unit.map(path => relative(root, path)).sort(), paths.slice(0, 5).sort());
  assert.deepEqual(found.withBroker, [join(root, 'test/e2e/d.test.ts')]);
  assert.deepEqual(found.onCluster, [join(root, 'test/kubernetes/cluster.test.ts')]);
});

test('paths select files and folders relative to the working directory; a path that selects nothing is an error', t => {
  const root = folderWith(t, { 'packages/a/src/a.test.ts': '', 'packages/ab/src/b.test.ts': '', 'test/d.test.ts': '' });
  assert.deepEqual(findTestFiles(root, ['packages/a'], root), {
    unit: [join(root, 'packages/a/src/a.test.ts')],
    withBroker: [],
    onCluster: [],
  });
  assert.deepEqual(findTestFiles(root, ['d.test.ts'], join(root, 'test')), {
    unit: [],
    withBroker: [join(root, 'test/d.test.ts')],
    onCluster: [],
  });
  assert.throws(() => findTestFiles(root, ['test', 'nowhere'], root), /no test files in nowhere/);
});

test('a failed static check counts as one failure and prints its output; a missing tool is a failure', async t => {
  const root = folderWith(t, {
    'node_modules/.bin/good': '#!/bin/sh\necho quiet\n',
    'node_modules/.bin/bad': '#!/bin/sh\necho found fault; exit 1\n',
  });
  const lines: string[] = [];
  const checks = ['good', 'bad', 'missing'].map(name => ({ name, command: [name] }));
  assert.deepEqual(await runStaticChecks(root, line => lines.push(line), checks), { passed: 1, failed: 2, skipped: 0 });
  const output = lines.join('\n');
  assert.match(output, /^✔ good .*\n✖ bad .*\nfound fault\n✖ missing .*\n.*ENOENT/);
  assert.doesNotMatch(output, /quiet/);
});

test('passed, failed and skipped tests are counted over files; a file that does not load is one failure', t => {
  const inProcess = (name: string) => `import { test } from 'node:test';
    test('${name}', t => t.diagnostic('pid ' + process.pid)); `;
  const root = folderWith(t, {
    'packages/p/c.test.mjs': inProcess('four'),
    'packages/p/d.test.mjs': `import { after, before } from 'node:test'; before(t => console.log('before d')); after(() => { throw new Error('z'); });
      ${inProcess('five')} test('six', () => { throw new Error('y'); });`,
    'packages/p/e.test.mjs': `throw new Error('does not load');`,
    'packages/p/f.test.mjs': `import { beforeEach } from 'node:test'; beforeEach(t => t.diagnostic('before each of f')); ${inProcess('seven')}`,
    'one/a.test.mjs': `import { test } from 'node:test'; test('one', () => {}); test('two', () => { throw new Error('x'); }); test('three', { skip: true }, () => {}); // memoryUsage: in a process of its own`,
    'two/b.test.mjs': `throw new Error('does not load'); // memoryUsage`,
    'run.mjs': `import { runTestFiles } from ${JSON.stringify(new URL('test-run.ts', import.meta.url).href)};
      import { FileTimes } from ${JSON.stringify(new URL('file-times.ts', import.meta.url).href)};
      import { TestReport } from ${JSON.stringify(new URL('test-report.ts', import.meta.url).href)};
      const root = import.meta.dirname;
      const files = ['one/a.test.mjs', 'two/b.test.mjs', ...['c', 'd', 'e', 'f'].map(name => 'packages/p/' + name + '.test.mjs')].map(name => root + '/' + name);
      const times = new FileTimes();
      const report = new TestReport(process.stdout);
      const totals = await runTestFiles({ root, files, report, signal: new AbortController().signal, times });
      await report.end();
      process.stderr.write(times.slowest(20).join('\\n') + ' totals ' + JSON.stringify(totals));`,
  });
  // With this variable of the outer run, a nested test run executes nothing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const output = execFileSync('sh', ['-c', `"${process.execPath}" run.mjs 2>&1`], { cwd: root, env, encoding: 'utf8' });
  assert.match(output, /✔ one/);
  assert.match(output, /failing tests:[\s\S]*✖ two/, 'the failures are printed again at the end');
  for (const name of ['one/a', 'two/b'])
    assert.match(output, new RegExp(`^ +\\d+\\.\\d s .*  ${name}\\.test\\.mjs`, 'm'), 'the time of a file');
  assert.match(output, /test at packages\/p\/d\.test\.mjs:\d+:\d+\n✖ six/, 'a failure names its file');
  const pids = [...output.matchAll(/pid (\d+)/g)].map(([, pid]) => pid);
  assert.equal(pids.length, 3);
  assert.equal(new Set(pids).size, 1, 'the files of a package run in one process');
  assert.equal([...output.matchAll(/before each of f/g)].length, 1, 'the hooks of a file see only its tests');
  assert.match(output, /✖ packages\/p\/e\.test\.mjs/, 'a file that does not load, beside others');
  assert.match(output, /^ +\d+\.\d s .* {2}packages\/p \(4 files\)/m);
  // two, b.test.mjs, six, the hook of d.test.mjs, and e.test.mjs.
  assert.match(output, /totals \{"passed":4,"failed":5,"skipped":1\}$/);
});

test('a process that never ends is killed when its time is over, and counts as a failure', t => {
  const root = folderWith(t, {
    'a.test.mjs': `process.on('SIGTERM', () => {}); setInterval(() => {}, 1_000);`,
    'run.mjs': `import { runTestFiles } from ${JSON.stringify(new URL('test-run.ts', import.meta.url).href)};
      import { FileTimes } from ${JSON.stringify(new URL('file-times.ts', import.meta.url).href)};
      import { TestReport } from ${JSON.stringify(new URL('test-report.ts', import.meta.url).href)};
      const report = new TestReport(process.stdout);
      const options = { files: [import.meta.dirname + '/a.test.mjs'], fileMsMax: 1_000, times: new FileTimes() };
      const totals = await runTestFiles({ ...options, root: import.meta.dirname, report, signal: new AbortController().signal });
      await report.end();
      console.log(JSON.stringify(totals));`,
  });
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const output = execFileSync(process.execPath, ['run.mjs'], { cwd: root, env, encoding: 'utf8' });
  assert.match(output, /a\.test\.mjs was killed with its programs, because it ran for 1 s/);
  assert.equal(output.trim().split('\n').at(-1), '{"passed":0,"failed":1,"skipped":0}');
});

test('the programs of a test process are killed with it', async t => {
  const root = folderWith(t, {
    'a.mjs': `import { spawn } from 'node:child_process';
      process.on('SIGTERM', () => {});
      const { pid } = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1_000)'], { stdio: 'ignore' });
      console.log(pid);
      setInterval(() => {}, 1_000);`,
  });
  const testProcess = new TestProcess();
  const { env, execArgv } = testProcess.runOptions;
  const child = spawn(process.execPath, [...execArgv, join(root, 'a.mjs')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const [pid] = await once(child.stdout, 'data');
  testProcess.kill();
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  // Signal 0 sends nothing. A container without an init process keeps the entry of a process that has ended.
  await until(() => {
    try {
      process.kill(Number(pid), 0);
      return existsSync('/proc/self/stat') && /\) Z /.test(readFileSync(`/proc/${Number(pid)}/stat`, 'utf8'));
    } catch {
      return true;
    }
  });
  testProcess.cpuMs();
});

test('a few files always run at once, and more while processors are idle, in the order of the list, up to a bound', async () => {
  let idle = 0;
  let looks = 0;
  const idleProcessors = () => {
    looks += 1;
    return idle;
  };
  const slots = new ProcessorSlots({ always: 2, max: 4, lookMs: 1, idleProcessors });
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const runs = [1, 2, 3, 4, 5, 6].map(file =>
    slots.run(() => {
      started.push(file);
      return new Promise<void>(resolve => ends.push(resolve));
    }),
  );
  const looked = (count: number) => until(() => looks >= count);
  await looked(5);
  assert.deepEqual(started, [1, 2], 'no processor is idle');
  idle = 1;
  await looked(looks + 10);
  assert.deepEqual(started, [1, 2, 3, 4], 'no more than the bound');
  idle = 0;
  ends[0]!();
  await runs[0];
  await looked(looks + 5);
  assert.deepEqual(started, [1, 2, 3, 4], 'the processors are busy with the three that run');
  for (const end of ends.splice(0)) end();
  await until(() => started.length === 6);
  assert.deepEqual(started, [1, 2, 3, 4, 5, 6]);
  for (const end of ends) end();
  await Promise.all(runs);
});

/** Joined, because this file shares no cluster. */
const SHARES = ['Cluster', 'shared({ agents });'].join('.');

test('the tests of a package or folder share a process, except for long files and files that affect their process or count work', t => {
  const plain = `import { test } from 'node:test';\n`;
  const root = folderWith(t, {
    'packages/p/a.test.ts': plain,
    'packages/p/variable.test.ts': `${plain}process.env.A = 'b';`,
    'packages/p/traces.test.ts': `${plain}trace.setGlobalTracerProvider(provider);`,
    'packages/p/cost.test.ts': `${plain}import { blocksRun } from '../../test/support/counted-work.ts';`,
    'services/s/b.test.ts': plain,
    'infra/c.test.ts': plain,
    'test/e2e/d.test.ts': plain,
    'test/e2e/auth.test.ts': plain,
    'test/e2e/shared.test.ts': `${plain}${SHARES}`,
    'test/e2e/hops.test.ts': `${plain}${SHARES}`,
  });
  const { unit, withBroker } = findTestFiles(root, [], root);
  const batches = [...unit, ...withBroker].map(file => batchOf(root, file));
  assert.deepEqual(batches.toSorted(), [
    'counts of work',
    'infra',
    'packages/p',
    'packages/p/traces.test.ts',
    'packages/p/variable.test.ts',
    'services/s',
    'test/e2e',
    'test/e2e on one cluster',
    'test/e2e/auth.test.ts',
    'test/e2e/hops.test.ts on one cluster',
  ]);
});

test('files that share a cluster start first, twelve in a process that ends the cluster after the last of them', t => {
  const names = Array.from({ length: 13 }, (_, index) => `test/e2e/${index}.test.ts`);
  const files = { 'test/e2e/auth.test.ts': '', ...Object.fromEntries(names.map(name => [name, SHARES])) };
  const root = folderWith(t, files);
  using batches = batchesOf(
    root,
    Object.keys(files).map(name => join(root, name)),
  );
  assert.deepEqual(batches.paths.map(batches.nameOf), [
    'test/e2e on one cluster (1 of 2)',
    'test/e2e on one cluster (2 of 2)',
    'test/e2e/auth.test.ts',
  ]);
  for (const path of batches.paths.slice(0, 2)) assert.match(readFileSync(path, 'utf8'), /^after\(stopSharedClusters\);$/m);
});

test('neighboring packages with few files share a process, as do folders below test; files with and files without a broker do not', t => {
  const files = ['packages/a', 'packages/b', 'services/c', 'test/kit', 'test/bench', 'test/e2e'].flatMap(folder =>
    Array.from({ length: folder === 'packages/b' ? 9 : 2 }, (_, index) => `${folder}/${index}.test.ts`),
  );
  const own = 'packages/b/variable.test.ts';
  const root = folderWith(t, { ...Object.fromEntries(files.map(name => [name, ''])), [own]: 'delete process.env.A;' });
  using batches = batchesOf(
    root,
    [...files, own].map(name => join(root, name)),
  );
  assert.deepEqual(batches.paths.map(batches.nameOf), [
    'packages/a to packages/b (11 files)',
    'services/c to test/kit (4 files)',
    'test/bench to test/e2e (4 files)',
    own,
  ]);
});

test('the unit tests of a large package run in several processes, and each file runs once', t => {
  const names = Array.from({ length: 26 }, (_, index) => `packages/p/${index + 10}.test.ts`);
  const root = folderWith(t, Object.fromEntries(names.map(name => [name, ''])));
  using batches = batchesOf(
    root,
    names.map(name => join(root, name)),
  );
  assert.deepEqual(batches.paths.map(batches.nameOf), ['packages/p (1 of 3)', 'packages/p (2 of 3)', 'packages/p (3 of 3)']);
  const imported = batches.paths.flatMap(path => [...readFileSync(path, 'utf8').matchAll(/^suite\("(.*?)"/gm)]);
  assert.deepEqual(
    imported.map(([, name]) => name),
    names,
  );
});

test('services and commands run from the bundle that a test run has made, and an agent’s module gets that bundle’s copy of the kit', t => {
  const before = process.env.TEST_SERVICES;
  t.after(() => {
    if (before === undefined) delete process.env.TEST_SERVICES;
    else process.env.TEST_SERVICES = before;
  });
  process.env.TEST_SERVICES = '/bundle';
  assert.equal(programOf('relay'), '/bundle/relay.mjs');
  const options = (entry: object) => decodeURIComponent(nodeOptionsOf({ HOPLINE_AGENT: JSON.stringify(entry) }).join(' '));
  assert.equal(options({ adapter: 'a2a' }), '');
  assert.match(
    options({ adapter: 'module' }),
    /^--import data:[\s\S]*'@hopline\/agent' \? \{ url: 'file:\/\/\/bundle\/agent\.mjs'/,
  );
  assert.match(options({ adapter: 'langgraph', module: 'graph.ts' }), /bundle/);
  assert.equal(commandProgram(['ask', 'one']), '/bundle/cli.mjs');
  assert.match(commandProgram(['agent', 'one.ts']), /\/packages\/cli\/src\/main\.ts$/);
  delete process.env.TEST_SERVICES;
  assert.match(programOf('relay'), /\/services\/relay\/src\/main\.ts$/);
  assert.equal(options({ adapter: 'module' }), '');
});

test('the slowest files are listed first, up to the requested number', () => {
  const times = new FileTimes();
  times.add('test/a.test.ts', 1_234);
  times.add('test/b.test.ts', 61_000, 8_020);
  times.add('test/c.test.ts', 20, 980);
  assert.deepEqual(times.slowest(2), ['   61.0 s      8.0 s of CPU  test/b.test.ts', '    1.2 s  test/a.test.ts']);
  assert.equal(times.totalCpuMs(), 9_000);
});

test('the CPU time of a test process includes the programs that it waited for', {
  skip: !existsSync('/proc/self/stat') && 'not Linux',
}, async t => {
  const busy = `const start = process.cpuUsage(); while (process.cpuUsage(start).user < 500_000);`;
  const root = folderWith(t, {
    'busy.mjs': busy,
    'a.mjs': `import { execFileSync } from 'node:child_process';
        if ('TEST_REPORT_FILE' in process.env) throw new Error('programs would inherit it');
        execFileSync(process.execPath, [import.meta.dirname + '/busy.mjs']);`,
  });
  const child = new TestProcess();
  const { env, execArgv } = child.runOptions;
  execFileSync(process.execPath, [...execArgv, join(root, 'a.mjs')], { env });
  const ms = child.cpuMs();
  assert.ok(ms !== undefined && ms >= 500, `${ms} ms`);
  assert.equal(child.cpuMs(), undefined, 'a process that ended without a report');
});

test('options are --quick and --coverage; --quick selects its tests itself', () => {
  assert.deepEqual(parseArguments(['a', '--coverage', 'b']), { paths: ['a', 'b'], isQuick: false, isCovered: true });
  assert.deepEqual(parseArguments(['--quick']), { paths: [], isQuick: true, isCovered: false });
  assert.throws(() => parseArguments(['--fast']), /unknown option --fast; see `npm test -- --help`/);
  assert.throws(() => parseArguments(['--quick', 'test/repo']), /without paths/);
  assert.throws(() => parseArguments(['--quick', '--coverage']), /without --coverage/);
});

test('every file of the list of long ones exists', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  for (const { path } of LONG_FILES) assert.ok(existsSync(join(root, path)), path);
});

test('the quick tests start no broker, cluster or browser, and install nothing', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const files = findQuickFiles(root).filter(file => !file.startsWith(join(root, 'test/checks')));
  assert.ok(files.length > 300, `only ${files.length} files`);
  for (const file of files) {
    assert.doesNotMatch(
      readFileSync(file, 'utf8'),
      /startNats\(|Cluster\.start\(|chromiumPath\(|'npm', \[?'(?:install|pack)/,
      file,
    );
  }
});

test('a run of all tests does not see the cluster that a developer works with', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const env = { ...process.env, KUBECONFIG: '/somewhere/config' };
  const missing = `import { missingPrograms } from '${root}test/kubernetes/cluster.ts';
    import { leaveClustersAlone } from '${root}test/checks/test-run.ts';
    leaveClustersAlone(process.env); console.log(missingPrograms());`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', missing], { env, encoding: 'utf8' });
  assert.match(output, /^KUBECONFIG is not set, or all tests run, which use no cluster: /);
});

test('a line is covered when any of the runs executed it', () => {
  const coverage = new Coverage();
  const lines = (...counts: number[]) => counts.map((count, index) => ({ line: index + 1, count }));
  coverage.add([{ path: 'a.ts', lines: lines(1, 0, 0, 0) }]);
  coverage.add([{ path: 'a.ts', lines: lines(0, 2, 0, 0) }]);
  assert.equal(coverage.summary(), 'coverage: 50.0 % of 4 lines in 1 files of packages and services');
});

test('every package of the workspace has the version of the root package', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const versionIn = (folder: string) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).version;
  const manifests = globSync(['{packages,services}/*/package.json', 'infra/{local,examples}/package.json', 'test/package.json'], {
    cwd: root,
  });
  assert.ok(manifests.length > 20);
  for (const manifest of manifests) assert.equal(versionIn(dirname(manifest)), versionIn('.'), manifest);
  const python = readFileSync(join(root, 'packages/python/pyproject.toml'), 'utf8');
  assert.equal(/^version = "(.*)"$/m.exec(python)?.[1], versionIn('.'));
});
