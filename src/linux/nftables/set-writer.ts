/** Encodes the description of a set, with the user data that `nft` needs to print it. Pure. */
import type { MessageWriter } from "../netlink/message-writer.ts";
import { byteOrder, fieldLength, typeLength, typeNumber } from "./data-type.ts";
import type { NftSet, SetShape } from "./set.ts";
import { encodeComment, encodeUserdata, numberEntry, SET_COMMENT, type UserdataEntry } from "./userdata.ts";
import * as wire from "./wire.ts";

/** A named or an anonymous set. */
export type AnySet = SetShape & Pick<Partial<NftSet>, "comment" | "timeoutMilliseconds">;

/** How a message refers to a set: by name, and to a set of the same batch also by number. */
export interface SetHandle {
  readonly name: string;
  readonly id?: number;
}

/** `flags`: in addition to those of the shape. */
export function writeSet(writer: MessageWriter, set: AnySet, handle: Required<SetHandle>, flags: number): void {
  writer.text(wire.SET.name, handle.name);
  writer.u32Big(wire.SET.flags, flags | shapeFlags(set));
  writer.u32Big(wire.SET.keyType, typeNumber(set.key));
  writer.u32Big(wire.SET.keyLength, typeLength(set.key));
  if (set.data !== undefined) {
    writer.u32Big(wire.SET.dataType, set.data === "verdict" ? wire.VERDICT_TYPE : typeNumber(set.data));
    writer.u32Big(wire.SET.dataLength, set.data === "verdict" ? 0 : typeLength(set.data));
  }
  writer.u32Big(wire.SET.id, handle.id);
  if (set.timeoutMilliseconds !== undefined) writer.u64Big(wire.SET.timeout, BigInt(set.timeoutMilliseconds));
  if (set.holdsIntervals === true && set.key.length > 1) writeFieldLengths(writer, set);
  writer.bytes(wire.SET.userdata, setUserdata(set));
}

function shapeFlags({ key, data, holdsIntervals, timeoutMilliseconds }: AnySet): number {
  const { map: isMap, timeout, dynamic } = wire.SET_FLAG;
  const map = (data === undefined ? 0 : isMap) | (timeoutMilliseconds === undefined ? 0 : timeout | dynamic);
  if (holdsIntervals !== true) return map;
  return map | wire.SET_FLAG.interval | (key.length > 1 ? wire.SET_FLAG.concatenation : 0);
}

/** The kernel compares ranges field by field. */
function writeFieldLengths(writer: MessageWriter, { key }: SetShape): void {
  const description = writer.open(wire.SET.description);
  const concatenation = writer.open(wire.SET_DESCRIPTION.concatenation);
  for (const field of key) {
    const entry = writer.open(wire.LIST_ENTRY);
    writer.u32Big(wire.SET_DESCRIPTION.fieldLength, fieldLength(field));
    writer.close(entry);
  }
  writer.close(concatenation);
  writer.close(description);
}

const ENTRY = { keyOrder: 0, dataOrder: 1, keyTypeof: 3, dataTypeof: 4, dataInterval: 6 } as const;
// `nft` marks a concatenation with this empty expression.
const CONCATENATION = Uint8Array.fromHex("00040d0000000100");

function setUserdata(set: AnySet): Uint8Array {
  const shape = shapeUserdata(set);
  if (set.comment === undefined) return shape;
  const comment = encodeComment(set.comment, SET_COMMENT);
  const bytes = new Uint8Array(shape.length + comment.length);
  bytes.set(shape);
  bytes.set(comment, shape.length);
  return bytes;
}

const shapes = new Map<string, Uint8Array>();

/** Of the types alone: a table has many sets, but few types of them. */
function shapeUserdata({ key, data }: SetShape): Uint8Array {
  const identity = `${key.join()} ${data}`;
  const known = shapes.get(identity);
  if (known !== undefined) return known;
  const dataFields = data === "verdict" ? [] : (data ?? []);
  const entries: UserdataEntry[] = [numberEntry(ENTRY.keyOrder, byteOrder(key))];
  if (data !== undefined) entries.push(numberEntry(ENTRY.dataOrder, byteOrder(dataFields)));
  if (key.length > 1) entries.push({ type: ENTRY.keyTypeof, value: CONCATENATION });
  if (dataFields.length > 1) entries.push({ type: ENTRY.dataTypeof, value: CONCATENATION });
  if (data !== undefined) entries.push(numberEntry(ENTRY.dataInterval, 0));
  const bytes = encodeUserdata(entries);
  shapes.set(identity, bytes);
  return bytes;
}
