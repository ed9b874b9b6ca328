import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
const LABEL = identity.labelPrefix;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  const open = { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] };
  await put("profiles", "Profile", { name: "kns.shop" }, { ...open, labelsToApply: { "pcns.team": "shop" } });
  await put("networkpolicies", "NetworkPolicy", { name: "old", namespace: "shop" }, ONLY_80);
  for (const [index, name] of ["client", "web"].entries()) {
    const labels = { app: name, [`${LABEL}namespace`]: "shop", [`${LABEL}orchestrator`]: "k8s" };
    await put(
      "workloadendpoints",
      "WorkloadEndpoint",
      { name: `one-k8s-${name}-eth0`, namespace: "shop", labels },
      {
        ...{ orchestrator: "k8s", node: "one", pod: name, endpoint: "eth0", profiles: ["kns.shop"] },
        ...{ interfaceName: `x${name}`, ipNetworks: [`10.0.0.${index + 1}/32`] },
      },
    );
  }
});

const ONLY_80 = {
  ...{ selector: "app == 'web'", types: ["Ingress"] },
  ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
};

function put(
  plural: string,
  kind: string,
  metadata: { name: string; namespace?: string; labels?: object },
  spec: object,
) {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, metadata), value });
}

function document(kind: string, metadata: object, spec: object, apiVersion: string = API_VERSION): string {
  return JSON.stringify({ apiVersion, kind, metadata, spec });
}

const CLOSED = document(
  "NetworkPolicy",
  { name: "closed", namespace: "shop" },
  { order: 1, ingress: [{ action: "Deny" }] },
);
const TO_WEB = "--from shop/client --to shop/web --port 80";

function explain(words: string, files: Readonly<Record<string, string>> = {}, stdin = ""): Promise<AdminRun> {
  return runInside(["policy", "explain", ...words.split(" ")], { store, env: EMBEDDED, files, stdin });
}

