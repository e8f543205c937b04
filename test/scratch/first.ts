import { openJetStreamLog } from '@hopline/log-jetstream';
import { answer, startForeignAgent } from '../agents/foreign-agent.ts';
import { Cluster } from '../cluster/cluster.ts';
import { collect, frames, shapeOf } from '../cluster/a2a-stream.ts';
const f = await startForeignAgent({ dialect: '0.3', script: answer(['a', 'b']) });
const c = await Cluster.start({ agents: [{ name: 'echo', adapter: 'a2a', url: f.url }] });
for (let i = 0; i < 3; i++) {
  const t0 = performance.now();
  for await (const fr of frames(c.url, { text: 'x' })) console.log((performance.now() - t0).toFixed(0), shapeOf(fr));
}
for (const n of [1, 10, 50, 100]) { const t0 = performance.now(); await Promise.all(Array.from({ length: n }, () => collect(c.url, { text: 'x' }))); console.log(n, 'parallel', (performance.now() - t0).toFixed(0), 'ms'); }
await c[Symbol.asyncDispose](); await f.close();
