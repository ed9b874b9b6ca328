/** The IDs of records. */
import { type Cipheriv, createCipheriv, randomBytes } from "node:crypto";

/** A block of the cipher is as long as its key. */
const ID_KEY_BYTES = 16;
const MOST_NUMBER_BYTES = 6;
/** Enough that no two collectors have the same one. */
const ID_BYTES = 10;

/**
 * Numbers the records of one collector. An ID is shown to readers who may know neither the node nor how much others do there: it
 * is the number, encrypted with a key of this collector. So it tells nothing, and is unique in the cluster.
 */
export class FlowIds {
  #last = 0;
  readonly #cipher: Cipheriv;

  constructor(key: Uint8Array = randomBytes(ID_KEY_BYTES)) {
    this.#cipher = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false);
  }

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  text(number: number): string {
    const block = Buffer.alloc(ID_KEY_BYTES);
    block.writeUIntBE(number, 0, MOST_NUMBER_BYTES);
    return this.#cipher.update(block).toString("hex", 0, ID_BYTES);
  }
}
