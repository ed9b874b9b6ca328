import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, stdin = ""): Promise<AdminRun> {
  return runInside(words.split(" "), { store, stdin });
}

async function apply(kind: string, spec: object, metadata: object = { name: "web" }): Promise<void> {
  const run = await ctl("apply -f -", JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec }));
  expect(run).toMatchObject({ code: EXIT_OK });
}

const names = async (kind: string) => (await ctl(`get ${kind} -A -o name`)).stdout.split("\n").slice(0, -1);
const both = async () => [...(await names("networkpolicies")), ...(await names("stagednetworkpolicies"))];
const specOf = async (reference: string) => JSON.parse((await ctl(`get ${reference} -o json`)).stdout).spec;

describe("policy promote", () => {
  const egress = [{ action: "Deny" }];

  test("shows what it would do, and does nothing before it is confirmed", async () => {
    await apply("StagedNetworkPolicy", { egress });
    const asked = await ctl("policy promote web");
    const dry = await ctl("policy promote web --dry-run=client");

    expect(asked).toMatchObject({ code: EXIT_FAILED, stderr: expect.stringContaining("Nothing was changed") });
    for (const { stdout } of [asked, dry]) {
      expect(stdout).toStartWith("As if:  created networkpolicy/default/web\n\nWould be denied: nothing\n");
      expect(stdout).toEndWith(
        "\n\nstagednetworkpolicy/default/web promoted: networkpolicy/default/web created (dry run)\n",
      );
    }
    expect(JSON.parse((await ctl("policy promote web --dry-run=client -o json")).stdout)).toHaveProperty("results");
    expect(dry).toMatchObject({ code: EXIT_OK, stderr: expect.stringContaining("note: ") });
    expect(await both()).toEqual(["stagednetworkpolicy/default/web"]);
  });

  test("previews one that kubectl writes, and none that cannot be read", async () => {
    await apply("StagedKubernetesNetworkPolicy", { podSelector: {}, egress: [] }, { name: "web", namespace: "shop" });
    const { stdout, stderr } = await ctl("policy promote shop/web");
    expect(stdout).toStartWith("As if:  created networkpolicy/shop/knp.default.web\n");
    expect(stderr).toContain("which kubectl writes");
    expect((await ctl("policy promote shop/none")).stdout).toBe("");
  });

  test("writes the enforced policy without what is of the staged one, and deletes the staged one", async () => {
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}", team: "shop" };
    await apply("StagedNetworkPolicy", { egress, selector: "app == 'web'" }, { name: "web", annotations });
    const run = await ctl("policy promote web --yes");

    expect(run).toMatchObject({ code: EXIT_OK });
    expect(run.stdout).toBe("stagednetworkpolicy/default/web promoted: networkpolicy/default/web created\n");
    expect(await both()).toEqual(["networkpolicy/default/web"]);
    expect(await specOf("np/web")).toEqual({ tier: "default", egress, selector: "app == 'web'" });
    const { metadata } = JSON.parse((await ctl("get np web -o json")).stdout);
    expect(metadata.annotations).toEqual({ team: "shop" });
  });

  test("replaces the enforced policy of the name, and deletes it if that is staged", async () => {
    await apply("GlobalNetworkPolicy", { order: 1, selector: "has(old)" });
    await apply("StagedGlobalNetworkPolicy", { egress });
    expect((await ctl("policy promote sgnp/web --yes")).stdout).toContain("globalnetworkpolicy/web configured");
    expect(await specOf("gnp/web")).toMatchObject({ egress });
    expect(await specOf("gnp/web")).not.toHaveProperty("selector");

    await apply("StagedGlobalNetworkPolicy", { stagedAction: "Delete" });
    expect((await ctl("policy promote web --yes")).stdout).toContain("globalnetworkpolicy/web deleted");
    expect([await names("gnp"), await names("sgnp")]).toEqual([[], []]);
  });

  test("stopped in between, it is called again", async () => {
    for (const stagedAction of ["Set", "Delete"] as const) {
      await apply("StagedNetworkPolicy", { stagedAction, ...(stagedAction === "Set" ? { egress } : {}) });
      const failing = storeAround(store, {
        commit: async (changes) => {
          const isEnd = changes.some(({ kind, key }) => kind === "delete" && key.includes("/stagednetworkpolicies/"));
          if (isEnd) throw new PluginError("datastore-unavailable", "stopped");
          return store.commit(changes);
        },
      });
      await runInside(["policy", "promote", "web", "--yes"], { store: failing });
      const isThere = await both();
      expect(isThere).toContain("stagednetworkpolicy/default/web");
      expect(isThere.includes("networkpolicy/default/web")).toBe(stagedAction === "Set");

      expect(await ctl("policy promote web --yes")).toMatchObject({ code: EXIT_OK });
      expect(await both()).toEqual(stagedAction === "Set" ? ["networkpolicy/default/web"] : []);
    }
  });

  test("does not guess which one is meant, or invent one", async () => {
    await apply("StagedNetworkPolicy", {});
    await apply("StagedGlobalNetworkPolicy", {});

    expect((await ctl("policy promote web --yes")).stderr).toContain(
      '"web" names several staged policies: use stagednetworkpolicy/default/web or stagedglobalnetworkpolicy/web',
    );
    expect((await ctl("policy promote shop/web --yes")).stderr).toContain("Cannot find stagednetworkpolicy/shop/web");
    expect(await ctl("policy promote default/web --yes")).toMatchObject({ code: EXIT_OK });
  });

  test("writes no policy of the orchestrator, but prints it for kubectl", async () => {
    await apply("StagedKubernetesNetworkPolicy", { podSelector: {}, egress: [{}] }, { name: "web", namespace: "shop" });
    const refused = await ctl("policy promote shop/web --yes");
    const { stdout } = await ctl("policy promote shop/web --manifest");

    expect(refused).toMatchObject({ code: EXIT_FAILED });
    expect(refused.stderr).toContain('"vendorctl policy promote sknp/shop/web --manifest | kubectl apply -f -"');
    expect(Bun.YAML.parse(stdout)).toEqual({
      ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "web", namespace: "shop" } },
      spec: { podSelector: {}, policyTypes: ["Ingress", "Egress"], egress: [{}] },
    });
  });
});
