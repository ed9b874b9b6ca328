/**
 * The schemas of the internal kinds as custom resources, for the orchestrator's
 * API. Not on the plugin's path: blocks, affinities and handles are read and
 * written by their own files.
 */
import * as v from "valibot";

const whole = v.pipe(v.number(), v.integer());
/** 64 bits: an int64 of the API, kept exact by `quoteSequenceNumbers` on this side. */
const sequence = v.union([whole, v.string()]);

export const blockSchema = v.object({
  cidr: v.string(),
  affinity: v.nullish(v.string()),
  allocations: v.array(v.nullable(whole)),
  unallocated: v.array(whole),
  attributes: v.array(
    v.object({ handle_id: v.nullish(v.string()), secondary: v.exactOptional(v.record(v.string(), v.string())) }),
  ),
  sequenceNumber: v.exactOptional(sequence),
  sequenceNumberForAllocation: v.exactOptional(v.record(v.string(), sequence)),
  deleted: v.exactOptional(v.boolean()),
});

export const affinitySchema = v.object({
  state: v.string(),
  node: v.string(),
  cidr: v.string(),
  /** A string, as all writers of this resource use it. */
  deleted: v.picklist(["true", "false"]),
});

export const handleSchema = v.object({
  handleID: v.string(),
  block: v.record(v.string(), whole),
  deleted: v.exactOptional(v.boolean()),
});
