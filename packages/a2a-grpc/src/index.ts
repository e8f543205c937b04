export { frameEncoder } from './grpc-sink.ts';
export type { GrpcLimits } from './limits.ts';
export { GRPC_LIMITS } from './limits.ts';
export type { A2AGrpcOptions, GrpcServer, GrpcTls } from './open-grpc.ts';
export { openGrpc } from './open-grpc.ts';
