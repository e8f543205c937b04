export type { UiChunk } from '@hopline/ui-message-stream';
export { HoplineChatTransport, type HoplineChatTransportOptions } from './chat-transport.ts';
