/** Answers that go on: line by line, as fast as the client reads, so that one that reads slowly costs no memory. */
import type { ServerResponse } from "node:http";

/** Resolves when the client can take more, or has left; then it returns false. */
export async function sendText(response: ServerResponse, text: string): Promise<boolean> {
  if (response.destroyed) return false;
  if (!response.write(text)) await drained(response);
  return !response.destroyed;
}

async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const go = () => resolve();
  response.once("drain", go);
  response.once("close", go);
  if (response.destroyed || !response.writableNeedDrain) go();
  await promise;
  response.off("drain", go);
  response.off("close", go);
}
