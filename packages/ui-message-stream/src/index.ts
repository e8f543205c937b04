export { answerIdOf, ChunkEncoder, UI_STREAM_HEADER, UI_STREAM_VERSION } from './encode-chunks.ts';
export type { UiChunk } from './ui-chunk.ts';
export { ChatMessageError, type ChatRequest, chatRequestOf } from './user-message.ts';
