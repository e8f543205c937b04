import { ROOT_CONTEXT } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { LogRecordExporter } from '@opentelemetry/sdk-logs';
import { importOptional } from './optional-packages.ts';
import { contextFrom } from './propagation.ts';

/** Delay of an export. */
const LOG_DELAY_MS = 1_000;

/** Severity numbers of the OpenTelemetry log data model for the levels of our lines. */
const SEVERITIES: Readonly<Record<string, number>> = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };

type LogExport = {
  /** Receives one line as the logger wrote it, already redacted. */
  line(line: string): void;
  stop(): Promise<void>;
};

/** Sends log lines to a collector, in addition to standard output. The SDK buffers at most 2,048 lines and drops further ones. */
export async function startLogExport(url: string, resource: Resource, onFailed: (error: unknown) => void): Promise<LogExport> {
  const [{ BatchLogRecordProcessor, LoggerProvider }, { OTLPLogExporter }] = await importOptional(
    'export log lines',
    ['exporter-logs-otlp-proto', 'sdk-logs'],
    () => Promise.all([import('@opentelemetry/sdk-logs'), import('@opentelemetry/exporter-logs-otlp-proto')]),
  );
  // The processor reports a failed export as text, without the signal.
  class ReportingExporter extends OTLPLogExporter {
    override export(...[records, done]: Parameters<LogRecordExporter['export']>): void {
      super.export(records, result => {
        if (result.code !== 0) onFailed(result.error);
        done(result);
      });
    }
  }
  const exporter = new ReportingExporter({ url });
  const processor = new BatchLogRecordProcessor({ exporter, scheduledDelayMillis: LOG_DELAY_MS });
  const provider = new LoggerProvider({ resource, processors: [processor] });
  const logger = provider.getLogger('hopline');
  return {
    line: text => {
      const { level, time, msg, trace_id, span_id, service: _service, instance: _instance, ...fields } = parse(text);
      const carrier = { traceparent: `00-${trace_id}-${span_id}-01` };
      logger.emit({
        timestamp: new Date(String(time)),
        severityText: String(level),
        severityNumber: SEVERITIES[String(level)] ?? 0,
        body: String(msg),
        attributes: attributesOf(fields),
        context: trace_id === undefined ? ROOT_CONTEXT : contextFrom(carrier),
      });
    },
    stop: () => provider.shutdown(),
  };
}

type Line = { [key: string]: unknown };

function parse(text: string): Line {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return { msg: text };
  }
}

/** The fields of a line as attributes. An error has the attribute names of the conventions. */
function attributesOf({ err, settings, ...fields }: Line): Record<string, string | number | boolean> {
  const attributes: Record<string, string | number | boolean> = {};
  const { type, message, stack } = (err ?? {}) as Line;
  const exception = { 'exception.type': type, 'exception.message': message, 'exception.stacktrace': stack };
  for (const [key, value] of Object.entries({ ...fields, ...exception, ...(settings as Line | undefined) })) {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') attributes[key] = value;
  }
  return attributes;
}
