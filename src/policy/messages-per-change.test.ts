/** What the kernel is sent for a change does not grow with the cluster. */
import { expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { LOAD_NODE, localEndpoint, policyLoad, policyOf, remoteEndpoint } from "../../test/support/policy-load.ts";
import { encodeBatch } from "../linux/nftables/batch-writer.ts";
import { globalNetworkPolicy } from "../model/global-network-policy.ts";
import { PolicyCompiler } from "./compile/compiler.ts";
import type { PolicyResources } from "./judge/resources.ts";
import { tableBatches } from "./table/table-changes.ts";

const TABLE = { family: "inet", name: "policy" } as const;
const POLICIES = 200;
const POD_COUNTS = [1_000, 10_000];
const NEW = 60_000;
/** Another application in the namespace of application 0. */
const OTHER = 100;

/** Allows every pod, so that one set contains the whole cluster. */
const FROM_EVERYWHERE = globalNetworkPolicy.make(
  { name: "from-everywhere" },
  {
    tier: "default",
    types: ["Ingress"],
    ingress: [{ action: "Allow", source: { selector: "has(app)" } }],
    doNotTrack: false,
    preDNAT: false,
    applyOnForward: false,
  },
);

type Resources = Partial<PolicyResources>;

interface CountedChange {
  readonly title: string;
  readonly before?: Resources;
  readonly after?: Resources;
  /** One if absent. */
  readonly batches?: number;
  readonly messages: number;
}

const remote = { endpoints: [remoteEndpoint(NEW, 0)] };
const relabelledRemote = { endpoints: [remoteEndpoint(NEW, OTHER)] };
const local = { endpoints: [localEndpoint(NEW, 0)] };
const relabelledLocal = { endpoints: [localEndpoint(NEW, OTHER)] };
const policy = (port: number) => ({ networkPolicies: [policyOf(0, { policies: POLICIES, port })] });

/** Too many to be compared one by one. */
const ports = (first: number) => ({
  globalNetworkPolicies: [
    globalNetworkPolicy.make(
      { name: "long-list" },
      {
        ...FROM_EVERYWHERE.spec,
        ingress: [
          {
            action: "Allow",
            protocol: "TCP",
            destination: { ports: Array.from({ length: 20 }, (_, index) => first + 2 * index) },
          },
        ],
      },
    ),
  ],
});

/** One after another. */
const CHANGES: readonly CountedChange[] = [
  // Its address in the set of its application, and in the set of all.
  { title: "a remote pod is created", after: remote, messages: 2 },
  { title: "a remote pod is relabelled", before: remote, after: relabelledRemote, messages: 2 },
  { title: "a remote pod is deleted", before: relabelledRemote, messages: 2 },
  // Its chain is emptied, and gets a rule for each IP family.
  { title: "a policy is edited", before: policy(80), after: policy(81), messages: 3 },
  // The new set with its elements; then the emptied chain, a rule, and the removal of the former set.
  { title: "a long list of ports is edited", before: ports(0), after: ports(1), batches: 2, messages: 5 },
  // In addition its interface, in the maps of both directions.
  { title: "a local pod is created", after: local, messages: 4 },
  { title: "a local pod is relabelled", before: local, after: relabelledLocal, messages: 4 },
  { title: "a local pod is deleted", before: relabelledLocal, messages: 4 },
];

for (const pods of POD_COUNTS) {
  test(`with ${pods} pods, a change needs as many messages as with any other number`, () => {
    const compiler = new PolicyCompiler({ node: LOAD_NODE, dropGroup: 7 });
    const load = policyLoad({ locals: POLICIES, remotes: pods, policies: POLICIES });
    compiler.update(
      changesBetween(NO_RESOURCES, {
        ...load,
        globalNetworkPolicies: [FROM_EVERYWHERE, ...ports(0).globalNetworkPolicies],
      }),
    );
    compiler.takeDelta();

    const counted = CHANGES.map(({ title, before, after }) => {
      compiler.update(changesBetween({ ...NO_RESOURCES, ...before }, { ...NO_RESOURCES, ...after }));
      const batches = tableBatches(TABLE, compiler.table, compiler.takeDelta());
      const messages = batches.reduce((sum, batch) => sum + encodeBatch(batch, 1).changeOfMessage.length, 0);
      return { title, batches: batches.length, messages };
    });

    expect(counted).toEqual(CHANGES.map(({ title, batches = 1, messages }) => ({ title, batches, messages })));
  });
}
