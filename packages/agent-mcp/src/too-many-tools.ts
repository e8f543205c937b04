/** More tools than an agent may have. None is left out, because callers would get other answers without a word about the reason. */
export class TooManyTools extends Error {
  override readonly name = 'TooManyTools';
}
