import { benchCoalescer } from './bench.ts';
import { coalescerReport } from './report.ts';

for (const line of coalescerReport(benchCoalescer())) console.log(line);
