/**
 * What one tenant's large policies cost, and how long another tenant's change waits for them: the built agent on a private
 * host with a real etcd and the real kernel. Policies without a namespace have no limits, so they show what
 * grows.
 */
import type { Growth, Tenants, WaitingTenant } from "../../sim/scale/measured.ts";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { identity } from "../../src/identity.ts";
import { openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { listSets } from "../../src/linux/nftables/read.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY } from "../../src/model/kinds.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import type { PolicyRule } from "../../src/model/policy-rule.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { localEndpoint, policyLoad, policyOf } from "../../test/support/policy-load.ts";
import { deleteRecord, type EtcdRecord, putRecord, putRecords } from "./etcd-records.ts";
import { ownPolicySystem, ownRecord } from "./own-policy-system.ts";
import { makePolicyLinks } from "./policy-links.ts";
import { startSystem } from "./policy-measurements.ts";
import type { PolicySystem } from "./policy-system.ts";
import { treeCpuMilliseconds } from "./process-tree.ts";

/** Of the other tenants: each policy selects one pod here, and allows two. */
const OTHERS = { locals: 100, remotes: 100, policies: 100 };
const NAMESPACES = 10;
const GROWING = [250, 500, 1_000, 2_000, 4_000, 7_000];

type Rules = (count: number) => PolicyRule[];
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);
const allowing = (sources: readonly NonNullable<PolicyRule["source"]>[]): PolicyRule[] =>
  sources.map((source) => ({ action: "Allow", source }));
/** Each of two pods. */
const selectors: Rules = (count) =>
  allowing(upTo(count).map((each) => ({ selector: `app == 'app${each % OTHERS.policies}' && !has(k${each})` })));
/** Compared in the rule, without a set. */
const addresses: Rules = (count) =>
  allowing(
    upTo(count).map((each) => ({ nets: [0, 1].map((host) => `10.${64 + host}.${each >> 8}.${each & 255}/32`) })),
  );
const exceptions: Rules = (count) =>
  allowing(
    upTo(count).map((each) => ({
      nets: ["10.0.0.0/8"],
      notNets: upTo(250).map((net) => `10.${each}.${net}.0/25`),
    })),
  );
interface Hostile {
  readonly title: string;
  readonly rules: PolicyRule[];
  readonly policiesPerNamespace: number;
  /** Of each policy, in the kernel. */
  readonly sets: number;
}

/** In each of ten namespaces. */
const HOSTILE: readonly Hostile[] = [
  { title: "none", rules: [], policiesPerNamespace: 0, sets: 0 },
  { title: "7,000 selectors: beyond the limit, it denies", rules: selectors(7_000), policiesPerNamespace: 1, sets: 0 },
  { title: "500 selectors", rules: selectors(500), policiesPerNamespace: 1, sets: 1000 },
  { title: "1,000 selectors: at the limit", rules: selectors(1_000), policiesPerNamespace: 1, sets: 2000 },
  { title: "10,000 addresses: at the limit", rules: addresses(5_000), policiesPerNamespace: 1, sets: 0 },
  { title: "200 networks with 250 exceptions each", rules: exceptions(200), policiesPerNamespace: 1, sets: 200 },
];

export async function measureTenants(means: { readonly folder: string; readonly endpoint: string }): Promise<Tenants> {
  const measurement = new Measurement(means);
  await measurement.prepare();
  await using running = await startSystem(measurement.system);
  const growth: Growth[] = [];
  for (const count of GROWING) {
    growth.push({
      count,
      selectors: await measurement.grow(running.pid, selectors(count)),
      addresses: await measurement.grow(running.pid, addresses(count)),
    });
  }
  const waiting: WaitingTenant[] = [];
  for (const hostile of HOSTILE) waiting.push(await measurement.beside(running.pid, hostile));
  return { namespaces: NAMESPACES, growth, waiting };
}

const PAUSE_MILLISECONDS = 20;
const INTERVAL_MILLISECONDS = 0.5;
/** No policy has such a tag at first. */
const OTHER_TAGS = 100;
const LEAST_MILLISECONDS = 2_000;
const LONGEST_MILLISECONDS = 180_000;
/** The agent has nothing to do but the changes of the other tenants. With large policies that take turns it has about half of the time. */
const QUIET_SHARE = 0.2;

class Measurement {
  readonly system: PolicySystem;
  private readonly socket = openNetlinkSocket("netfilter");
  private port = 10_000;
  private leastSets = Number.POSITIVE_INFINITY;

  constructor(private readonly means: { readonly folder: string; readonly endpoint: string }) {
    this.system = ownPolicySystem(means.folder, this.socket, policyLoad(OTHERS));
  }

  async prepare(): Promise<void> {
    const { profiles, endpoints, networkPolicies } = policyLoad(OTHERS);
    await makePolicyLinks(OTHERS.locals + NAMESPACES);
    const resources = [...profiles, ...endpoints, ...upTo(NAMESPACES).map(podOf), ...networkPolicies];
    await putRecords(this.means.endpoint, resources.map(ownRecord));
  }

  /** One policy without a namespace, and then at once a change of another tenant. */
  async grow(pid: number, ingress: PolicyRule[]): Promise<Growth["selectors"]> {
    await this.quiet(pid);
    const spec = { tier: "default", selector: `app == '${tenant(0)}'`, types: ["Ingress" as const], ingress };
    const options = { doNotTrack: false, preDNAT: false, applyOnForward: false };
    const policy = globalNetworkPolicy.make({ name: "large" }, { ...spec, ...options });
    const record = {
      key: GLOBAL_NETWORK_POLICY.key({ name: "large" }),
      value: GLOBAL_NETWORK_POLICY.codec.write(policy),
    };
    const before = treeCpuMilliseconds(pid);
    await putRecord(this.means.endpoint, record);
    await Bun.sleep(PAUSE_MILLISECONDS);
    const otherMilliseconds = await this.changeOther();
    const found = { agentMilliseconds: treeCpuMilliseconds(pid) - before, otherMilliseconds, sets: this.countSets() };
    await deleteRecord(this.means.endpoint, record.key);
    console.log(`${ingress.length} rules: ${JSON.stringify(found)}`);
    return found;
  }

