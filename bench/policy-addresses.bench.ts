/**
 * A policy of a tenant whose selectors select all pods of a cluster: what the compiler and the kernel need for it, and for
 * the next pod. In a network namespace of its own, as root:
 *
 *   unshare -n bun bench/policy-addresses.bench.ts PODS SELECTORS
 */
import { openKernelTable } from "../src/agent/policy/kernel-table.ts";
import { TableKeeper } from "../src/agent/policy/table-keeper.ts";
import { identity } from "../src/identity.ts";
import { ownSockets } from "../src/linux/netlink-socket.ts";
import { networkPolicy } from "../src/model/network-policy.ts";
import { workloadEndpoint } from "../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../src/policy/judge/resources.ts";
import { changesBetween, NO_RESOURCES } from "../test/support/policy-changes.ts";

const [pods = 1_000, selectors = 500] = process.argv.slice(2).map(Number);

function pod(index: number) {
  const namespace = index === 0 ? "tenant" : "shop";
  return workloadEndpoint.make(
    { name: `pod-${index}`, namespace, labels: { [`${identity.labelPrefix}namespace`]: namespace } },
    {
      ...{ node: index === 0 ? "here" : "there", interfaceName: `vend${index}` },
      ipNetworks: [`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}/32`],
    },
  );
}

const policy = networkPolicy.make(
  { name: "everybody", namespace: "tenant" },
  {
    ...{ tier: "default", types: ["Ingress"] },
    ingress: Array.from({ length: selectors }, (_, index) => ({
      action: "Allow",
      source: { namespaceSelector: `k${index} not in {'v'}` },
    })),
  },
);
const compiler = new PolicyCompiler({ node: "here" });
const kernel = openKernelTable(ownSockets);
const keeper = new TableKeeper({ compiler, kernel, isWanted: () => true, report: console.log });
let state: PolicyResources = NO_RESOURCES;

function change(what: string, now: PolicyResources): void {
  const begun = performance.now();
  keeper.update(changesBetween(state, now));
  state = now;
  const elements = compiler.table.sets.values().reduce((sum, set) => sum + set.elements.size, 0);
  const [milliseconds, resident] = [performance.now() - begun, process.memoryUsage().rss / 1e6];
  console.log(`${what}: ${milliseconds.toFixed(0)} ms, ${resident.toFixed(0)} MB resident, ${elements} elements`);
}

const endpoints = Array.from({ length: pods }, (_, index) => pod(index));
change(`${pods} pods`, { ...NO_RESOURCES, endpoints });
change(`a policy with ${selectors} selectors`, { ...state, networkPolicies: [policy] });
change("a pod ends", { ...state, endpoints: endpoints.slice(0, -1) });
change("a pod starts", { ...state, endpoints });
console.log(`problems: ${compiler.problems.length}`);
kernel.close();
