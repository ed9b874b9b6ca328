/** What an operator does with one resource of each kind of policy and BGP, by the built admin tool: the same on every datastore. */
import { expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { GOOD_BGP } from "../support/bad-bgp.ts";
import { GOOD_POLICIES } from "../support/bad-policies.ts";
import { builtProgram } from "../support/run-plugin.ts";

const NAMESPACE = "red";

interface PolicyResource {
  readonly kind: string;
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** Options that say where it is. */
  readonly place: readonly string[];
  /** `red/web` or `partners` */
  readonly title: string;
}

interface SpecChange {
  readonly patch: object;
  /** What is refused, and the field that the error names. */
  readonly bad: object;
  readonly field: string;
}

const CHANGES: Readonly<Record<string, SpecChange>> = {
  Tier: { patch: { order: 11 }, bad: { order: "first" }, field: "spec.order" },
  NetworkPolicy: { patch: { order: 7 }, bad: { selector: "a ==" }, field: "spec.selector" },
  GlobalNetworkPolicy: { patch: { order: 7 }, bad: { doNotTrack: true }, field: "spec.preDNAT" },
  NetworkSet: { patch: { nets: ["192.0.2.0/25"] }, bad: { nets: ["x"] }, field: "spec.nets[0]" },
  GlobalNetworkSet: { patch: { nets: ["192.0.2.0/25"] }, bad: { nets: ["x"] }, field: "spec.nets[0]" },
  HostEndpoint: { patch: { interfaceName: "eth1" }, bad: { expectedIPs: ["x"] }, field: "spec.expectedIPs[0]" },
  NodeAgentConfiguration: {
    patch: { tablesRefreshInterval: "60s" },
    bad: { tablesRefreshInterval: "soon" },
    field: "spec.tablesRefreshInterval",
  },
  BGPConfiguration: { patch: { listenPort: 1790 }, bad: { listenPort: 0 }, field: "spec.listenPort" },
  BGPPeer: { patch: { maxRestartTime: "5s" }, bad: { maxRestartTime: "never" }, field: "spec.maxRestartTime" },
  BGPFilter: { patch: { exportV6: [] }, bad: { importV6: [{ action: "Maybe" }] }, field: "spec.importV6[0].action" },
};

/** One of each kind; the tier first, as the policy needs it. */
export function policyResources({ hasServices }: { readonly hasServices: boolean }): readonly PolicyResource[] {
  return Object.keys(CHANGES).map((kind) => {
    const { name = "", spec } = [...GOOD_POLICIES, ...GOOD_BGP].find((good) => good.kind === kind) ?? { spec: {} };
    const { egress: _, ...others } = spec as { readonly egress?: unknown };
    const isNamespaced = kind === "NetworkPolicy" || kind === "NetworkSet";
    return {
      ...{ kind, name, spec: hasServices ? { ...spec } : others },
      place: isNamespaced ? ["--namespace", NAMESPACE] : [],
      title: isNamespaced ? `${NAMESPACE}/${name}` : name,
    };
  });
}

/** Returns what the tool printed; `failed: …` if it failed. */
export type RunAdmin = (args: readonly string[], stdin?: string) => Promise<string>;

export function adminWith(environment: Readonly<Record<string, string>>): RunAdmin {
  return async (args, stdin = "") => {
    const child = Bun.spawn([builtProgram(identity.adminTool), ...args], {
      ...{ stdin: new Blob([stdin]), stdout: "pipe", stderr: "pipe" },
      env: environment,
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return code === 0 ? stdout : `failed: ${stderr}`;
  };
}

/** Creates, shows, changes, labels and deletes each of them. */
export async function expectLives(admin: RunAdmin, [tier, ...others]: readonly PolicyResource[]): Promise<void> {
  if (tier !== undefined) await expectChangeable(admin, tier);
  await Promise.all(others.map((each) => expectChangeable(admin, each)));
  expect(await admin(["delete", "tier", "security"])).toContain(`networkpolicy/${NAMESPACE}/security.web`);
  await Promise.all(others.map((each) => expectDeletable(admin, each)));
  if (tier !== undefined) await expectDeletable(admin, tier);
}

async function expectChangeable(admin: RunAdmin, resource: PolicyResource): Promise<void> {
  const { kind, name, spec, place, title } = resource;
  const { patch, bad, field } = CHANGES[kind] ?? { patch: {}, bad: {}, field: "" };
  const shown = `${kind.toLowerCase()}/${title}`;
  const text = JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
  const patched = (part: object) => admin(["patch", kind, name, ...place, "-p", JSON.stringify({ spec: part })]);
  const stored = async () => JSON.parse(await admin(["get", kind, name, ...place, "-o", "json"]));

  expect(await admin(["create", "-f", "-", ...place], text)).toBe(`${shown} created\n`);
  expect(await admin(["create", "-f", "-", ...place], text)).toContain("already exists");
  expect(await admin(["apply", "-f", "-", ...place], text)).toBe(`${shown} unchanged\n`);
  expect(await admin(["get", kind, "-A", "-o", "name"])).toContain(`${shown}\n`);
  expect(await patched(patch)).toBe(`${shown} patched\n`);
  const refused = await patched(bad);
  expect(refused).toStartWith("failed: ");
  expect(refused).toContain(`${field}: `);
  expect(await admin(["label", kind, name, ...place, "team=a"])).toBe(`${shown} labelled\n`);
  expect(await admin(["get", kind, ...place, "-l", "team=a", "-o", "name"])).toBe(`${shown}\n`);
  expect(await stored()).toMatchObject({ kind, metadata: { name, labels: { team: "a" } }, spec: patch });
}

async function expectDeletable(admin: RunAdmin, { kind, name, place, title }: PolicyResource): Promise<void> {
  expect(await admin(["delete", kind, name, ...place])).toBe(`${kind.toLowerCase()}/${title} deleted\n`);
  expect(await admin(["get", kind, name, ...place])).toContain("does not exist");
}
