/**
 * The same calls, done by the plugin's own process and by the node agent: every
 * annotation, every rule about them, and pods that are not the one of the call.
 */
import { expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { type AnnotationName, annotationKey } from "../../src/plugin/annotations.ts";
import { BIN, startAgent } from "../agent/agent.ts";
import type { KubePod, KubePodPlan, KubeSite } from "../support/kube-site.ts";
import type { Command, Json } from "../support/plugin-site.ts";

interface Case {
  readonly title: string;
  readonly values?: Partial<Record<AnnotationName, string>>;
  readonly plan?: KubePodPlan;
  readonly config?: Json;
  /** What becomes of the pod, or of the call, before the ADD. */
  readonly before?: (pod: KubePod, kube: KubeSite) => KubePod | Promise<KubePod>;
  /** The addresses, in which x is any number, or the code of the error. */
  readonly expected: readonly string[] | number;
}

type Outcome = Readonly<Record<"addresses" | "result" | "endpoint", unknown>>;

const NAMESPACE = "with-pools";
const SWITCHES = {
  feature_control: { ip_addrs_no_ipam: true, floating_ips: true, allowed_source_prefixes: true },
};
const HOST_LOCAL = { ...SWITCHES, ipam: { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }]] } };
/** With it a process does its call itself, although an agent runs. */
const ALONE = { [`${identity.environmentPrefix}TRACE`]: "1" };
const OTHER_UID = "00000000-0000-4000-8000-000000000000";

const CASES: readonly Case[] = [
  { title: "no annotation", expected: ["10.61.0.x/32", "fd61::x/128"] },
  { title: "ipv4pools", values: { ipv4pools: '["red"]' }, expected: ["10.62.0.x/32", "fd61::x/128"] },
  { title: "ipv6pools", values: { ipv6pools: '["fd62::/112"]' }, expected: ["10.61.0.x/32", "fd62::x/128"] },
  { title: "ipFamilies", values: { ipFamilies: '["IPv6"]' }, expected: ["fd61::x/128"] },
  { title: "ipAddrsFrom", values: { ipAddrsFrom: "web" }, expected: ["10.61.0.245/32"] },
  { title: "ipAddrsFrom of another namespace", values: { ipAddrsFrom: "theirs" }, expected: 121 },
  { title: "an unknown family", values: { ipFamilies: '["IPv5"]' }, expected: 121 },
  { title: "pools of the namespace", plan: { namespace: NAMESPACE }, expected: ["10.62.0.x/32", "fd62::x/128"] },
  {
    title: "pools of the pod before its namespace's and the config's",
    values: { ipv4pools: '["blue"]' },
    plan: { namespace: NAMESPACE },
    config: { ipam: { type: identity.ipamType, ipv4_pools: ["red"] } },
    expected: ["10.61.0.x/32"],
  },
  {
    title: "ipAddrs",
    values: { ipAddrs: '["10.61.0.240", "fd61::f0"]' },
    expected: ["10.61.0.240/32", "fd61::f0/128"],
  },
  {
    title: "ipAddrsNoIpam",
    values: { ipAddrsNoIpam: '["198.51.100.60"]', ipv4pools: '["red"]' },
    config: SWITCHES,
    expected: ["198.51.100.60/32"],
  },
  {
    title: "floatingIPs",
    values: { floatingIPs: '["10.62.0.250"]', ipAddrs: '["10.61.0.241"]' },
    config: SWITCHES,
    expected: ["10.61.0.241/32"],
  },
  {
    title: "hwAddr",
    values: { hwAddr: "02:42:ac:11:00:07", ipAddrs: '["10.61.0.242"]' },
    expected: ["10.61.0.242/32"],
  },
  {
    title: "allowedSourcePrefixes",
    values: { allowedSourcePrefixes: '["10.0.0.0/8"]', ipAddrs: '["10.61.0.243"]' },
    config: SWITCHES,
    expected: ["10.61.0.243/32"],
  },
  {
    title: "allowedSourcePrefixes of a family that the pod lacks",
    values: { allowedSourcePrefixes: '["fd00::/8"]', ipAddrs: '["10.61.0.244"]' },
    config: SWITCHES,
    expected: 121,
  },
  {
    title: "rule 1: pool of the config",
    config: { ipam: { type: identity.ipamType, ipv4_pools: ["green"] } },
    expected: 101,
  },
  { title: "rule 2: unknown pool", values: { ipv4pools: '["green"]' }, expected: 101 },
  { title: "rule 2: part of a pool", values: { ipv4pools: '["10.61.0.0/25"]' }, expected: 101 },
  {
    title: "rule 3: with and without IPAM",
    values: { ipAddrs: '["10.61.0.9"]', ipAddrsNoIpam: '["10.61.0.10"]' },
    config: SWITCHES,
    expected: 121,
  },
  { title: "rule 4: two of one family", values: { ipAddrs: '["10.61.0.9", "10.61.0.10"]' }, expected: 121 },
  { title: "rule 5: outside all pools", values: { ipAddrs: '["10.99.0.9"]' }, expected: 105 },
  { title: "rule 6: ipAddrsNoIpam is off", values: { ipAddrsNoIpam: '["192.0.2.50"]' }, expected: 121 },
  { title: "rule 6: floatingIPs are off", values: { floatingIPs: '["192.0.2.50"]' }, expected: 121 },
  { title: "allowedSourcePrefixes are off", values: { allowedSourcePrefixes: '["192.0.2.0/24"]' }, expected: 121 },
  { title: "rule 7: host-local", values: { ipAddrs: '["10.77.0.9"]' }, config: HOST_LOCAL, expected: 121 },
  { title: "not a list", values: { ipAddrs: "10.61.0.9" }, expected: 121 },
  { title: "pod that is gone", before: deletePod, expected: 3 },
  { title: "pod of another UID", before: (pod) => withUid(pod, OTHER_UID), expected: 3 },
  { title: "pod on another node", plan: { spec: { nodeName: "node-2" } }, expected: 11 },
];

