export { aiSdkFront } from './ai-sdk-front.ts';
