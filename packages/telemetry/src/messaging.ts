import type { HopAttributes } from './hop-span.ts';
import { ATTR, type DESTINATION } from './names.ts';

/** Attributes of the messaging conventions for a span over a subject of the log. */
export function messagingAttributes(
  template: (typeof DESTINATION)[keyof typeof DESTINATION],
  options: { operation: 'receive' | 'process'; destination: string; consumer: string },
): HopAttributes {
  const { operation, destination, consumer } = options;
  return {
    [ATTR.messagingSystem]: 'nats',
    [ATTR.operationName]: operation,
    [ATTR.operationType]: operation,
    [ATTR.destinationTemplate]: template,
    [ATTR.destinationName]: destination,
    [ATTR.consumerGroup]: consumer,
  };
}
