/** The lines of a conversation with a sidecar: what it may send, and the reply to its greeting. Pure. */
import { identity } from "../../identity.ts";
import { isRelease } from "../../model/release.ts";
import { decodeFromSidecar } from "../protocol/decode-message.ts";
import { MalformedMessage } from "../protocol/malformed-message.ts";
import { type FromAgent, type FromSidecar, type Hello, SIDECAR_PROTOCOL } from "../protocol/sidecar-state.ts";

/** `undefined` if no sidecar of any release sends this line. */
export function readSidecarLine(line: string): FromSidecar | undefined {
  try {
    const said = decodeFromSidecar(line);
    return said.type === "hello" && !isVersion(said.version) ? undefined : said;
  } catch (failure) {
    if (failure instanceof MalformedMessage) return undefined;
    throw failure;
  }
}

/** People read it in an annotation and in tables. */
function isVersion(text: string): boolean {
  return text.length <= LONGEST_VERSION && isRelease(text);
}

const LONGEST_VERSION = 64;

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
