/** A call as the plugin's process got it, and its answer, on their way between that process and the node agent. */
import { putText } from "../bytes.ts";
import type { Answer } from "../cni/answer.ts";
import type { Environment } from "../cni/environment.ts";
import { encodeFrame, type Frame, NUMBERS_BYTES, putFrameNumbers } from "./frame.ts";

export interface HandedCall {
  /** Which of the plugins was called. */
  readonly program: string;
  readonly environment: Environment;
  readonly stdin: Uint8Array;
}

export function encodeCall({ program, environment, stdin }: HandedCall): Uint8Array {
  return encodeFrame({ number: 0, head: new TextEncoder().encode(callHead(program, environment)), body: stdin });
}

/** What stands before the config. */
export function callHead(program: string, environment: Environment): string {
  return JSON.stringify({ program, environment });
}

/** How many bytes it takes, where it is plain ASCII. */
export function roomForHead(head: string): number {
  return NUMBERS_BYTES + head.length;
}

/** Makes bytes a call that hold the config already, with room for the head before it. Not possible where that is not plain ASCII. */
export function putHead(bytes: Uint8Array, head: string, stdinLength: number): boolean {
  putFrameNumbers(bytes, 0, head.length, stdinLength);
  return putText(bytes, NUMBERS_BYTES, head) !== undefined;
}

/** Throws where the frame holds something else. */
export function decodeCall({ head, body }: Frame): HandedCall {
  const { program, environment } = JSON.parse(new TextDecoder().decode(head));
  return { program: String(program), environment: environmentOf(environment), stdin: body };
}

/** Whoever gets it need not decode anything: mostly nothing was logged, and stdout is passed on as it is. */
export function encodeAnswer({ exitCode, stdout, stderr }: Answer): Uint8Array {
  const encoder = new TextEncoder();
  return encodeFrame({ number: exitCode, head: encoder.encode(stderr), body: encoder.encode(stdout) });
}

/** Of any names: to assign to `__proto__` would set no variable. */
function environmentOf(given: unknown): Environment {
  return Object.fromEntries(Object.entries(given ?? {}).map(([name, value]) => [name, String(value)]));
}
