/** An error of the JetStream API, with the code of nats-server/server/errors.json. */
export class ApiError extends Error {
  readonly code: number;
  readonly errCode: number;

  constructor(code: number, errCode: number, description: string) {
    super(description);
    this.code = code;
    this.errCode = errCode;
  }

  toJSON(): { code: number; err_code: number; description: string } {
    return { code: this.code, err_code: this.errCode, description: this.message };
  }
}

export const badRequest = () => new ApiError(400, 10003, 'bad request');
export const streamNotFound = () => new ApiError(404, 10059, 'stream not found');
export const consumerNotFound = () => new ApiError(404, 10014, 'consumer not found');
export const noMessageFound = () => new ApiError(404, 10037, 'no message found');

/** The code of `Unsupported`, which nats-server does not use. */
const UNSUPPORTED = 90_501;

/** A request that Hopline did not make when the double was written. The test that meets it has to extend the double. */
export class Unsupported extends ApiError {
  constructor(what: string) {
    super(501, UNSUPPORTED, `test/nats-double does not support ${what}: add it, and compare it with a real nats-server`);
  }
}
