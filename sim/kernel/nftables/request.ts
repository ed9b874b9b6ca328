/** Reads the attributes of a request by number. */
import type { AttributeCursor, MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import type { NftFamily } from "../../../src/linux/nftables/ruleset.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";

export class Request {
  /** `undefined`: of any family, in lists. */
  readonly family: NftFamily | undefined;
  readonly flags: number;
  readonly sequence: number;
  readonly #texts = new Map<number, string>();
  readonly #values = new Map<number, Uint8Array>();

  constructor(readonly message: MessageCursor) {
    this.family = familyOf(message.view.getUint8(message.start));
    this.flags = message.flags;
    this.sequence = message.sequence;
    const attributes = this.attributes();
    while (attributes.next()) {
      this.#values.set(attributes.type, attributes.copy());
      this.#texts.set(attributes.type, attributes.text());
    }
  }

  text(type: number): string | undefined {
    return this.#texts.get(type);
  }

  bytes(type: number): Uint8Array | undefined {
    return this.#values.get(type);
  }

  number(type: number): number | undefined {
    return this.#view(type)?.getUint32(0);
  }

  long(type: number): bigint | undefined {
    return this.#view(type)?.getBigUint64(0);
  }

  has(type: number): boolean {
    return this.#values.has(type);
  }

  hasFlag(flag: number): boolean {
    return (this.flags & flag) === flag;
  }

  /** All attributes, from the first. */
  attributes(): AttributeCursor {
    return this.message.attributes(wire.HEADER_LENGTH);
  }

  /** The content of one attribute. */
  nested(type: number): AttributeCursor | undefined {
    const attributes = this.attributes();
    while (attributes.next()) if (attributes.type === type) return attributes.nested();
    return undefined;
  }

  #view(type: number): DataView | undefined {
    const bytes = this.#values.get(type);
    return bytes === undefined ? undefined : new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
}

function familyOf(number: number): NftFamily | undefined {
  for (const family of ["inet", "ip", "ip6", "bridge", "netdev"] as const)
    if (wire.FAMILY[family] === number) return family;
  return undefined;
}
