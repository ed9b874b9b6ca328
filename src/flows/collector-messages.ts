/**
 * What the agent and its collector of flows tell each other: a line of JSON each, over the stdin and stdout of the collector.
 *
 *   agent ── settings, rules, names, resources ──> collector ── who has these addresses?, numbers in use, facts ──> agent
 */
import * as v from "valibot";
import { flowLossesSchema } from "./flow-record.ts";
import type { LinkAccess } from "./link-messages.ts";

/** Who has an address; `outside` if nobody does. */
export const endNameSchema = v.object({
  kind: v.picklist(["pod", "container", "host", "service", "network set", "outside"]),
  namespace: v.exactOptional(v.string()),
  name: v.exactOptional(v.string()),
  owner: v.exactOptional(v.object({ kind: v.string(), name: v.string() })),
  labels: v.exactOptional(v.record(v.string(), v.string())),
  node: v.exactOptional(v.string()),
  /** A workload or interface of this node. */
  isLocal: v.exactOptional(v.literal(true)),
  /** Of a pod or container, for `flows explain`: its record in the datastore, as JSON. */
  endpoint: v.exactOptional(v.string()),
});
export type EndName = Readonly<v.InferOutput<typeof endNameSchema>>;

/** The key by which the name of a Service is asked for: `10.96.0.1 6 443`. `protocol`: its IP number. */
export function serviceKey(address: string, protocol: number, port: number): string {
  return `${address} ${protocol} ${port}`;
}

export interface CollectorSettings {
  readonly node: string;
  /** UDP port of VXLAN: packets between nodes are no flows. */
  readonly vxlanPort: number;
  readonly historyMegabytes: number;
  readonly historyMilliseconds: number;
  /** Connections recorded one by one in a second; more are only in the roll-ups. */
  readonly mostPerSecond: number;
  /** JSON lines; `undefined`: none. */
  readonly logFile?: string;
}

export type ToCollector =
  | { readonly kind: "settings"; readonly settings: CollectorSettings }
  /** What the numbers in labels stand for: the comment of the rule. Before a rule with a new number is in the kernel. */
  | { readonly kind: "rules"; readonly rules: readonly (readonly [number: number, comment: string])[] }
  /** Those of them that accept for the sidecar of the destination, which decides about each request: all of them. */
  | { readonly kind: "rules with requests"; readonly numbers: readonly number[] }
  /**
   * Since this time every rule of the kernel that accepts writes its number, in milliseconds since 1970: what began before, and has
   * no label, is older than the switch.
   */
  | { readonly kind: "labels written"; readonly since: number }
  /** These numbers stand for nothing any more. */
  | { readonly kind: "rules gone"; readonly numbers: readonly number[] }
  /**
   * Answers, and later changes, of addresses that were asked for, and of all addresses of this node, which nobody has to ask
   * for. The key is an address, or for a Service, whose address alone says nothing, `serviceKey()`.
   */
  | { readonly kind: "names"; readonly names: readonly (readonly [key: string, name: EndName])[] }
  /** Resources that policy depends on, for `flows explain`; `value` absent: it is gone. */
  | {
      readonly kind: "resources";
      readonly resources: readonly { readonly kind: string; readonly key: string; readonly value?: string }[];
    }
  /**
   * How many packets more than the last time denying rules of the kernel have dropped, to know what was suppressed: [comment,
   * packets], of those that have dropped any.
   */
  | { readonly kind: "denied"; readonly counts: readonly (readonly [comment: string, packets: number])[] }
  /** Where the controllers are, whose questions it answers; `access` absent: there are none, or the host has no Kubernetes. */
  | { readonly kind: "link"; readonly access?: LinkAccess };

const keys = v.array(v.string());
const wholeNumber = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

export const fromCollectorSchema = v.variant("kind", [
  /** It waits for rules, names and resources. */
  v.object({ kind: v.literal("ready") }),
  v.object({ kind: v.literal("who"), keys }),
  /** The addresses are not needed any more. */
  v.object({ kind: v.literal("forget"), keys }),
  /** Every number that was in the label of a connection in one whole look at the connection table that began at `since`. */
  v.object({ kind: v.literal("numbers in use"), since: v.number(), numbers: v.array(wholeNumber) }),
  /** Once a second, for metrics: text in the format of Prometheus. */
  v.object({ kind: v.literal("facts"), losses: flowLossesSchema, metrics: v.string() }),
]);
export type FromCollector = Readonly<v.InferOutput<typeof fromCollectorSchema>>;
