import { identity } from "../identity.ts";

/** Annotation of a Node: the identity of the machine that registered it, so that two hosts cannot use one node name. */
export const MACHINE_ANNOTATION = `${identity.labelPrefix}machine`;

const HASH_LENGTH = 32;

/** Only a hash is recorded: the ID of a machine is not for others to read. */
export function hashMachineId(id: string): string {
  return new Bun.CryptoHasher("sha256").update(`${identity.product}:${id}`).digest("hex").slice(0, HASH_LENGTH);
}

/** Annotation of a Node: when that machine first registered it. Addresses that were assigned earlier may be another machine's. */
export const MACHINE_SINCE_ANNOTATION = `${identity.labelPrefix}machine-since`;
