import { type CardReport, cutIndex, type JsonObject } from '@hopline/a2a';
import { isObject, list, object, text, texts } from '@hopline/a2a/json-value';
import { cardFindings } from './card-findings.ts';
import { interfaceVersion } from './decode-agent-card.ts';

/** Maximum length of a list of a report, and of a text in it. Sub-agents write reports into the registry, which every ingress keeps. */
export const REPORT_ITEMS_MAX = 8;
export const REPORT_CHARS_MAX = 128;
/** Findings that are read from a report, more than this version writes. */
const FINDINGS_READ_MAX = 32;

const FLAGS = ['streaming', 'pushNotifications', 'extendedAgentCard', 'stateTransitionHistory'] as const;
const LISTS = ['interfaces', 'capabilities', 'extensions', 'inputModes', 'outputModes', 'findings'] as const;
const TEXTS = ['name', 'version', 'provider'] as const;

const NONE: CardReport = {
  name: '',
  version: '',
  provider: '',
  interfaces: [],
  capabilities: [],
  extensions: [],
  inputModes: [],
  outputModes: [],
  findings: [],
};

/** A card of any version in the form for people, and its findings. */
export function cardReport(card: unknown): CardReport {
  const findings = cardFindings(card);
  if (!isObject(card)) return { ...NONE, findings };
  const { name, version, provider, capabilities, defaultInputModes, defaultOutputModes } = card;
  const offered = object(capabilities) ?? {};
  const has03 = card.supportsAuthenticatedExtendedCard === true;
  return {
    name: bounded(name),
    version: bounded(version),
    provider: bounded(object(provider)?.organization),
    interfaces: boundedList(interfacesOf(card)),
    capabilities: FLAGS.filter(flag => offered[flag] === true || (flag === 'extendedAgentCard' && has03)),
    extensions: boundedList(
      list(offered.extensions)
        .filter(isObject)
        .flatMap(({ uri }) => text(uri) ?? []),
    ),
    inputModes: boundedList(texts(defaultInputModes) ?? []),
    outputModes: boundedList(texts(defaultOutputModes) ?? []),
    findings,
  };
}

/** The report of an agent whose server has no card. */
export const noCardReport = (): CardReport => ({
  ...NONE,
  findings: ['The server has no agent card at /.well-known/agent-card.json, nor at /.well-known/agent.json.'],
});

/** Decodes a report that another process wrote; undefined for anything else, such as the form of a later version. */
export function decodeCardReport(value: unknown): CardReport | undefined {
  if (!isObject(value)) return undefined;
  const isReport =
    TEXTS.every(name => typeof value[name] === 'string') &&
    LISTS.every(name => Array.isArray(value[name]) && value[name].every(one => typeof one === 'string'));
  if (!isReport) return undefined;
  const report = value as CardReport;
  return Object.fromEntries([
    ...TEXTS.map(name => [name, bounded(report[name])]),
    ...LISTS.map(name => [name, boundedList(report[name], name === 'findings' ? FINDINGS_READ_MAX : REPORT_ITEMS_MAX)]),
  ]) as CardReport;
}

function interfacesOf(card: JsonObject): string[] {
  const newer = list(card.supportedInterfaces).filter(isObject);
  if (newer.length > 0) return newer.map(one => interfaceText(one.protocolBinding, interfaceVersion(one.protocolVersion)));
  const version = text(card.protocolVersion) ?? '0.2';
  const main = text(card.url) === undefined ? [] : [interfaceText(card.preferredTransport, version)];
  const more = list(card.additionalInterfaces).filter(isObject);
  return [...main, ...more.map(({ transport }) => interfaceText(transport, version))];
}

function interfaceText(binding: unknown, version: string): string {
  return `${text(binding) ?? 'JSONRPC'}, A2A ${version}`;
}

function bounded(value: unknown): string {
  const whole = text(value) ?? '';
  return whole.slice(0, cutIndex(whole, REPORT_CHARS_MAX));
}

function boundedList(values: readonly string[], itemsMax = REPORT_ITEMS_MAX): string[] {
  return [...new Set(values.map(bounded))].slice(0, itemsMax);
}
