/** A call as the plugin's process got it, and its answer, on their way between that process and the node agent. */
import type { Answer } from "../cni/answer.ts";
import type { Environment } from "../cni/environment.ts";
import { encodeFrame, type Frame } from "./frame.ts";

export interface HandedCall {
  /** Which of the plugins was called. */
  readonly program: string;
  readonly environment: Environment;
  readonly stdin: Uint8Array;
}

export function encodeCall({ program, environment, stdin }: HandedCall): Uint8Array {
  const head = new TextEncoder().encode(JSON.stringify({ program, environment }));
  return encodeFrame({ number: 0, head, body: stdin });
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

function environmentOf(given: unknown): Environment {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(given ?? {})) environment[name] = String(value);
  return environment;
}
