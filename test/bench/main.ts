import { writeFileSync } from 'node:fs';
import { fanOut } from './fan-out.ts';
import { idleMemory } from './idle-memory.ts';
import { load } from './load.ts';
import { machine, machineLines } from './measure/machine.ts';
import { tableLines } from './measure/table.ts';
import { judge, type Verdict } from './measure/targets.ts';
import type { Finding, Question } from './question.ts';
import { taskLength } from './task-length.ts';
import { throughput } from './throughput.ts';
import { sdkPeer } from './sdk-peer.ts';

const QUESTIONS: Question[] = [throughput, taskLength, fanOut, idleMemory, load, sdkPeer];

for (const q of process.argv[3] ? QUESTIONS.filter(x => x.name === process.argv[3]) : QUESTIONS) {
  const t = performance.now();
  const findings = await q.ask(process.argv[2] as 'tiny');
  for (const f of findings) {
    console.log(f.title);
    for (const l of tableLines(f.table)) console.log(l);
    for (const n of f.notes ?? []) console.log('  ', n);
    for (const t of f.targets ?? []) console.log(judge(t).line);
  }
  console.log(q.name, performance.now() - t);
}
