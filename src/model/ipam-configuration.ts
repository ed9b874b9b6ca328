/**
 * IPAMConfiguration: how blocks are allocated to nodes, cluster-wide.
 *
 * The only public kind that is stored neither under the resources' path nor in
 * their format: it is stored at `ipam/v2/config`, with its own field names.
 */
import * as v from "valibot";
import { PluginError } from "../errors.ts";
import { PRODUCT_API } from "../identity.ts";
import { durationField } from "./duration-field.ts";
import { cooldownField } from "./fields.ts";
import { formatProblems } from "./problem.ts";
import { defineResource, type Resource, type ResourceCodec } from "./resource.ts";
import { decodeShape, keepUnknownFields, withoutNulls } from "./shape.ts";
import { parseStored } from "./stored.ts";

const blockLimit = v.pipe(
  v.number(),
  v.integer("must be a whole number; use 0 for the default limit"),
  v.minValue(0, "is negative; use 0 for the default limit"),
  v.maxValue(2 ** 31 - 1, "is out of range; use at most 2147483647, or 0 for the default limit"),
);

const specSchema = v.object({
  strictAffinity: v.optional(v.boolean(), false),
  autoAllocateBlocks: v.optional(v.boolean(), true),
  maxBlocksPerHost: v.optional(blockLimit, 0),
  /** Of pools without a setting of their own. Absent: 0. */
  cooldownSeconds: v.exactOptional(cooldownField),
  /** For how long annotations may have addresses kept. Absent: a week. 0: without limit. */
  longestKeepFor: v.exactOptional(durationField("168h")),
});

const storedSchema = v.object({
  strict_affinity: v.optional(v.boolean(), false),
  auto_allocate_blocks: v.optional(v.boolean(), false),
  maxBlocksPerHost: v.optional(v.pipe(v.number(), v.integer()), 0),
  cooldownSeconds: v.exactOptional(v.pipe(v.number(), v.integer())),
  longestKeepFor: v.exactOptional(v.string()),
});

export type IPAMConfiguration = Resource<"IPAMConfiguration", Readonly<v.InferOutput<typeof specSchema>>>;

const asResource = defineResource({
  kind: "IPAMConfiguration",
  api: PRODUCT_API,
  namespaced: false,
  onlyName: "default",
  spec: specSchema,
  complete: (spec): IPAMConfiguration["spec"] => spec,
});

export const ipamConfiguration: ResourceCodec<IPAMConfiguration> = {
  ...asResource,
  read: readConfiguration,
  write: writeConfiguration,
};

/** Used if no configuration is stored. */
export const DEFAULT_IPAM_CONFIGURATION: IPAMConfiguration = asResource.make(
  { name: "default" },
  { strictAffinity: false, autoAllocateBlocks: true, maxBlocksPerHost: 0 },
);

function writeConfiguration({ spec }: IPAMConfiguration, before?: string): string {
  const stored = {
    strict_affinity: spec.strictAffinity,
    auto_allocate_blocks: spec.autoAllocateBlocks,
    maxBlocksPerHost: spec.maxBlocksPerHost,
    ...(spec.cooldownSeconds === undefined ? {} : { cooldownSeconds: spec.cooldownSeconds }),
    ...(spec.longestKeepFor === undefined ? {} : { longestKeepFor: spec.longestKeepFor }),
  };
  return JSON.stringify(before === undefined ? stored : keepUnknownFields(storedSchema, JSON.parse(before), stored));
}

function readConfiguration(text: string, key: string): IPAMConfiguration {
  const stored = decodeShape(storedSchema, withoutNulls(parseStored(text, "IPAMConfiguration", key)));
  if (!stored.ok) {
    throw new PluginError(
      "record-malformed",
      `Cannot read IPAMConfiguration at "${key}": ${formatProblems(stored.problems)}`,
    );
  }
  const {
    strict_affinity,
    auto_allocate_blocks,
    maxBlocksPerHost,
    cooldownSeconds,
    longestKeepFor = "",
  } = stored.value;
  const spec = {
    strictAffinity: strict_affinity,
    autoAllocateBlocks: auto_allocate_blocks,
    maxBlocksPerHost,
    ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
    ...(longestKeepFor === "" ? {} : { longestKeepFor }),
  };
  return asResource.make({ name: "default" }, spec);
}
