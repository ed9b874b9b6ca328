/** A line of the conversation between node agent and sidecar that cannot be used. The message names the field. */
import { quoted } from "../../quote.ts";

export class MalformedMessage extends Error {
  override readonly name = "MalformedMessage";

  constructor(
    /** Such as `policies.default/web.rules[3].source.nets[0]`; empty for the whole message. */
    readonly field: string,
    problem: string,
  ) {
    super(field === "" ? `Cannot use the message: ${problem}` : `Cannot use the message: ${field}: ${problem}`);
  }
}

export function malformedValue(field: string, value: unknown, wanted: string): MalformedMessage {
  return new MalformedMessage(field, `${quoted(value)} is not ${wanted}`);
}
