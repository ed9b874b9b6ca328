/** The part of the protobuf wire format that a CRI client needs: numbers, text and nested messages. */
export type Field = readonly [number: number, value: FieldValue];
type FieldValue = number | string | Uint8Array;

export function encodeMessage(fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  for (const [number, value] of fields) {
    if (typeof value === "number") {
      bytes.push(...varint(number * 8), ...varint(value));
      continue;
    }
    const content = typeof value === "string" ? new TextEncoder().encode(value) : value;
    bytes.push(...varint(number * 8 + 2), ...varint(content.length), ...content);
  }
  return Uint8Array.from(bytes);
}

/** A map is a repeated message of key 1 and value 2. */
export function encodeMap(number: number, map: Readonly<Record<string, string>>): readonly Field[] {
  return Object.entries(map).map(([key, value]) => [
    number,
    encodeMessage([
      [1, key],
      [2, value],
    ]),
  ]);
}

export interface Message {
  number(field: number): number;
  text(field: number): string;
  texts(field: number): readonly string[];
  message(field: number): Message;
  messages(field: number): readonly Message[];
  map(field: number): ReadonlyMap<string, string>;
}

/** Absent fields are decoded as zero, "" or an empty message, as in proto3. */
export function decodeMessage(bytes: Uint8Array): Message {
  const fields = [...readFields(bytes)];
  const last = (wanted: number) => fields.findLast(([number]) => number === wanted)?.[1];
  const nested = (wanted: number) =>
    fields.flatMap(([number, value]) =>
      number === wanted && value instanceof Uint8Array ? [decodeMessage(value)] : [],
    );
  const text = (wanted: number) => {
    const value = last(wanted);
    return value instanceof Uint8Array ? new TextDecoder().decode(value) : "";
  };
  return {
    number(wanted) {
      const value = last(wanted);
      return typeof value === "number" ? value : 0;
    },
    text,
    texts: (wanted) =>
      fields.flatMap(([number, value]) =>
        number === wanted && value instanceof Uint8Array ? [new TextDecoder().decode(value)] : [],
      ),
    message: (wanted) => nested(wanted).at(-1) ?? decodeMessage(new Uint8Array()),
    messages: nested,
    map: (wanted) => new Map(nested(wanted).map((entry) => [entry.text(1), entry.text(2)])),
  };
}

function* readFields(bytes: Uint8Array): Generator<readonly [number, number | Uint8Array]> {
  let at = 0;
  const readVarint = () => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error(`Cannot read protobuf: it ends inside a number at ${at}`);
      value += (byte % 128) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const kind = tag % 8;
    const number = Math.floor(tag / 8);
    if (kind === 0) {
      yield [number, readVarint()];
      continue;
    }
    const length = kind === 2 ? readVarint() : kind === 1 ? 8 : kind === 5 ? 4 : Number.NaN;
    if (!(at + length <= bytes.length)) throw new Error(`Cannot read protobuf: field ${number} has wire type ${kind}`);
    yield [number, bytes.subarray(at, at + length)];
    at += length;
  }
}

function varint(value: number): readonly number[] {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`Cannot encode ${value} as a varint`);
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}
