/**
 * The kernel's acknowledgement of one message: an error number (0 is success), and on
 * newer kernels an error text and the offset in the request that it refers to.
 *
 *   errno:i32  request header:16  [rest of the request unless capped]  [attributes]
 */
import { AttributeCursor, type MessageCursor } from "./message-reader.ts";
import { aligned, FLAG, HEADER_LENGTH } from "./wire.ts";

const ATTRIBUTE = { message: 1, offset: 2 } as const;

export interface Acknowledgement {
  /** Positive, as in errno.h; 0 is success. */
  readonly errno: number;
  readonly text: string;
  /** Byte offset into the refused message. */
  readonly offset?: number;
}

const ACCEPTED: Acknowledgement = { errno: 0, text: "" };

/** Reads an error message, or the end of a dump, which contains one too. */
export function readAcknowledgement(message: MessageCursor, echoed: "request" | "nothing"): Acknowledgement {
  const { view, start, end, flags } = message;
  const errno = end - start < 4 ? 0 : -view.getInt32(start, true);
  if ((flags & FLAG.acknowledgeTlvs) === 0) return errno === 0 ? ACCEPTED : { errno, text: "" };

  const attributes = new AttributeCursor(view, start + 4 + (echoed === "request" ? echoLength(message) : 0), end);
  let text = "";
  let offset: number | undefined;
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.message) text = attributes.text();
    if (attributes.type === ATTRIBUTE.offset) offset = attributes.u32();
  }
  return offset === undefined ? { errno, text } : { errno, text, offset };
}

function echoLength({ view, start, flags }: MessageCursor): number {
  if ((flags & FLAG.capped) !== 0) return HEADER_LENGTH;
  return aligned(view.getUint32(start + 4, true));
}
