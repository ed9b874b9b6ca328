/** The bugs that the simulation must find: what each must violate, and in which scripts that which it breaks happens. */
import type { ForeignChange, Operation, Script } from "../script/operation.ts";

export interface PlantedBug {
  /** Of the file beside this one, without `.patch`. */
  readonly patch: string;
  /** The invariant. Another violation does not count: it could have another cause. */
  readonly violates: string;
  /** Other scripts are not played. */
  readonly concerns: (script: Script) => boolean;
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    patch: "claim-confirmed-before-block",
    violates: "sound records",
    concerns: (script) => script.datastore !== "etcd" && count(script, "kill call") > 0,
  },
  {
    patch: "lost-race-taken-for-success",
    violates: "no living address freed",
    concerns: (script) => script.datastore !== "etcd" && script.operations.length > 40,
  },
  {
    patch: "stale-revision-ignored",
    violates: "no leaked record",
    concerns: (script) => script.operations.length > 40,
  },
  {
    patch: "claims-of-gone-node-kept",
    violates: "no leaked record",
    concerns: (script) => count(script, "delete node") > 0,
  },
  {
    patch: "deleted-record-kept-after-list",
    violates: "no leaked record",
    concerns: (script) => count(script, "compact datastore", "compact API") > 1,
  },
  {
    patch: "resumed-one-revision-too-late",
    violates: "no leaked record",
    concerns: (script) => count(script, "restart datastore", "cut") > 2,
  },
  {
    patch: "changed-copy-not-updated",
    violates: "what is asked for is copied",
    concerns: (script) => script.datastore !== "orchestrator" && count(script, "apply namespace", "apply policy") > 6,
  },
  {
    patch: "status-before-rules",
    violates: "endpoint status only after the rules",
    concerns: (script) => script.policySetupSeconds > 0 && count(script, "apply policy") > 0,
  },
  {
    patch: "policy-element-not-removed",
    violates: "no leftover in a kernel",
    concerns: (script) => count(script, "apply policy") > 0 && count(script, "delete pod") > 2,
  },
  {
    patch: "route-of-departed-node-kept",
    violates: "no leftover in a kernel",
    concerns: (script) => count(script, "delete node") > 1,
  },
  {
    patch: "deleted-route-not-restored",
    violates: "reachable where allowed",
    concerns: (script) => hasForeignChange(script, "delete a route"),
  },
  {
    patch: "forwarding-entry-not-restored",
    violates: "reachable where allowed",
    concerns: (script) =>
      script.pools[0]?.encapsulation === "VXLAN" && hasForeignChange(script, "delete a forwarding entry"),
  },
];

function count({ operations }: Script, ...kinds: readonly Operation["kind"][]): number {
  return operations.filter(({ kind }) => kinds.includes(kind)).length;
}

function hasForeignChange({ operations }: Script, what: ForeignChange): boolean {
  return operations.some((operation) => operation.kind === "foreign change" && operation.what === what);
}
