import type { JsonObject } from '@hopline/a2a';

/** Metadata of parts and messages under the name of this server, as the AI SDK groups it. */
type ProviderMetadata = { hopline: { [name: string]: string | undefined } };

/**
 * The chunks of the AI SDK's UI message stream, version 1, that a task becomes. Written here so that no user of the encoder installs the AI SDK;
 * a test checks them against its schema.
 */
export type UiChunk =
  | { type: 'start'; messageId: string; messageMetadata: { hopline: JsonObject } }
  | { type: 'text-start' | 'reasoning-start'; id: string; providerMetadata?: ProviderMetadata }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'text-end' | 'reasoning-end'; id: string }
  | {
      type: 'tool-input-available';
      toolCallId: string;
      toolName: string;
      input: unknown;
      providerExecuted: true;
      dynamic: true;
      providerMetadata?: ProviderMetadata;
    }
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string }
  | { type: 'tool-approval-response'; approvalId: string; approved: boolean; reason?: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  | /** The parts that follow are those of the next turn. */ { type: 'start-step' }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown; providerExecuted: true; dynamic: true }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string; providerExecuted: true; dynamic: true }
  | { type: 'file'; url: string; mediaType: string; providerMetadata?: ProviderMetadata }
  | { type: `data-${string}`; id?: string; data: unknown; transient?: true }
  | { type: 'message-metadata'; messageMetadata: { hopline: JsonObject } }
  | /** Takes back the parts of the message so far. */ { type: 'reset-step' }
  | { type: 'error'; errorText: string }
  | { type: 'abort'; reason?: string }
  | { type: 'finish'; finishReason: 'stop'; messageMetadata: { hopline: JsonObject } };
