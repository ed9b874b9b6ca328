import { describe, expect, test } from "bun:test";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { interpretPassage } from "../../../test/support/interpret/interpret-passage.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { profile } from "../../model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Passage } from "../judge/host-judge.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { PolicyCompiler } from "./compiler.ts";

const NODE = "here";
const ALLOW = profile.make(
  { name: "kns.red" },
  { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }], labelsToApply: {} },
);
const CONFIGURATION = nodeAgentConfiguration.make({ name: "default" }, { interfacePrefix: "veth" });
const DENY = globalPolicy("deny", { selector: "closed == 'yes'", types: ["Ingress"] });

/** As another plugin has connected it: the endpoint does not name its interface. */
function pod(name: string, created: string, more: { readonly labels?: object; readonly phase?: string } = {}) {
  const { labels = {}, phase } = more;
  const endpoint = workloadEndpoint.make(
    {
      ...{ name: `${NODE}-k8s-${name}-eth0`, namespace: "red", creationTimestamp: created },
      labels: { ...labels, [`${identity.labelPrefix}namespace`]: "red" },
    },
    {
      ...{ node: NODE, orchestrator: "k8s", pod: name, endpoint: "eth0", profiles: ["kns.red"] },
      ipNetworks: ["10.0.0.5/32"],
    },
  );
  return phase === undefined ? endpoint : { ...endpoint, status: { phase } };
}

function site(endpoints: readonly WorkloadEndpoint[]) {
  const compiler = new PolicyCompiler({ node: NODE });
  let resources: PolicyResources = NO_RESOURCES;
  const set = (now: Partial<PolicyResources>) => {
    const after = { ...resources, ...now };
    compiler.update(changesBetween(resources, after));
    resources = after;
  };
  set({ profiles: [ALLOW], globalNetworkPolicies: [DENY], endpoints });
  compiler.update({ ...changesBetween(resources, resources), configurations: [putConfiguration()] });
  return { compiler, set };
}

function putConfiguration() {
  return { kind: "put", key: "default", value: CONFIGURATION, previous: undefined } as const;
}

function verdict(compiler: PolicyCompiler, passage: Passage): string {
  const [source, destination] = [parseAddress("10.0.0.9"), parseAddress("10.0.0.5")];
  if (source === undefined || destination === undefined) throw new RangeError("not an address");
  const packet = { source, destination, protocol: 6, sourcePort: 4_000, destinationPort: 80 };
  return interpretPassage(compiler.table, passage, packetBytes(packet)).verdict;
}

const to = (name: string): Passage => ({ kind: "forwarded", from: "eth0", to: name });
const from = (name: string): Passage => ({ kind: "forwarded", from: name, to: "eth0" });

describe("an interface with the prefix of workloads by which the host reaches others", () => {
  test("is not closed, and the setting is reported", () => {
    const { compiler } = site([pod("a", "2026-01-01")]);
    expect([compiler.hasOtherPrefixes, compiler.problems]).toEqual([true, []]);
    expect(compiler.setUplinks(["veth0"])).toBe("changed");

    expect([verdict(compiler, from("veth0")), verdict(compiler, { kind: "to host", from: "veth0" })]).toEqual([
      "accept",
      "accept",
    ]);
    expect(verdict(compiler, to("veth1"))).toBe("drop");
    expect(compiler.problems).toMatchObject([{ title: "interfacePrefix", reason: expect.stringContaining("veth0") }]);
    expect(compiler.setUplinks(["veth0"])).toBe("same");
    compiler.setUplinks(["eth0"]);
    expect([verdict(compiler, to("veth0")), compiler.problems]).toEqual(["drop", []]);
  });
});

describe("an endpoint that does not name its interface", () => {
  test("is closed until the kernel leads its address to an interface with the prefix", () => {
    const { compiler } = site([pod("a", "2026-01-01")]);
    expect(compiler.addressesToFind).toEqual(new Set(["10.0.0.5"]));
    expect([verdict(compiler, to("veth1")), verdict(compiler, from("veth1"))]).toEqual(["drop", "drop"]);

    const changed = compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));

    expect(changed).toHaveLength(1);
    expect([verdict(compiler, to("veth1")), verdict(compiler, from("veth1"))]).toEqual(["accept", "accept"]);
    expect(verdict(compiler, to("veth2"))).toBe("drop");
    expect([...compiler.localEndpoints.values()].map(({ interfaceName }) => interfaceName)).toEqual(["veth1"]);
  });

  test("has no policy at an interface of another name, which is reported", () => {
    const { compiler } = site([pod("a", "2026-01-01")]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "cni0"]]));

    expect(compiler.localEndpoints.size).toBe(0);
    expect(compiler.unplacedEndpoints).toMatchObject([{ addresses: ["10.0.0.5"], link: "cni0" }]);
    expect(verdict(compiler, to("cni0"))).toBe("accept");
  });

  test("follows to another interface, and leaves the old one closed", () => {
    const { compiler } = site([pod("a", "2026-01-01")]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth2"]]));

    expect([verdict(compiler, to("veth1")), verdict(compiler, to("veth2"))]).toEqual(["drop", "accept"]);
    compiler.setWorkloadLinks(new Map());
    expect(verdict(compiler, to("veth2"))).toBe("drop");
  });

  test("is judged by its new labels", () => {
    const { compiler, set } = site([pod("a", "2026-01-01")]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));
    set({ endpoints: [pod("a", "2026-01-01", { labels: { closed: "yes" } })] });

    expect(verdict(compiler, to("veth1"))).toBe("drop");
  });

  test("gives its address up to a pod that was created later, whatever their names", () => {
    const old = pod("a", "2026-01-01", { labels: { closed: "yes" } });
    const young = pod("b", "2026-01-02");
    const { compiler, set } = site([old]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));
    expect(verdict(compiler, to("veth1"))).toBe("drop");

    set({ endpoints: [old, young] });
    expect(verdict(compiler, to("veth1"))).toBe("accept");
    set({ endpoints: [old] });
    expect(verdict(compiler, to("veth1"))).toBe("drop");
  });

  test("has no interface when its pod has finished", () => {
    const { compiler } = site([pod("a", "2026-01-01", { phase: "Succeeded" })]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));

    expect([compiler.localEndpoints.size, compiler.unplacedEndpoints, compiler.addressesToFind.size]).toEqual([
      0,
      [],
      0,
    ]);
  });

  test("becomes one that names it", () => {
    const { compiler, set } = site([pod("a", "2026-01-01")]);
    compiler.setWorkloadLinks(new Map([["10.0.0.5", "veth1"]]));
    const named = pod("a", "2026-01-01");
    set({ endpoints: [{ ...named, spec: { ...named.spec, interfaceName: "veth9" } }] });

    expect([verdict(compiler, to("veth1")), verdict(compiler, to("veth9"))]).toEqual(["drop", "accept"]);
    expect(compiler.addressesToFind.size).toBe(0);
  });
});
