import { beforeAll, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { identity } from "../../identity.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { ENDPOINT, GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NETWORK_POLICY, PROFILE, TIER } from "../../model/kinds.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { networkProfileSpec } from "../../model/network-profile.ts";
import { profile } from "../../model/profile.ts";
import { tier } from "../../model/tier.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";

const store = openMemory();
const OWN = { doNotTrack: false, preDNAT: false, applyOnForward: false };

beforeAll(async () => {
  const put = (key: string, value: string) => store.commit([{ kind: "put", key, value }]);
  for (const [pod, labels] of [
    ["web", { app: "web" }],
    ["db", { app: "db" }],
    ["db-2", { app: "db" }],
  ] as const) {
    const metadata = {
      ...{ namespace: "shop", name: `here-k8s-${pod.replace("-", "--")}-eth0` },
      labels: { ...labels, [`${identity.labelPrefix}namespace`]: "shop" },
    };
    const spec = { orchestrator: "k8s", node: "here", pod, endpoint: "eth0", containerID: pod, profiles: ["kns.shop"] };
    await put(ENDPOINT.key(metadata), workloadEndpoint.write(workloadEndpoint.make(metadata, spec)));
  }
  const host = { name: "here-eth0", labels: { role: "node" } };
  await put(
    HOST_ENDPOINT.key(host),
    hostEndpoint.write(hostEndpoint.make(host, { node: "here", interfaceName: "eth0" })),
  );
  await put(TIER.key({ name: "first" }), tier.write(tier.make({ name: "first" }, { order: 1, defaultAction: "Pass" })));
  const policies = { db: "app == 'db'", typo: "ap == 'db'" };
  for (const [name, selector] of Object.entries(policies)) {
    const metadata = { namespace: "shop", name };
    const spec = { tier: "default", selector, types: ["Ingress" as const], order: 5 };
    await put(NETWORK_POLICY.key(metadata), networkPolicy.write(networkPolicy.make(metadata, spec)));
  }
  const globals = {
    "first.all": { ...OWN, tier: "first", types: ["Ingress" as const, "Egress" as const] },
    early: { ...OWN, tier: "default", selector: "has(role)", order: 9, preDNAT: true, applyOnForward: true },
    nobody: { ...OWN, tier: "default", namespaceSelector: "team == 'a'", serviceAccountSelector: "has(role)" },
    hosts: { ...OWN, tier: "default", selector: "app == 'db'", preDNAT: true, applyOnForward: true },
    late: { ...OWN, tier: "default", selector: "has(role) || app == 'db'", order: 1, types: ["Ingress" as const] },
  };
  for (const [name, spec] of Object.entries(globals))
    await put(GLOBAL_NETWORK_POLICY.key({ name }), globalNetworkPolicy.write(globalNetworkPolicy.make({ name }, spec)));
});

const described = async (words: string) => {
  const { stdout } = await runInside(["describe", ...words.split(" ")], { store });
  return stdout;
};

describe("describe of a container that no policy selects", () => {
  const empty = openMemory();
  const put = (key: string, value: string) => empty.commit([{ kind: "put", key, value }]);
  const show = async (words: string) => (await runInside(["describe", ...words.split(" ")], { store: empty })).stdout;
  const putProfile = (metadata: object) => {
    const made = profile.make({ name: "pods", ...metadata }, networkProfileSpec("pods"));
    return put(PROFILE.key(made.metadata), profile.write(made));
  };
  beforeAll(async () => {
    const metadata = { namespace: "default", name: "here-cni-1234-eth0" };
    const spec = {
      ...{ orchestrator: "cni", node: "here", workload: "web" },
      containerID: "1234",
      profiles: ["pods"],
      ipNetworks: ["10.0.0.1/32"],
    };
    await put(ENDPOINT.key(metadata), workloadEndpoint.write(workloadEndpoint.make(metadata, spec)));
    await putProfile({});
  });
  const unedited = "has the rules that ADD writes, which close no container; edit it to make its rules count\n";

  test("labels that its profile gives are found and shown, as policies see them", async () => {
    const get = async (...words: readonly string[]) => (await runInside(["get", ...words], { store: empty })).stdout;

    expect(await get("wep", "-l", "has(pods)", "-o", "name")).toBe("workloadendpoint/default/here-cni-1234-eth0\n");
    expect(await get("wep", "--show-labels")).toContain(" pods=\n");
    expect(await show("wep web")).toEndWith("Inherited labels:\n  pods=   from profile/pods\n");
  });

  test.each([80, 40])("fits a terminal with %i columns, and leaves nothing out", async (width) => {
    // The spec is YAML, and stays as it is.
    const shown = async (terminalWidth?: number) =>
      (await runInside(["describe", "wep", "web"], { store: empty, terminalWidth })).stdout.replace(
        /Spec:.*Addresses:/s,
        "",
      );
    const text = await shown(width);

    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
    expect(text.replaceAll(/\s/g, "")).toBe((await shown()).replaceAll(/\s/g, ""));
    expect(text).toContain("Ingress:      nothing is enforced");
  });

  test("says what is so: nothing is enforced, or the profile of the network closes nothing, or its rules count", async () => {
    expect(await show("wep web")).toContain(
      `Ingress:      nothing is enforced: there is no policy; with one, or with "policy.type" in the network config of its node, the profiles decide: Profile "pods" ${unedited}`,
    );
    expect(await show("profile pods")).toEndWith(`Ingress:      it ${unedited}`);

    const idle = globalNetworkPolicy.make({ name: "idle" }, { ...OWN, tier: "default", selector: "!all()" });
    await put(GLOBAL_NETWORK_POLICY.key(idle.metadata), globalNetworkPolicy.write(idle));
    expect(await show("wep web")).toContain(
      `Ingress:      no ingress policy applies, so the profiles decide: Profile "pods" ${unedited}Egress:       no egress policy applies, so the profiles decide: pods\n`,
    );

    await putProfile({ labels: { closed: "yes" } });
    expect(await show("wep web")).toContain("Ingress:      no ingress policy applies, so the profiles decide: pods\n");
    expect(await show("profile pods")).not.toContain("Ingress:");
  });
});

describe("describe", () => {
  test("lists whom a policy selects", async () => {
    expect(await described("networkpolicy db -n shop")).toContain(
      "Selects:      2 workload endpoints, for ingress\n  shop/db-2   node here\n  shop/db     node here\n",
    );
    expect(await described("globalnetworkpolicy first.all")).toContain(
      "Selects:      3 workload endpoints and 1 host endpoint, for ingress and egress\n",
    );
    expect(await described("globalnetworkpolicy early")).toContain(
      "Selects:      1 host endpoint, for ingress\n  hostendpoint/here-eth0   node here\n",
    );
  });

  test("says that a policy selects nobody, and where labels are shown", async () => {
    expect(await described("networkpolicy typo -n shop")).toContain(
      `Selects:      none: no endpoint of namespace "shop" matches ap == 'db'; see "${identity.adminTool} get workloadendpoints -n shop --show-labels"\n`,
    );
  });

  test("names every criterion of a policy that selects nobody", async () => {
    expect(await described("globalnetworkpolicy nobody")).toContain(
      "none: no endpoint matches selector all(), namespaceSelector team == 'a' and serviceAccountSelector has(role); see",
    );
    expect(await described("globalnetworkpolicy hosts")).toContain("none: no host endpoint matches app == 'db'; see");
  });

  test("lists the policies of a workload endpoint in the order of evaluation", async () => {
    expect(await described("wep here-k8s-db-eth0 -n shop")).toContain(
      [
        "Ingress:      3 policies apply, in this order",
        "  1.   tier first     GlobalNetworkPolicy first.all",
        "  2.   tier default   GlobalNetworkPolicy late",
        "  3.   tier default   NetworkPolicy shop/db",
        "Egress:       1 policy applies",
        "  1.   tier first   GlobalNetworkPolicy first.all",
      ].join("\n"),
    );
  });

  test("says that a profile of an endpoint does not exist", async () => {
    expect(await described("wep web -n shop")).toContain(
      'Profiles:     profile "kns.shop" does not exist, so nothing is allowed by it\n',
    );
    expect(await described("hostendpoint here-eth0")).not.toContain("Profiles:");
  });

  test("lists the policies of a host endpoint, those before NAT first", async () => {
    expect(await described("hostendpoint here-eth0")).toContain(
      [
        "Ingress:      3 policies apply, in this order",
        "  1.   tier default   GlobalNetworkPolicy early       preDNAT",
        "  2.   tier first     GlobalNetworkPolicy first.all",
        "  3.   tier default   GlobalNetworkPolicy late",
      ].join("\n"),
    );
  });
});
