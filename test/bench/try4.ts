import { startDirectCluster, startClient } from './bench-cluster.ts';
import { LoadProcess } from './measure/load-process.ts';
import { epochOffsetMs } from './measure/clock.ts';
import { latencyOf, percentile } from './measure/spread.ts';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
const N=Number(process.argv[2]??100), EV=250;
const p=(a:number[])=>{const s=Float64Array.from(a).sort(); return [10,50,90,99].map(x=>percentile(s,x).toFixed(2)).join(' / ');};
const b = await startDirectCluster({ HOPLINE_EVENT_COST_MS: '0', HOPLINE_LOG_LEVEL: 'warn' });
const srv:any = new LoadProcess(new URL('bare-sse/main.ts', import.meta.url)); const bc = startClient();
const url = await srv.call('listen');
for (let k=0;k<3;k++) {
 await bc.call('watch',{url,count:N}); await srv.call('stamp',{count:EV,everyMs:20,chars:256});
 const s = await bc.call('sighted',{count:N*EV}); await bc.call('leave');
 const by=new Map<number,number[]>(); s.sinceSaidMs.forEach((v,i)=>{ const said=Math.round((s.atEpochMs[i]!-v)*1000); const l=by.get(said)??[]; l.push(v); by.set(said,l); });
 console.log('bare all', p([...s.sinceSaidMs]), 'first', p([...by.values()].map(l=>Math.min(...l))), 'last', p([...by.values()].map(l=>Math.max(...l))));
}
const nc = await connect({servers:b.cluster.nats.url}); const jsm = await jetstreamManager(nc);
const ns=(t:string)=>{ const f=/\.(\d+)/.exec(t)?.[1]??'0'; return Math.floor(Date.parse(t)/1000)*1000+Number('0.'+f)*1000; };
for (let k=0;k<3;k++) {
 const [taskId] = await b.client.call('ask',{url:b.cluster.url,text:'x',artifact:'answer',count:1}); await b.client.call('leave');
 await b.client.call('watch',{url:b.cluster.url,count:N,taskId:taskId!});
 const rawLast=(await jsm.streams.info('A2A_RAW')).state.last_seq;
 await b.producer.call('stamp',{taskId:taskId!,count:EV,everyMs:20,chars:256});
 const s = await b.client.call('sighted',{count:N*EV}); await b.client.call('leave');
 const off=epochOffsetMs();
 const by=new Map<number,{said:number,rec:number[]}>();
 s.seq.forEach((q,i)=>{ const e=by.get(q)??{said:s.atEpochMs[i]!-s.sinceSaidMs[i]!,rec:[]}; e.rec.push(s.atEpochMs[i]!); by.set(q,e); });
 // raw: map by text stamp
 const rawAt=new Map<number,number>();
 for (let q=rawLast+1;;q++){ const m=await jsm.streams.getMessage('A2A_RAW',{seq:q}).catch(()=>null); if(!m) break; const r=m.json<any>(); for (const x of r.inputs??[]) if(x.kind==='text') for(const t of x.tokens) rawAt.set(Math.round(parseFloat(t.slice(2))*10), ns(m.timestamp)); }
 const a:number[]=[],c:number[]=[],d:number[]=[],e:number[]=[],f:number[]=[],g:number[]=[];
 for (const [q,x] of by){ const m=await jsm.streams.getMessage('A2A_LOG',{seq:q}); const fs=ns(m!.timestamp); const fact=m!.json<any>(); 
   const raw=rawAt.get(Math.round((x.said-off)*10)); if(raw) {a.push(raw-x.said); c.push(fs-raw);} 
   d.push(Math.min(...x.rec)-fs); e.push(Math.max(...x.rec)-fs); f.push(Math.max(...x.rec)-Math.min(...x.rec)); g.push(m!.data.length); }
 console.log('ours all', p([...s.sinceSaidMs]),'| say->raw',p(a),'| raw->fact',p(c),'| fact->first',p(d),'| fact->last',p(e),'| first->last', p(f), 'recBytes', p(g), a.length);
}
await nc.close(); await b[Symbol.asyncDispose](); await srv[Symbol.asyncDispose](); await bc[Symbol.asyncDispose]();
