export { ChatEncoder } from './chat-encoder.ts';
export { bodyOfError, OpenAIError } from './openai-error.ts';
export { type CompletionRequest, completionRequestOf, type ResponseRequest, responseRequestOf } from './requests.ts';
export { ANY_AGENT, RESPONSE_METADATA, ResponseEncoder, type ResponseEvent } from './response-encoder.ts';
export { type ResponseRef, responseIdOf, responseRefOf } from './response-id.ts';
export { sideAnswerOf, sideCompletion } from './side-request.ts';
