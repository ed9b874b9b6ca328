/**
 * One conversation with the node agent, from the sidecar's side:
 *
 *   sidecar ── hello ──> agent
 *           <─ welcome ─             or refused, which ends it
 *           <─ update ──             the first one has the whole state
 *           ── applied ──>           …
 */
import { decodeFromAgent } from "../protocol/decode-message.ts";
import {
  type Applied,
  type FromAgent,
  type Hello,
  SIDECAR_PROTOCOL,
  type SidecarUpdate,
} from "../protocol/sidecar-state.ts";

/** The agent does not talk to this sidecar: its message says why and what to do. */
export class RefusedByAgent extends Error {
  override readonly name = "RefusedByAgent";
}

export class AgentConversation {
  private welcomed: string | undefined;

  constructor(private readonly judge: { apply(update: SidecarUpdate): void }) {}

  /** The first line to send. */
  hello(version: string): string {
    return lineOf({ type: "hello", protocol: SIDECAR_PROTOCOL, version });
  }

  /** The version of the agent, once it has welcomed this sidecar. */
  get agentVersion(): string | undefined {
    return this.welcomed;
  }

  /** Returns the line to send in return, if any. Throws an error if the conversation cannot go on. */
  receive(line: string): string | undefined {
    const message: FromAgent = decodeFromAgent(line);
    switch (message.type) {
      case "refused":
        throw new RefusedByAgent(message.message);
      case "welcome":
        if (message.protocol !== SIDECAR_PROTOCOL) {
          throw new Error(`the node agent speaks version ${message.protocol} of the protocol, not ${SIDECAR_PROTOCOL}`);
        }
        this.welcomed = message.version;
        return undefined;
      case "update":
        if (this.welcomed === undefined) throw new Error("the node agent sent an update before its welcome");
        this.judge.apply(message);
        return lineOf({ type: "applied", revision: message.revision });
    }
  }
}

function lineOf(message: Hello | Applied): string {
  return `${JSON.stringify(message)}\n`;
}
