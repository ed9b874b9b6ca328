/**
 * One page of health. The server sends it again whenever it changes, a line of JSON each; the page replaces what it shows.
 * What the reader may not list is absent and named in `hidden`: no count tells of it.
 */
import * as v from "valibot";

export const STATES = ["ok", "warning", "failed", "unknown"] as const;
export type State = (typeof STATES)[number];

const problemSchema = v.object({
  state: v.picklist(["warning", "failed"]),
  /** What is wrong, with the name of what it is about. */
  message: v.string(),
  /** A command that fixes it, or that says more. */
  command: v.exactOptional(v.string()),
  /** What to do if no command does it. */
  remedy: v.exactOptional(v.string()),
  /** Milliseconds since 1970. */
  since: v.exactOptional(v.number()),
});

const partSchema = v.object({
  /** `datastore`, `controllers`, `operator`, `BGP` ... */
  name: v.string(),
  state: v.picklist(STATES),
  /** In a few words: "3 of 3 ready". */
  detail: v.string(),
  /** Milliseconds since 1970: when this was true. */
  knownAt: v.number(),
});

const nodeSchema = v.object({
  name: v.string(),
  state: v.picklist(STATES),
  /** Each word by word; an empty string is not known. */
  agent: v.string(),
  version: v.string(),
  addresses: v.array(v.string()),
  tunnel: v.string(),
  bgp: v.string(),
  knownAt: v.number(),
  problems: v.array(problemSchema),
});

const upgradeSchema = v.object({
  from: v.string(),
  to: v.string(),
  state: v.string(),
  steps: v.array(
    v.object({ name: v.string(), state: v.picklist(["done", "running", "waiting", "failed"]), detail: v.string() }),
  ),
});

export const healthSchema = v.object({
  /** Milliseconds since 1970. */
  at: v.number(),
  state: v.picklist(STATES),
  parts: v.array(partSchema),
  nodes: v.array(nodeSchema),
  /** Of the cluster; those of a node are with it. The gravest first. */
  problems: v.array(problemSchema),
  upgrade: v.exactOptional(upgradeSchema),
  /** What the reader may not see, in words: "nodes". */
  hidden: v.array(v.string()),
});
export type Health = Readonly<v.InferOutput<typeof healthSchema>>;
export type HealthProblem = Readonly<v.InferOutput<typeof problemSchema>>;
export type HealthPart = Readonly<v.InferOutput<typeof partSchema>>;
export type HealthNode = Readonly<v.InferOutput<typeof nodeSchema>>;
export type UpgradeProgress = Readonly<v.InferOutput<typeof upgradeSchema>>;
