/** Lines of a body that arrives in pieces, however it is cut. Empty lines, by which a sender shows that it is alive, are left out. Pure. */

export interface LineRules {
  /** A last line without an end: the sender writes none, so it was cut off; or it is a line as the others are. */
  readonly unended: "left out" | "a line";
  /** A line with more characters is not waited for. */
  readonly most?: { readonly length: number; readonly failure: () => Error };
}

export async function* linesOf(body: AsyncIterable<Uint8Array>, { unended, most }: LineRules): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  // Joined once it is complete: a line may be long, and come in many pieces.
  let pending: string[] = [];
  let length = 0;
  for await (const chunk of body) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    pending.push(first);
    length += first.length;
    for (const next of others) {
      const line = pending.join("");
      [pending, length] = [[next], next.length];
      if (line !== "") yield line;
    }
    if (most !== undefined && length > most.length) throw most.failure();
  }
  const rest = pending.join("") + decoder.decode();
  if (unended === "a line" && rest !== "") yield rest;
}
