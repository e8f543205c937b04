import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricsText } from './metrics-text.ts';

const METRICS = `# HELP hopline_tokens_total Tokens in stored chunks
# TYPE hopline_tokens_total counter
hopline_tokens_total{service="relay",agent="argocd"} 1200
hopline_tokens_total{service="relay",agent="a \\"b\\"\\n, c=\\"d\\""} 1.5e1 1700000000000
hopline_shard_lag{service="relay",shard="3"} 7
hopline_shard_lag{service="relay",shard="4"} 2
hopline_open_tasks{service="relay",state="working"} 3
process_memory_usage_bytes 104857600
not a sample
hopline_wrong NaN
`;

test('metrics are read from the text form of Prometheus', () => {
  const metrics = new MetricsText(METRICS);
  assert.deepEqual(
    [metrics.sum('hopline_tokens_total'), metrics.sum('hopline_tokens_total', { agent: 'argocd' })],
    [1_215, 1_200],
  );
  assert.equal(metrics.sum('hopline_tokens_total', { agent: 'a "b"\n, c="d"' }), 15);
  assert.deepEqual(
    [...metrics.by('hopline_shard_lag', 'shard')],
    [
      ['3', 7],
      ['4', 2],
    ],
  );
  assert.deepEqual(
    [metrics.sum('process_memory_usage_bytes'), metrics.sum('hopline_wrong'), metrics.sum('absent')],
    [104_857_600, 0, 0],
  );
});
