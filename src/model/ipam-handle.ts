/** IPAMHandle: how many addresses of which blocks one attachment has. Counts may be too high after a crash, never too low. */
import { PluginError } from "../errors.ts";
import { isObject } from "./shape.ts";
import { parseStored } from "./stored.ts";

export interface IPAMHandle {
  readonly handleId: string;
  /** Number of addresses, by the block's CIDR. */
  readonly blocks: Readonly<Record<string, number>>;
  readonly deleted: boolean;
}

export function readHandle(text: string, key: string, handleId: string): IPAMHandle {
  const value = parseStored(text, "IPAMHandle", key);
  if (!isObject(value)) throw malformed(key, "it is not an object");

  const blocks = value["block"] ?? {};
  if (!isCounts(blocks)) throw malformed(key, '"block" is not an object with whole numbers as values');
  return { handleId, blocks, deleted: value["deleted"] === true };
}

export function writeHandle({ blocks, deleted }: Pick<IPAMHandle, "blocks" | "deleted">): string {
  return JSON.stringify({ block: blocks, deleted });
}

function isCounts(value: unknown): value is Readonly<Record<string, number>> {
  return isObject(value) && Object.values(value).every((count) => typeof count === "number" && Number.isInteger(count));
}

function malformed(key: string, reason: string): PluginError {
  return new PluginError("record-malformed", `Cannot read IPAMHandle at "${key}": ${reason}`);
}
