/** Reads what an ADD recorded (record-file.ts): for the restore and for GC, as no ADD or DEL needs it. */
import * as v from "valibot";
import { type Address, type Family, parseAddress } from "../../ip/address.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import type { PortRecord, RecordSet } from "./port-records.ts";
import type { RecordedPorts } from "./record-file.ts";

const ADDRESS = v.pipe(
  v.string(),
  v.transform((text) => parseAddress(text)),
  v.custom<Address>((address) => address !== undefined, "not an IP address"),
);

const SCHEMA = v.object({
  owner: v.string(),
  netns: v.string(),
  hostNetns: v.optional(v.string()),
  records: v.array(
    v.variant("kind", [
      v.object({
        kind: v.literal("port"),
        protocol: v.number(),
        hostAddress: ADDRESS,
        hostPort: v.number(),
        podAddress: ADDRESS,
        podPort: v.number(),
        isLoopbackLeft: v.optional(v.literal(true)),
      }),
      v.object({ kind: v.literal("source"), source: ADDRESS, length: v.number(), podAddress: ADDRESS }),
    ]),
  ),
  loopback: v.optional(
    v.object({
      name: v.string(),
      index: v.number(),
      isShared: v.boolean(),
      isUplink: v.boolean(),
      isNoted: v.boolean(),
    }),
  ),
});

export interface ReadRecord {
  /** To find out later whether it was replaced. */
  readonly text: string;
  readonly recorded: RecordedPorts;
}

/** `undefined` if there is no such file. Throws if it is not a record. */
export function readRecord(
  folder: FileFolder,
  { name, id }: { readonly name: string; readonly id: Uint8Array },
): ReadRecord | undefined {
  const text = readRecordText(folder, name);
  return text === undefined ? undefined : { text, recorded: decodeRecord(text, id) };
}

/** Throws if it is not a record. */
function decodeRecord(text: string, id: Uint8Array): RecordedPorts {
  const { owner, netns, hostNetns, records, loopback } = v.parse(SCHEMA, JSON.parse(text));
  const decoded = records.map((record): PortRecord => {
    const { family } = record.podAddress;
    if (record.kind === "source") {
      const { kind, ...masqueraded } = record;
      return { kind, masqueraded: { family, ...masqueraded } };
    }
    const { kind, isLoopbackLeft, ...claim } = record;
    return { kind, claim: { family, ...claim, ...(isLoopbackLeft && { isLoopbackLeft }) } };
  });
  const recordSets = ([4, 6] as const).flatMap((family): readonly RecordSet[] => {
    const ofFamily = decoded.filter((record) => familyOf(record) === family);
    return ofFamily.length === 0 ? [] : [{ family, owner: { id, name: owner }, netns, records: ofFamily }];
  });
  return { recordSets, loopback, hostNetns };
}

function familyOf(record: PortRecord): Family {
  return record.kind === "port" ? record.claim.family : record.masqueraded.family;
}

/** `undefined` if there is no such file: a DEL may have removed it since the folder was listed. */
export function readRecordText(folder: FileFolder, name: string): string | undefined {
  try {
    return folder.read(name);
  } catch (failure) {
    if (failure instanceof Error && "code" in failure && failure.code === "ENOENT") return undefined;
    throw failure;
  }
}
