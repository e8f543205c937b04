export { dialect03Proto } from './dialect.ts';
export { errorType } from './error-type.ts';
export { jsonMessage, protoResult, protoTask } from './objects.ts';
export { jsonPart } from './part.ts';
export { protoPushConfig, protoPushConfigs, setPushParams } from './push.ts';
export { sendParams } from './requests.ts';
