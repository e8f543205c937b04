export { durableStreamsFront } from './durable-streams-front.ts';
