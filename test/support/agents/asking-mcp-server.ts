import { createInterface } from 'node:readline';

/**
 * An MCP server over stdio, revision 2025-06-18, whose tools ask questions. It writes raw JSON, because its questions must not name their
 * call. Started with `strict`, it exits if its first request is not `initialize`, as some servers do.
 */
const TOOLS = ['book', 'confirm', 'several', 'twice', 'sample', 'open_page', 'counted', 'stubborn', 'slow', 'late', 'ok'];

type Answer = { action?: string; content?: Record<string, unknown>; error?: { code: number; message: string } };
type Message = {
  id?: number | string;
  method?: string;
  params?: { name?: string; arguments?: Record<string, unknown>; capabilities?: object; _meta?: { progressToken?: number } };
  result?: Answer;
  error?: Answer['error'];
};

const write = (value: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...value })}\n`);
const waiting = new Map<string, (answer: Answer) => void>();
let runs = 0;
let capabilities: object = {};
/** Lets the call of `late` ask. */
let askLate = () => {};

function request(method: string, params: object): Promise<Answer> {
  const id = `question ${waiting.size + 1}`;
  write({ id, method, params });
  return new Promise(resolve => waiting.set(id, resolve));
}

const ask = (message: string, properties: object, required: string[] = []) =>
  request('elicitation/create', { message, requestedSchema: { type: 'object', properties, required } });

const shown = ({ action, content, error }: Answer) => error?.message ?? `${action} ${JSON.stringify(content ?? {})}`;

async function answerTo({ name: tool, arguments: args = {}, _meta }: NonNullable<Message['params']>): Promise<string> {
  switch (tool) {
    case 'book': {
      const city = await ask('Which city?', { city: { type: 'string', minLength: 3 } }, ['city']);
      if (city.action !== 'accept') return `not booked: ${city.action}`;
      const nights = await ask(`How many nights in ${city.content?.city}?`, { nights: { type: 'integer', minimum: 1 } }, [
        'nights',
      ]);
      return nights.action === 'accept' ? `booked ${city.content?.city} for ${nights.content?.nights}` : `${nights.action}`;
    }
    case 'confirm':
      return shown(await ask(`Delete ${args.file}?`, {}));
    case 'several':
      return shown(
        await ask('Who are you?', { name: { type: 'string', title: 'Your name' }, age: { type: 'number', default: 7 } }, [
          'name',
        ]),
      );
    case 'twice': {
      const color = { color: { type: 'string', enum: ['red', 'blue'] } };
      return `${shown(await ask('A color?', color, ['color']))}, ${shown(await ask('A color?', color, ['color']))}`;
    }
    case 'sample': {
      const content = { type: 'text', text: 'Hi' };
      return shown(await request('sampling/createMessage', { messages: [{ role: 'user', content }], maxTokens: 5 }));
    }
    case 'open_page':
      return shown(
        await request('elicitation/create', { mode: 'url', message: 'Log in', elicitationId: 'e', url: 'https://x.test/' }),
      );
    case 'counted':
      runs += 1;
      return `${shown(await ask('Continue?', {}))} in run ${runs} of ${process.pid}`;
    case 'stubborn': {
      const answer = await ask('Continue?', {});
      // It does not end after a cancel.
      return answer.action === 'accept' ? 'continued' : await new Promise(() => {});
    }
    case 'late':
      write({ method: 'notifications/progress', params: { progressToken: _meta?.progressToken, progress: 1 } });
      await new Promise<void>(resolve => {
        askLate = resolve;
      });
      return shown(await ask('Late?', {}));
    case 'slow':
      askLate();
      await new Promise(resolve => setTimeout(resolve, Number(args.ms)));
      return 'slept';
    default:
      return JSON.stringify(capabilities);
  }
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params, result, error } = JSON.parse(line) as Message;
  if (id === undefined) return;
  if (method === undefined) {
    waiting.get(String(id))?.({ ...result, ...(error && { error }) });
  } else if (method === 'initialize') {
    capabilities = params?.capabilities ?? {};
    const serverInfo = { name: 'asking', version: '1' };
    write({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/list') {
    write({ id, result: { tools: TOOLS.map(name => ({ name, inputSchema: { type: 'object' } })) } });
  } else if (method === 'tools/call') {
    void answerTo(params ?? {}).then(text => write({ id, result: { content: [{ type: 'text', text }] } }));
  } else if (method === 'ping') {
    write({ id, result: {} });
  } else if (method === 'server/discover' && process.argv.includes('strict')) {
    process.exit(1);
  } else {
    write({ id, error: { code: -32601, message: 'Method not found' } });
  }
});
