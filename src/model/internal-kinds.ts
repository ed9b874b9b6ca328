/**
 * The schemas of the internal kinds as custom resources, for the orchestrator's
 * API. Not on the plugin's path: blocks, affinities and handles are read and
 * written by their own files.
 */
import * as v from "valibot";
import { prefixField } from "./fields.ts";

const whole = v.pipe(v.number(), v.integer());
/** 64 bits: an int64 of the API, kept exact by `quoteSequenceNumbers` on this side. */
export const sequenceField = v.union([whole, v.string()]);

export const blockSchema = v.object({
  cidr: prefixField,
  affinity: v.nullish(v.string()),
  allocations: v.array(v.nullable(whole)),
  unallocated: v.array(whole),
  attributes: v.array(
    v.object({ handle_id: v.nullish(v.string()), secondary: v.exactOptional(v.record(v.string(), v.string())) }),
  ),
  sequenceNumber: v.exactOptional(sequenceField),
  sequenceNumberForAllocation: v.exactOptional(v.record(v.string(), sequenceField)),
  released: v.exactOptional(
    v.record(
      v.string(),
      v.object({ at: sequenceField, namespace: v.exactOptional(v.string()), network: v.exactOptional(v.string()) }),
    ),
  ),
  cooldownSeconds: v.exactOptional(whole),
  deleted: v.exactOptional(v.boolean()),
});

export const affinitySchema = v.object({
  /** `borrowed`: not a claim, but the record that the node has addresses in a block of another node. */
  state: v.picklist(["pending", "confirmed", "pendingDeletion", "borrowed"]),
  node: v.string(),
  cidr: prefixField,
  /** A string, as all writers of this resource use it. */
  deleted: v.picklist(["true", "false"]),
});

export const handleSchema = v.object({
  handleID: v.string(),
  block: v.record(v.string(), whole),
  deleted: v.exactOptional(v.boolean()),
});
