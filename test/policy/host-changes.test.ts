/** No forwarded packet that policies of hosts allow before and after a change is lost during it, and no other passes. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type KernelTable, openKernelTable } from "../../src/agent/policy/kernel-table.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import type { GlobalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { globalPolicy } from "../support/global-policy.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { proofSize } from "../support/proof-size.ts";
import { type FloodSite, floodProblem, NONE_LOST, OPEN, openFloodSite } from "./packet-flood.ts";
import { steppedCompiler } from "./stepped-compiler.ts";

const DURATION = proofSize({ everyDay: 500, soak: 5_000 });
const NODE = "here";

const host = (name: string, interfaceName: string) => hostEndpoint.make({ name }, { node: NODE, interfaceName });
const rule = (action: "Allow" | "Deny", ...ports: readonly number[]) => ({
  ...{ action, protocol: "UDP", destination: { ports } },
});
const forwarding = (name: string, ...ingress: readonly object[]) =>
  globalPolicy(name, { applyOnForward: true, types: ["Ingress"], ingress });
const preDNAT = (...ingress: readonly object[]) =>
  globalPolicy("pre", { preDNAT: true, applyOnForward: true, types: ["Ingress"], ingress });
const doNotTrack = (...ingress: readonly object[]) =>
  globalPolicy("raw", { doNotTrack: true, applyOnForward: true, types: ["Ingress"], ingress });
const labelled = (name: string, interfaceName: string) =>
  hostEndpoint.make({ name, labels: { name } }, { node: NODE, interfaceName });
const selecting = (name: string, ...ingress: readonly object[]) =>
  globalPolicy(name, { selector: `name == '${name}'`, applyOnForward: true, types: ["Ingress"], ingress });
const every = (round: number, ...policies: readonly GlobalNetworkPolicy[]) => (round % 2 === 0 ? [] : policies);
const other = (round: number) => 6_000 + (round % 2);

const ETH0 = host("one", "eth0");
const OPENED = forwarding("open", rule("Allow", OPEN));
const CLOSED = forwarding("closed");
const withPolicies = (...globalNetworkPolicies: readonly GlobalNetworkPolicy[]) => ({
  hostEndpoints: [ETH0],
  globalNetworkPolicies,
});

/** What the resources are in each round: the open port is always reached through eth0, and nothing else. */
const CHANGES = [
  [
    "the host endpoint names its interface, or is for all",
    (round: number) => ({
      hostEndpoints: [host("one", round % 2 === 0 ? "eth0" : "*")],
      globalNetworkPolicies: [OPENED],
    }),
  ],
  [
    'beside "*", another host endpoint has the interface, or none',
    (round: number) => ({
      hostEndpoints: [host("all", "*"), ...(round % 2 === 0 ? [] : [ETH0])],
      globalNetworkPolicies: [OPENED],
    }),
  ],
  [
    'the host endpoint of the interface, or "*", each with policies of its own',
    (round: number) => ({
      hostEndpoints: round % 2 === 0 ? [labelled("named", "eth0")] : [labelled("others", "*")],
      globalNetworkPolicies: ["named", "others"].map((name) => selecting(name, rule("Allow", OPEN))),
    }),
  ],
  [
    "there are policies before routing, or none",
    (round: number) =>
      withPolicies(
        OPENED,
        ...every(round, preDNAT(rule("Deny", 99))),
        ...every(round >> 1, doNotTrack(rule("Deny", 99))),
      ),
  ],
  [
    "the rules of a preDNAT policy",
    (round: number) => withPolicies(CLOSED, preDNAT(rule("Allow", OPEN, other(round)))),
  ],
  [
    "the rules of a doNotTrack policy",
    (round: number) => withPolicies(CLOSED, doNotTrack(rule("Allow", OPEN, other(round)))),
  ],
] as const;

describe.skipIf(floodProblem !== undefined)(
  `forwarded packets while policies of hosts change${floodProblem === undefined ? "" : ` (skipped: ${floodProblem})`}`,
  () => {
    let site: FloodSite;
    let kernel: KernelTable;
    beforeAll(() => {
      site = openFloodSite("hostflood", ["eth0", "eth1"]);
    });
    afterAll(() => site[Symbol.dispose]());
    beforeEach(() => {
      kernel = insideNetns(site.host.path, () => openKernelTable(ownSockets));
    });
    afterEach(() => kernel.close());

    for (const [title, of] of CHANGES) {
      test(`nothing is lost and nothing passes: ${title}`, async () => {
        const { compiler, next } = steppedCompiler(NODE, of);
        insideNetns(site.host.path, () => kernel.replace(compiler.table));

        const { lost, leaked, sent, changes } = await site.flood(DURATION, () => {
          const refusal = kernel.change(compiler.table, next());
          if (refusal !== undefined) throw refusal.error;
        });

        expect({ lost, leaked }).toEqual({ lost: NONE_LOST, leaked: 0 });
        expect(Math.min(sent, changes)).toBeGreaterThan(3);
      });
    }
  },
);
