export { jsonMessage, jsonPart, sendParams, setPushParams } from './decode.ts';
export { dialect03Proto } from './dialect.ts';
export { errorType, protoPushConfig, protoPushConfigs, protoResult, protoTask } from './encode.ts';