describe("policy explain -f", () => {
  test("decides as if the policy were applied, says that it is not stored, and writes nothing", async () => {
    const { code, stdout } = await explain(`${TO_WEB} -f closed.json`, { "closed.json": CLOSED });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain("As if:      created networkpolicy/shop/closed\n");
    expect(stdout).toMatch(/Verdict: +denied/);
    expect(stdout).toMatch(/NetworkPolicy shop\/closed +tier default, order 1 +decides; not stored/);
    expect(stdout).not.toMatch(/shop\/old .*stored/);
    expect((await explain(TO_WEB)).stdout).toMatch(/Verdict: +allowed/);
  });

  test("reads directories, several files and standard input, and policies of the orchestrator", async () => {
    const label = document("GlobalNetworkPolicy", { name: "open" }, { order: 0, ingress: [{ action: "Allow" }] });
    const isolated = document(
      "NetworkPolicy",
      { name: "isolated", namespace: "shop" },
      { podSelector: {}, policyTypes: ["Egress"] },
      "networking.k8s.io/v1",
    );
    const { code, stdout } = await explain(`${TO_WEB} -f - -f open.json -o json`, { "open.json": label }, isolated);

    expect(code).toBe(EXIT_OK);
    const { asIf, packets } = JSON.parse(stdout);
    expect(asIf.map(({ reference, change }: Record<string, string>) => [reference, change])).toEqual([
      ["networkpolicy/shop/knp.default.isolated", "created"],
      ["globalnetworkpolicy/open", "created"],
    ]);
    expect(packets[0]).toMatchObject({
      verdict: "deny",
      sides: [
        { direction: "egress", verdict: "deny" },
        { direction: "ingress", verdict: "allow" },
      ],
    });
  });

  test("reads policies of the cluster, and calls them as their authors do", async () => {
    const rules = [{ action: "Deny", from: [{ namespaces: {} }] }];
    const policy = document(
      "ClusterNetworkPolicy",
      { name: "guard" },
      { tier: "Admin", priority: 5, subject: { namespaces: {} }, ingress: rules },
      "policy.networking.k8s.io/v1alpha2",
    );
    const { code, stdout } = await explain(`${TO_WEB} -f guard.json`, { "guard.json": policy });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain("As if:      created globalnetworkpolicy/kcnp.guard\n");
    const unknown = document("AdminPolicy", { name: "guard" }, {}, "policy.networking.k8s.io/v1alpha2");
    expect((await explain(`${TO_WEB} -f other.json`, { "other.json": unknown })).code).not.toBe(EXIT_OK);

    await put("globalnetworkpolicies", "GlobalNetworkPolicy", { name: "kcnp.old" }, { tier: "kube-admin" });
    expect((await explain(`${TO_WEB} --without old -n none`)).stdout).toContain("deleted globalnetworkpolicy/kcnp.old");
  });

  test("is judged as if what --without names were deleted", async () => {
    const { stdout } = await explain("--from shop/client --to shop/web --port 81 --without shop/old");
    expect(stdout).toContain("As if:      deleted networkpolicy/shop/old\n");
    expect(stdout).toMatch(/Verdict: +allowed/);
    for (const words of ["old -n shop", "networkpolicy/shop/old", "netpol/old -n shop"]) {
      const { stdout: same } = await explain(`--from shop/client --to shop/web --port 81 --without ${words}`);
      expect(same).toBe(stdout);
    }
  });

  test("labels, profiles and tiers count too; what is stored as given is no change", async () => {
    const same = document("NetworkPolicy", { name: "old", namespace: "shop" }, ONLY_80);
    const tier = document("Tier", { name: "first" }, { order: 1 });
    const inTier = document(
      "GlobalNetworkPolicy",
      { name: "first.deny" },
      { tier: "first", ingress: [{ action: "Deny" }] },
    );
    const files = { "a/0.json": same, "a/1.json": tier, "a/2.json": inTier };
    const { stdout } = await explain(`${TO_WEB} -f a`, files);

    expect(stdout).toContain("As if:      created tier/first, created globalnetworkpolicy/first.deny\n");
    expect(stdout).toMatch(/Verdict: +denied/);
  });

  test("fails as apply does", async () => {
    const wrong = document("NetworkPolicy", { name: "wrong", namespace: "shop" }, { selector: "app ==" });
    const inNoTier = document("GlobalNetworkPolicy", { name: "x.deny" }, { tier: "x" });
    const files = { "wrong.json": wrong, "tier.json": inNoTier };
    for (const file of ["wrong.json", "tier.json"]) {
      const applied = await runInside(["apply", "-f", file], { store, env: EMBEDDED, files });
      const { code, stdout, stderr } = await explain(`${TO_WEB} -f ${file}`, files);
      expect({ code, stdout, stderr }).toEqual({ code: EXIT_FAILED, stdout: "", stderr: applied.stderr });
    }
  });

  test("names the resource that --without does not find", async () => {
    const { code, stderr } = await explain(`${TO_WEB} --without shop/odl`);
    expect([code, stderr]).toEqual([
      EXIT_FAILED,
      expect.stringContaining('Cannot find networkpolicy/shop/odl: it does not exist (did you mean "old"?)'),
    ]);
    const other = await explain(`${TO_WEB} --without ippool/blue`);
    expect([other.code, other.stderr]).toEqual([
      EXIT_USAGE,
      expect.stringContaining("does not depend on the kind IPPool"),
    ]);
    const unknown = await explain(`${TO_WEB} --without networkpolcy/shop/old`);
    expect([unknown.code, unknown.stderr]).toEqual([
      EXIT_USAGE,
      expect.stringContaining('did you mean "networkpolicy"?'),
    ]);
  });

  test("leaves out what policy does not depend on", async () => {
    const pool = document("IPPool", { name: "blue" }, { cidr: "10.9.0.0/16" });
    const { stdout, stderr } = await explain(`${TO_WEB} -f pool.json`, { "pool.json": pool });
    expect(stdout).toContain("As if:      nothing changes");
    expect(stderr).toContain("ippool/blue is left out");
  });
});
