/** What happens to a packet. */
import type { AttributeCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import { DATA, VERDICT } from "./wire.ts";

const CODE = { drop: 0, accept: 1, continue: -1, jump: -3, goto: -4, return: -5 } as const;

export type Verdict =
  | { readonly kind: "accept" | "drop" | "continue" | "return" }
  /** `jump` returns at the end of the chain, `goto` does not. */
  | { readonly kind: "jump" | "goto"; readonly chain: string };

/** Writes the verdict as a data attribute of the given type. */
export function writeVerdict(writer: MessageWriter, type: number, verdict: Verdict): void {
  const data = writer.open(type);
  const inner = writer.open(DATA.verdict);
  writer.u32Big(VERDICT.code, CODE[verdict.kind]);
  if (verdict.kind === "jump" || verdict.kind === "goto") writer.text(VERDICT.chain, verdict.chain);
  writer.close(inner);
  writer.close(data);
}

/** Writes bytes as a data attribute of the given type. */
export function writeValue(writer: MessageWriter, type: number, value: Uint8Array): void {
  const data = writer.open(type);
  writer.bytes(DATA.value, value);
  writer.close(data);
}

/** The content of a data attribute. */
export function readData(data: AttributeCursor): Uint8Array | Verdict | undefined {
  while (data.next()) {
    if (data.type === DATA.value) return data.copy();
    if (data.type === DATA.verdict) return readVerdict(data.nested());
  }
  return undefined;
}

/** The content of a verdict attribute; `undefined` if this program does not know it. */
export function readVerdict(attributes: AttributeCursor): Verdict | undefined {
  let code = 0;
  let chain = "";
  while (attributes.next()) {
    if (attributes.type === VERDICT.code) code = attributes.i32Big();
    if (attributes.type === VERDICT.chain) chain = attributes.text();
  }
  for (const kind of ["accept", "drop", "continue", "return"] as const) if (CODE[kind] === code) return { kind };
  for (const kind of ["jump", "goto"] as const) if (CODE[kind] === code) return { kind, chain };
  return undefined;
}
