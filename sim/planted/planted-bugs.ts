/** The bugs that the simulation must find: what each must violate, and in which scripts that which it breaks happens. */
import type { ScenarioName } from "../control/scenarios.ts";
import type { ForeignChange, Operation, Script } from "../script/operation.ts";

interface Planted {
  /** Of the file beside this one, without `.patch`. */
  readonly patch: string;
  /** The invariant; of a scenario: words of what it says. Another violation does not count: it could have another cause. */
  readonly violates: string;
}

interface PlantedInCluster extends Planted {
  /** Other scripts are not played. */
  readonly concerns: (script: Script) => boolean;
  /** In `sim/regressions`, played first: for what few seeds meet. */
  readonly script?: string;
}

interface PlantedInScenario extends Planted {
  readonly scenario: ScenarioName;
}

export type PlantedBug = PlantedInCluster | PlantedInScenario;

/** Longer than what looks unused is left alone. */
const LONG_GRACE_MILLISECONDS = 200_000;

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    patch: "claim-confirmed-before-block",
    violates: "sound records",
    concerns: (script) => script.datastore !== "etcd" && count(script, "kill call") > 0,
  },
  {
    patch: "lost-race-taken-for-success",
    violates: "belongs to",
    scenario: "allocators",
  },
  {
    patch: "retried-with-stale-value",
    violates: "everything comes about",
    concerns: (script) => script.calls === "server",
  },
  {
    patch: "endpoint-of-newer-sandbox-deleted",
    violates: "reachable where allowed",
    concerns: (script) => count(script, "lose sandbox") > 1,
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
    concerns: (script) => hasForeignChange(script, "delete all routes"),
  },
  {
    patch: "forwarding-entry-not-restored",
    violates: "reachable where allowed",
    concerns: (script) =>
      script.pools[0]?.encapsulation === "VXLAN" && hasForeignChange(script, "delete a forwarding entry"),
  },
  {
    patch: "watch-ended-at-once-not-noticed",
    violates: "watches are begun with pauses",
    concerns: (script) => count(script, "end watches") > 0,
  },
  {
    patch: "silent-watch-kept",
    violates: "agents hear of the datastore",
    concerns: (script) => script.datastore === "orchestrator" && count(script, "lose watches") > 1,
  },
  {
    patch: "list-of-any-age",
    violates: "no agent goes back",
    concerns: (script) => script.datastore === "orchestrator" && count(script, "kill agent") > 0,
  },
  {
    patch: "policy-removed-at-start",
    violates: "nothing denied is delivered",
    concerns: (script) => count(script, "kill agent") > 0,
  },
  {
    patch: "nat-written-by-served-add",
    violates: "served calls leave NAT to the agent",
    concerns: (script) => script.calls === "server" && changesNat(script),
    script: "add-that-has-read-older-pools-than-the-agent",
  },
  {
    patch: "addresses-of-existing-nodes-released",
    violates: "no living address freed",
    concerns: (script) => count(script, "lose mirror") > 0,
  },
  {
    patch: "addresses-of-ending-pods-released",
    violates: "no living address freed",
    concerns: ({ operations }) =>
      operations.some((each) => each.kind === "delete pod" && (each.grace ?? 0) > LONG_GRACE_MILLISECONDS),
  },
  {
    patch: "annotated-addresses-believed",
    violates: "no address leads to another pod",
    concerns: ({ datastore, operations }) =>
      datastore === "orchestrator" &&
      operations.some((each) => each.kind === "annotate pod" && each.withAddressOf !== undefined),
  },
  {
    patch: "cluster-not-compared",
    violates: "no copied policy lost",
    concerns: (script) => script.datastore !== "orchestrator" && count(script, "mislead controllers") > 0,
  },
  {
    // Generated scripts have too few pods for the brake.
    patch: "brake-not-asked",
    violates: "no living address freed",
    concerns: () => false,
    script: "nodes-not-listed-after-a-restore-of-too-little",
  },
  {
    patch: "rest-not-waited-for",
    violates: "released addresses rest",
    concerns: ({ operations }) => operations.some((each) => each.kind === "create pod" && each.asksFor !== undefined),
  },
  {
    patch: "connections-of-former-pods-kept",
    violates: "connections of former pods are forgotten",
    concerns: (script) =>
      script.flavour === "realistic" && count(script, "open connection") > 0 && hasPolicyOfPeers(script),
  },
  {
    patch: "expectations-of-copies-not-sent",
    violates: "sound records",
    concerns: (script) =>
      script.datastore === "orchestrator" && script.calls === "server" && count(script, "delete pool") > 0,
    script: "range-used-again-while-a-watch-stalls",
  },
  {
    patch: "kept-address-freed-by-gc",
    violates: "kept addresses stay",
    concerns: (script) =>
      count(script, "collect garbage") > 0 &&
      script.operations.some((each) => each.kind === "create pod" && each.keeps === true),
  },
  {
    patch: "kept-address-freed-with-its-container",
    violates: "was lost for",
    scenario: "kept-addresses",
  },
  {
    patch: "kept-address-taken-from-its-container",
    violates: "belongs to",
    scenario: "kept-addresses",
  },
  {
    patch: "kept-address-freed-although-its-owner-exists",
    violates: "and its owner exists",
    scenario: "kept-addresses",
  },
  {
    patch: "rest-by-the-clock-of-the-node",
    violates: "does not rest",
    scenario: "kept-addresses",
  },
  {
    patch: "resting-address-of-a-list-assigned",
    violates: "does not rest",
    scenario: "kept-addresses",
  },
  {
    patch: "list-not-looked-at-to-its-end",
    violates: "is ready at rest",
    scenario: "kept-addresses",
  },
  {
    patch: "leader-goes-on-without-renewal",
    violates: "write at the same time",
    scenario: "controllers",
  },
  {
    patch: "renewal-counted-from-its-answer",
    violates: "write at the same time",
    scenario: "controllers",
  },
  {
    patch: "edited-object-not-repaired",
    violates: "not as undisturbed",
    scenario: "operator",
  },
  {
    patch: "step-recorded-before-it-is-done",
    violates: "not as undisturbed",
    scenario: "upgrade",
  },
  {
    patch: "lost-lease-ends-the-run",
    violates: "has given up its Lease",
    scenario: "upgrade",
  },
  {
    patch: "left-node-holds-the-lock",
    violates: "holds the lock",
    scenario: "stalled-upgrade",
  },
  {
    patch: "former-storage-unlocked-with-the-present",
    violates: "both storages are unlocked",
    scenario: "stalled-upgrade",
  },
  {
    patch: "unlock-by-hand-not-noticed",
    violates: "is not locked again",
    scenario: "stalled-upgrade",
  },
  {
    patch: "used-copies-replaced",
    violates: "is held by",
    scenario: "stalled-upgrade",
  },
  {
    patch: "used-copies-deleted-by-rollback",
    violates: "was deleted by the rollback",
    scenario: "stalled-upgrade",
  },
  {
    patch: "late-adds-not-copied",
    violates: "the address of a late ADD is lost",
    scenario: "stalled-upgrade",
  },
];

function count({ operations }: Script, ...kinds: readonly Operation["kind"][]): number {
  return operations.filter(({ kind }) => kinds.includes(kind)).length;
}

function changesNat({ operations }: Script): boolean {
  return operations.some((operation) => operation.kind === "apply pool" && operation.pool.natOutgoing !== undefined);
}

function hasForeignChange({ operations }: Script, what: ForeignChange): boolean {
  return operations.some((operation) => operation.kind === "foreign change" && operation.what === what);
}

/** An address is used again by a pod that the peer of the former one does not let in. */
function hasPolicyOfPeers({ operations }: Script): boolean {
  return operations.some((operation) => operation.kind === "apply policy" && operation.name === "peers");
}
