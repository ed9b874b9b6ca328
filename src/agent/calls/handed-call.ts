/** Encodes a call as the plugin's process received it, and its reply, for the connection between that process and the node agent. */
import { putText } from "../../bytes.ts";
import type { Environment } from "../../cni/environment.ts";
import type { Reply } from "../../cni/reply.ts";
import { encodeFrame, type Frame, NUMBERS_BYTES, putFrameNumbers } from "./frame.ts";

export interface HandedCall {
  /** The plugin that was called. */
  readonly program: string;
  readonly environment: Environment;
  readonly stdin: Uint8Array;
}

export function encodeCall({ program, environment, stdin }: HandedCall): Uint8Array {
  return encodeFrame({ number: 0, head: new TextEncoder().encode(callHead(program, environment)), body: stdin });
}

/** The part of a call before its config. */
export function callHead(program: string, environment: Environment): string {
  return JSON.stringify({ program, environment });
}

/** Space to reserve before the config for a head of plain ASCII. */
export function roomForHead(head: string): number {
  return NUMBERS_BYTES + head.length;
}

/** Completes a call in place: the bytes already contain the config, with room for the head before it. Returns `false` if the head is not plain ASCII. */
export function putHead(bytes: Uint8Array, head: string, stdinLength: number): boolean {
  putFrameNumbers(bytes, 0, head.length, stdinLength);
  return putText(bytes, NUMBERS_BYTES, head) !== undefined;
}

/** Throws if the frame is not a call. */
export function decodeCall({ head, body }: Frame): HandedCall {
  const { program, environment } = JSON.parse(new TextDecoder().decode(head));
  return { program: String(program), environment: environmentOf(environment), stdin: body };
}

/** The receiver need not decode anything: it passes stderr, usually empty, and stdout on as they are. */
export function encodeReply({ exitCode, stdout, stderr }: Reply): Uint8Array {
  const encoder = new TextEncoder();
  return encodeFrame({ number: exitCode, head: encoder.encode(stderr), body: encoder.encode(stdout) });
}

/** Built from entries, since assigning to `__proto__` would not set a variable of that name. */
function environmentOf(given: unknown): Environment {
  return Object.fromEntries(Object.entries(given ?? {}).map(([name, value]) => [name, String(value)]));
}