  /** Changes of other tenants, one after another, while the policies are written, and until they are in the kernel. */
  async beside(pid: number, { title, rules, policiesPerNamespace, sets }: Hostile): Promise<WaitingTenant> {
    await this.quiet(pid);
    const wantedSets = this.countSets() + NAMESPACES * policiesPerNamespace * sets;
    const records = upTo(NAMESPACES * policiesPerNamespace).map((index) => policyRecord(index, rules));
    const began = performance.now();
    const before = treeCpuMilliseconds(pid);
    let writtenAt = Number.POSITIVE_INFINITY;
    const written = Promise.all(records.map((record) => putRecord(this.means.endpoint, record))).then(() => {
      writtenAt = performance.now();
    });
    const otherMilliseconds: number[] = [];
    const isOver = this.quietness(pid);
    do {
      otherMilliseconds.push(await this.changeOther());
      await Bun.sleep(PAUSE_MILLISECONDS);
    } while (!isOver() || performance.now() < writtenAt + LEAST_MILLISECONDS || this.countSets() < wantedSets);
    await written;
    const found = {
      ...{ title, policiesPerNamespace, otherMilliseconds },
      wallMilliseconds: performance.now() - began,
      agentMilliseconds: treeCpuMilliseconds(pid) - before,
      oneMilliseconds: await this.changeOne(pid, { rules, policiesPerNamespace }),
      sets: this.countSets(),
    };
    console.log(
      `${title}: longest ${Math.max(...otherMilliseconds)} of ${otherMilliseconds.length}; ${found.sets} sets`,
    );
    for (const { key } of records) await deleteRecord(this.means.endpoint, key);
    return found;
  }

  /** CPU time of the agent for other versions of the policies of one namespace. */
  private async changeOne(pid: number, hostile: Pick<Hostile, "rules" | "policiesPerNamespace">): Promise<number> {
    const before = treeCpuMilliseconds(pid);
    for (const each of upTo(hostile.policiesPerNamespace)) {
      const index = each * NAMESPACES;
      await putRecord(this.means.endpoint, policyRecord(index, hostile.rules, index + OTHER_TAGS));
    }
    const isOver = this.quietness(pid);
    do await Bun.sleep(PAUSE_MILLISECONDS);
    while (!isOver());
    return treeCpuMilliseconds(pid) - before;
  }

  /** How long the policy of another tenant takes from etcd to the kernel. */
  private async changeOther(): Promise<number> {
    const index = this.port % OTHERS.policies;
    const before = policyOf(index, { policies: OTHERS.policies });
    const after = policyOf(index, { policies: OTHERS.policies, port: this.port++ });
    const isEnforced = this.system.observe({ kind: "policy", before, after });
    const started = performance.now();
    await putRecord(this.means.endpoint, ownRecord(after));
    while (!isEnforced()) {
      if (performance.now() - started > LONGEST_MILLISECONDS) throw new Error("The change did not arrive");
      await Bun.sleep(INTERVAL_MILLISECONDS);
    }
    return performance.now() - started;
  }

  private countSets(): number {
    return listSets(this.socket, POLICY_TABLE).length;
  }

  /** Also when what was written before is gone from the kernel. */
  private async quiet(pid: number): Promise<void> {
    this.leastSets = Math.min(this.leastSets, this.countSets());
    const isQuiet = this.quietness(pid);
    do await Bun.sleep(PAUSE_MILLISECONDS);
    while (!isQuiet() || this.countSets() > this.leastSets);
  }

  /** True if the agent had little to do for the last second. */
  private quietness(pid: number): () => boolean {
    let [at, cpu] = [performance.now(), treeCpuMilliseconds(pid)];
    let isQuiet = false;
    return () => {
      const now = performance.now();
      if (now - at < 1_000) return isQuiet;
      const used = treeCpuMilliseconds(pid);
      isQuiet = used - cpu < QUIET_SHARE * (now - at);
      [at, cpu] = [now, used];
      return isQuiet;
    };
  }
}

function tenant(index: number): string {
  return `tenant${index % NAMESPACES}`;
}

function podOf(index: number): WorkloadEndpoint {
  const { metadata, spec } = localEndpoint(OTHERS.locals + index, 0);
  const namespace = tenant(index);
  const labels = { ...metadata.labels, app: namespace, [`${identity.labelPrefix}namespace`]: namespace };
  return workloadEndpoint.make({ ...metadata, namespace, labels }, spec);
}

function policyRecord(index: number, rules: PolicyRule[], tag = index): EtcdRecord {
  const place = { name: `large${index}`, namespace: tenant(index) };
  const policy = networkPolicy.make(place, { tier: "default", types: ["Ingress"], ingress: distinct(rules, tag) });
  return { key: NETWORK_POLICY.key(place), value: NETWORK_POLICY.codec.write(policy) };
}

/** No two policies share a set. */
function distinct(rules: readonly PolicyRule[], tag: number): PolicyRule[] {
  return rules.map((rule) => {
    const { selector, notNets } = rule.source ?? {};
    if (selector !== undefined) return { ...rule, source: { selector: `${selector} && !has(t${tag})` } };
    if (notNets === undefined) return rule;
    return { ...rule, source: { ...rule.source, notNets: [...notNets, `192.0.2.${tag}/32`] } };
  });
}
