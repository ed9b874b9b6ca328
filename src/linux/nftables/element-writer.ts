/** Writes the elements of a set. Pure. */
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NftElement } from "./set.ts";
import { commentEntry, encodeUserdata, numberEntry, type UserdataEntry } from "./userdata.ts";
import { writeValue, writeVerdict } from "./verdict.ts";
import { ELEMENT, ELEMENT_FLAG } from "./wire.ts";

// `nft` prints a range without an end correctly only with this mark.
const OPEN_INTERVAL = { type: 1, value: 1 } as const;

/** `position` is its number in the list, from 1. */
export function writeElement(writer: MessageWriter, element: NftElement, position: number): void {
  const entry = writer.open(position);
  if (element.interval === "end") writer.u32Big(ELEMENT.flags, ELEMENT_FLAG.intervalEnd);
  writeValue(writer, ELEMENT.key, element.key);
  if (element.keyEnd !== undefined) writeValue(writer, ELEMENT.keyEnd, element.keyEnd);
  if (element.data instanceof Uint8Array) writeValue(writer, ELEMENT.data, element.data);
  else if (element.data !== undefined) writeVerdict(writer, ELEMENT.data, element.data);
  if (element.comment !== undefined || element.interval === "open")
    writer.bytes(ELEMENT.userdata, encodeUserdata(userdataOf(element)));
  writer.close(entry);
}

function userdataOf({ comment, interval }: NftElement): UserdataEntry[] {
  const entries: UserdataEntry[] = [];
  if (comment !== undefined) entries.push(commentEntry(comment));
  if (interval === "open") entries.push(numberEntry(OPEN_INTERVAL.type, OPEN_INTERVAL.value));
  return entries;
}
