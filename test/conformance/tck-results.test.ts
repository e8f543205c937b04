import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCENARIOS, scenarioOf } from './tck-agent.ts';
import { bindingOf, figures, judge, type Known, type Result, readJunit } from './tck-results.ts';

const JUNIT = `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">
<testcase classname="tests.c.test_a.TestX" name="test_one[jsonrpc]" file="tests/c/test_a.py" line="1" time="0.1" />
<testcase classname="tests.c.test_a" name="test_two[A-1-grpc]" file="tests/c/test_a.py" line="2" time="0.1"><skipped type="pytest.skip" message="not &lt;there&gt;">x</skipped></testcase>
<testcase classname="tests.c.test_a.TestX" name="test_three" file="tests/c/test_a.py" line="3" time="0.1"><skipped type="pytest.xfail" message="a &quot;b&quot;" /></testcase>
<testcase classname="tests.c.test_a.TestX" name="test_four" file="tests/c/test_a.py" line="4" time="0.1"><failure message="no&#10;more">x</failure></testcase>
</testsuite></testsuites>`;

test("a JUnit file is read with pytest's ids", () => {
  assert.deepEqual(readJunit(JUNIT), [
    { test: 'tests/c/test_a.py::TestX::test_one[jsonrpc]', outcome: 'passed', reason: '' },
    { test: 'tests/c/test_a.py::test_two[A-1-grpc]', outcome: 'skipped', reason: 'not <there>' },
    { test: 'tests/c/test_a.py::TestX::test_three', outcome: 'unmet', reason: 'a "b"' },
    { test: 'tests/c/test_a.py::TestX::test_four', outcome: 'failed', reason: 'no\nmore' },
  ]);
});

test('the binding of a test is read from its parameter, folder, class or name', () => {
  const cases = {
    jsonrpc: [
      'a.py::t[jsonrpc]',
      'a.py::t[X-1-jsonrpc]',
      'c/jsonrpc/a.py::t[GetTask]',
      'a.py::TestJsonRpcFormat::t',
      'a.py::t_jsonrpc',
    ],
    http_json: ['a.py::t[http_json]', 'c/http_json/a.py::t', 'a.py::TestRestFormat::t', 'a.py::t_rest', 'a.py::t_http_json'],
    grpc: ['a.py::t[X-1-grpc]', 'c/grpc/a.py::t', 'a.py::TestGrpcService::t'],
    card: ['c/agent_card/a.py::t'],
    any: ['c/test_data_model.py::TestTimestampFormat::t'],
  };
  for (const [binding, ids] of Object.entries(cases)) for (const id of ids) assert.equal(bindingOf(id), binding, id);
});

const result = (id: string, outcome: Result['outcome']): Result => ({
  test: id,
  binding: 'jsonrpc',
  level: 'must',
  outcome,
  reason: '',
});

test('a failed or skipped test without an explanation is unexpected; an unused explanation is stale', () => {
  const because = (tests: string): Known => ({ tests, why: 'kit', reason: 'r' });
  const results = [result('a', 'passed'), result('b1', 'failed'), result('b2', 'skipped'), result('c', 'unmet')];
  const known = [because('b'), because('a'), because('zzz'), because('other')];
  const verdict = judge(results, known, [...results, result('other', 'skipped')]);
  assert.deepEqual(verdict.unexpected, [result('c', 'unmet')]);
  assert.deepEqual(
    verdict.explained.map(({ known, results: some }) => [known.tests, some.map(one => one.test)]),
    [['b', ['b1', 'b2']]],
  );
  assert.deepEqual(
    verdict.stale.map(known => known.tests),
    ['a', 'zzz'],
  );
  assert.match(figures(results), /\| jsonrpc \| MUST \| 4 \| 1 \| 1 \| 1 \| 1 \|$/);
});

test('the longest prefix of a message id selects the scenario, and an id without one completes', () => {
  assert.equal(scenarioOf('tck-artifact-file-url-1a2b-jsonrpc'), SCENARIOS['tck-artifact-file-url']);
  assert.equal(scenarioOf('tck-artifact-file-1a2b'), SCENARIOS['tck-artifact-file']);
  assert.deepEqual(scenarioOf('anything'), [{ complete: true, text: 'Hello from TCK' }]);
});
