export { dialect03Proto } from './dialect.ts';
export { protoResult, protoTask } from './objects.ts';
export { protoPushConfig, protoPushConfigs, setPushParams } from './push.ts';
export { sendParams } from './requests.ts';
