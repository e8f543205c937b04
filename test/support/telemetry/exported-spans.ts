type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';
export type AttributeValue = string | number | boolean;

/** A span as it was exported. */
export type ExportedSpan = {
  service: string;
  resource: Record<string, AttributeValue>;
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  name: string;
  kind: SpanKind;
  /** Epoch milliseconds. */
  startMs: number;
  endMs: number;
  attributes: Record<string, AttributeValue>;
  events: { name: string; attributes: Record<string, AttributeValue> }[];
  links: { traceId: string; spanId: string }[];
  isError: boolean;
};

/** Kinds by their numbers in OTLP. */
export const SPAN_KINDS: readonly SpanKind[] = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'];
const POLL_MS = 25;

/** The spans that a backend has so far. */
export class ExportedSpans {
  spans: readonly ExportedSpan[] = [];
  /** Why they could not be read at last. */
  protected fault: unknown;

  /** The spans of a task, in the order of their start. */
  ofTask(taskId: string): ExportedSpan[] {
    const traces = new Set(this.spans.filter(span => span.attributes['a2a.task.id'] === taskId).map(({ traceId }) => traceId));
    return this.spans.filter(({ traceId }) => traces.has(traceId)).sort((a, b) => a.startMs - b.startMs);
  }

  ofTrace(traceId: string): ExportedSpan[] {
    return this.spans.filter(span => span.traceId === traceId).sort((a, b) => a.startMs - b.startMs);
  }

  /** Waits until `find` returns something. */
  async until<T>(what: string, find: (spans: readonly ExportedSpan[]) => T | undefined, msMax = 60_000): Promise<T> {
    const until = performance.now() + msMax;
    for (;;) {
      const found = find(this.spans);
      if (found !== undefined) return found;
      if (performance.now() > until) throw new Error(`${what} was not exported:\n${drawTree(this.spans)}`, { cause: this.fault });
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
  }
}

const byName = (a: ExportedSpan, b: ExportedSpan) => a.name.localeCompare(b.name) || a.startMs - b.startMs;

/** The spans of one trace as an indented text, each below its parent, by name; a span whose parent is missing has a mark. */
export function drawTree(spans: readonly ExportedSpan[]): string {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const roots = spans.filter(({ parentId }) => parentId === undefined || !ids.has(parentId));
  const draw = (span: ExportedSpan, depth: number): string[] => {
    const mark = depth === 0 && span.parentId !== undefined ? '(parent missing) ' : '';
    const children = spans.filter(({ parentId }) => parentId === span.spanId).sort(byName);
    return [`${'  '.repeat(depth)}${mark}${span.name} [${span.kind}]`, ...children.flatMap(child => draw(child, depth + 1))];
  };
  return roots
    .sort((a, b) => a.startMs - b.startMs)
    .flatMap(root => draw(root, 0))
    .join('\n');
}
