import { createInterface } from 'node:readline';

/** An MCP server over stdio with one tool per protocol fault. It writes raw JSON, because an MCP library would prevent these faults. */
const TOOLS = ['ok', 'die', 'hang', 'ping', 'flood', 'huge', 'long', 'noise', 'environment', 'garbled', 'refuse', 'error'];
/** Names of as many more tools as the argument of this process asks for. */
const MORE_TOOLS = Array.from({ length: Number(process.argv[2] ?? 0) }, (_, index) => `more-${index}`);

type Request = { id?: number; method: string; params?: { name?: string; _meta?: { progressToken?: number } } };

const write = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const answer = (id: number, result: unknown) => write({ jsonrpc: '2.0', id, result });
const text = (id: number, content: string) => answer(id, { content: [{ type: 'text', text: content }] });

function call(id: number, { params }: Request): void {
  const progressToken = params?._meta?.progressToken;
  switch (params?.name) {
    case 'die':
      process.exit(1);
      break;
    case 'hang':
      break;
    case 'ping':
      setInterval(() => {
        write({ jsonrpc: '2.0', id: `ping ${performance.now()}`, method: 'ping' });
        write({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'alive' } });
      }, 20);
      break;
    case 'flood':
      for (let progress = 1; progress <= 10_000; progress += 1) {
        write({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } });
      }
      text(id, 'flooded');
      break;
    case 'huge':
      text(id, 'x'.repeat(11 * 1024 * 1024));
      break;
    case 'long':
      text(id, '😀'.repeat(25_000));
      break;
    case 'noise':
      process.stdout.write('not json\n{"jsonrpc":"1.0"}\n\n');
      process.stderr.write('secret on standard error\n');
      text(id, 'noted');
      break;
    case 'environment':
      text(id, Object.keys(process.env).sort().join(','));
      break;
    case 'garbled':
      answer(id, { content: 'not a list' });
      break;
    case 'refuse':
      write({ jsonrpc: '2.0', id, error: { code: -32050, message: 'secret reason' } });
      break;
    case 'error':
      answer(id, { content: [{ type: 'text', text: 'no such file' }], isError: true });
      break;
    default:
      text(id, `pid ${process.pid}`);
  }
}

createInterface({ input: process.stdin }).on('line', line => {
  const request = JSON.parse(line) as Request;
  if (request.id === undefined) return;
  if (request.method === 'initialize') {
    const serverInfo = { name: 'hostile', version: '1' };
    answer(request.id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo });
  } else if (request.method === 'tools/list') {
    answer(request.id, { tools: [...TOOLS, ...MORE_TOOLS].map(name => ({ name, inputSchema: { type: 'object' } })) });
  } else if (request.method === 'ping') {
    answer(request.id, {});
  } else {
    call(request.id, request);
  }
});