/** The pools of the site are blue, red, blue6 and red6, its lists web and theirs. */
export async function expectSameInAgent(kube: KubeSite): Promise<void> {
  await kube.server.createNamespace(NAMESPACE);
  const annotations = { [annotationKey("ipv4pools")]: '["red"]', [annotationKey("ipv6pools")]: '["red6"]' };
  await kube.server.apply(
    JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE, annotations } }),
  );
  const pods = await Promise.all(
    CASES.map(async ({ values = {}, plan = {}, before = (pod) => pod }) =>
      before(await kube.makePod({ ...plan, annotations: keyed(values) }), kube),
    ),
  );
  const runAll = async (environment: Readonly<Record<string, string>>) => {
    const outcomes: Outcome[] = [];
    for (const [index, { config }] of CASES.entries()) {
      outcomes.push(await attach(kube, pods[index] as KubePod, { ...kube.options(config), environment }));
    }
    expect(await kube.site.left()).toEqual([]);
    return outcomes;
  };

  const alone = await runAll(ALONE);
  const agent = await startAgent(kube.site.host);
  const inAgent = await runAll({});

  const calls = CASES.length + CASES.filter(({ expected }) => typeof expected !== "number").length;
  expect(await agent.hasServed(calls)).toHaveLength(calls);
  for (const [index, { title, expected }] of CASES.entries()) {
    expect([title, inAgent[index]]).toEqual([title, alone[index]]);
    expect([title, inAgent[index]?.addresses]).toEqual([title, expected]);
  }
}

/** ADD, and DEL if it succeeds; what is random is left out. */
async function attach(
  { site }: KubeSite,
  pod: KubePod,
  options: { readonly config: Json; readonly environment: Readonly<Record<string, string>> },
): Promise<Outcome> {
  const environment = { CNI_PATH: BIN, ...options.environment };
  const call = (command: Command) => site.call(command, pod, { ...options, environment });
  const { code, stdout } = await call("ADD");
  const result = JSON.parse(stdout) as { readonly code: number; readonly ips: readonly { readonly address: string }[] };
  if (code !== 0) return { addresses: result.code, result: stdout, endpoint: undefined };
  const endpoint = [...(await site.store.list())].filter(([key]) => key.includes("/workloadendpoints/"));
  const removed = await call("DEL");
  expect([removed.code, removed.stdout]).toEqual([0, ""]);
  return {
    addresses: result.ips.map(({ address }) => withoutLot(address)),
    result: withoutLot(stdout),
    endpoint: withoutLot(endpoint.map(([key, value]) => `${key} ${value}`).join("\n")),
  };
}

/** Without the last part of an address that IPAM chose, random MACs, and what tells one record from the next. */
function withoutLot(text: string): string {
  return text
    .replaceAll(/(10\.6[12]\.0\.|fd6[12]::)(?!2[45][0-9]\b|f0\b)[0-9a-f]+(?=\/(32|128)|")/g, "$1x")
    .replaceAll(/(?<="mac":")(?!ee:ee|02:42:ac)[0-9a-f:]{17}/g, "random")
    .replaceAll(/"(uid|creationTimestamp)":"[^"]*"/g, '"$1":"new"');
}

function keyed(values: NonNullable<Case["values"]>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => [annotationKey(name as AnnotationName), text]),
  );
}

async function deletePod(pod: KubePod, { server }: KubeSite): Promise<KubePod> {
  await server.kubectl(["delete", "pod", pod.name, `--namespace=${pod.namespace}`, "--force", "--grace-period=0"]);
  return pod;
}

function withUid(pod: KubePod, uid: string): KubePod {
  return { ...pod, args: pod.args.replace(pod.uid, uid) };
}
