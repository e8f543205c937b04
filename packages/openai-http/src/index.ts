export { openAIFront } from './openai-front.ts';
