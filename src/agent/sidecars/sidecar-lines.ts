/** The lines of a conversation with a sidecar: what it may send, and the reply to its greeting. Pure. */
import { identity } from "../../identity.ts";
import { type FromAgent, type FromSidecar, type Hello, SIDECAR_PROTOCOL } from "../../policy/requests/sidecar-state.ts";

/** `undefined` if no sidecar of any release sends this line. */
export function readSidecarLine(line: string): FromSidecar | undefined {
  const value = parseJson(line);
  if (typeof value !== "object" || value === null) return undefined;
  const { type, protocol, version, revision } = value as Readonly<Record<string, unknown>>;
  if (type === "hello" && isNumber(protocol) && isVersion(version)) return { type, protocol, version };
  if (type === "applied" && isNumber(revision)) return { type, revision };
  return undefined;
}

export function encodeLine(line: FromAgent): string {
  return `${JSON.stringify(line)}\n`;
}

/** `version`: the release of this agent. A sidecar of an older protocol is spoken to in its own. */
export function replyToHello({ protocol, version: ofSidecar }: Hello, version: string): FromAgent {
  if (protocol <= SIDECAR_PROTOCOL) return { type: "welcome", protocol, version };
  const message =
    `The sidecar (release ${ofSidecar}) speaks protocol ${protocol}, ` +
    `but the node agent (release ${version}) only protocols up to ${SIDECAR_PROTOCOL}: ` +
    `upgrade ${identity.nodeAgent} on all nodes first, then the sidecars`;
  return { type: "refused", message };
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}

/** Becomes the value of an annotation. */
const VERSION_TEXT = /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,62}$/;

function isVersion(value: unknown): value is string {
  return typeof value === "string" && VERSION_TEXT.test(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
