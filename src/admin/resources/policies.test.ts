import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { BAD_POLICIES, GOOD_POLICIES } from "../../../test/support/bad-policies.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, stdin = ""): Promise<AdminRun> {
  return runInside(words.split(" "), { store, stdin });
}

function resource(kind: string, name: string, spec: object): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
}

const apply = (kind: string, name: string, spec: object) => ctl("apply -f -", resource(kind, name, spec));

describe("apply of a policy", () => {
  test.each(BAD_POLICIES.map((bad) => [`${bad.kind} with ${bad.what}`, bad] as const))(
    "refuses a %s, with the field and what to do",
    async (_, bad) => {
      const { code, stderr } = await apply(bad.kind, bad.name ?? "bad", bad.spec);

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`${bad.path}: `);
      expect(stderr).toContain(bad.message);
    },
  );

  test("refuses the orchestrator's own NetworkPolicy by its apiVersion, not by fields that it may well have", async () => {
    const own = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "web" } };
    const { code, stderr } = await ctl("apply -f -", JSON.stringify({ ...own, spec: { podSelector: {} } }));

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`apiVersion: "networking.k8s.io/v1" is not supported; use "${API_VERSION}"`);
    expect(stderr).toContain("vendorctl convert");
    expect(stderr).not.toContain("podSelector");
  });

  test("needs its tier", async () => {
    const refused = await apply("NetworkPolicy", "security.web", { tier: "security" });
    expect(refused).toMatchObject({ code: EXIT_FAILED });
    expect(refused.stderr).toContain('spec.tier: "security" does not exist; create this Tier first, or use "default"');

    const both = [
      resource("Tier", "security", { order: 10 }),
      resource("NetworkPolicy", "security.web", { tier: "security" }),
    ];
    expect(await ctl("apply -f -", both.join("\n---\n"))).toMatchObject({ code: EXIT_OK });
  });

  test("refuses services, which only the orchestrator's API knows, also in a change", async () => {
    const spec = { egress: [{ action: "Deny", destination: { services: { name: "dns" } } }] };
    const created = await apply("NetworkPolicy", "web", spec);
    await apply("NetworkPolicy", "web", {});
    const changed = await apply("NetworkPolicy", "web", spec);

    for (const { code, stderr } of [created, changed]) {
      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(
        'spec.egress[0].destination.services: {"name":"dns"} is not supported with this datastore',
      );
    }
    const knowing = { ...storeAround(store, {}), isOrchestratorApi: true };
    const run = await runInside(["apply", "-f", "-"], {
      store: knowing,
      stdin: resource("NetworkPolicy", "dns", spec),
    });
    expect(run).toMatchObject({ code: EXIT_OK });
  });

  test("refuses a staged policy of the orchestrator's form that could not be enforced as it is", async () => {
    const spec = { ingress: [{ from: [{ ipBlock: { cidr: "everything" } }] }] };
    const { code, stderr } = await apply("StagedKubernetesNetworkPolicy", "web", spec);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('spec: would not be enforced as it is: ingress[0]: "everything" is not a CIDR');
  });
});

describe("a policy and what it refers to", () => {
  const GOOD = GOOD_POLICIES.filter(({ name }) => name !== "security.web");

  test.each(GOOD.map((good) => [good.kind, good.name ?? "", good.spec] as const))(
    "a %s %s is applied, shown and deleted",
    async (kind, name, spec) => {
      const word = kind.toLowerCase();
      expect(await apply(kind, name, spec)).toMatchObject({ code: EXIT_OK });
      expect((await ctl(`get ${word} ${name}`)).stdout).toContain(name);
      expect((await ctl(`get ${word} ${name} -o wide`)).stdout.split("\n")).toHaveLength(3);
      expect((await ctl(`describe ${word} ${name}`)).stdout).toContain(`Name:`);
      if (name !== "default") expect((await ctl(`delete ${word} ${name}`)).stdout).toContain("deleted");
    },
  );

  test("is printed with what promoting it would do, if it is staged", async () => {
    await apply("StagedNetworkPolicy", "web", { selector: "app == 'web'", egress: [{ action: "Deny" }] });
    await apply("StagedNetworkPolicy", "old", { stagedAction: "Delete" });
    await apply("StagedKubernetesNetworkPolicy", "both", { egress: [{}] });

    expect((await ctl("get snp -n default")).stdout).toBe(
      [
        "NAME   ACTION   TIER      ORDER   SELECTOR       TYPES    AGE",
        "old    Delete   default                                   0s",
        "web    Set      default           app == 'web'   Egress   0s\n",
      ].join("\n"),
    );
    expect((await ctl("get sknp -n default")).stdout).toContain("both   Set      Ingress,Egress");
  });

  test("is printed with its tier, its selector and the directions that it isolates", async () => {
    await apply("GlobalNetworkPolicy", "deny", { order: 5, egress: [{ action: "Deny" }], selector: "app == 'x'" });

    expect((await ctl("get gnp")).stdout).toBe(
      "NAME   TIER      ORDER   SELECTOR     TYPES    AGE\ndeny   default   5       app == 'x'   Egress   0s\n",
    );
  });
});

describe("delete tier", () => {
  beforeEach(async () => {
    await apply("Tier", "security", {});
    await apply("NetworkPolicy", "security.web", { tier: "security" });
    await apply("GlobalNetworkPolicy", "security.all", { tier: "security" });
  });

  test.each(["", " --force"])("is refused while it has policies%s", async (force) => {
    const { code, stderr } = await ctl(`delete tier security${force}`);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("globalnetworkpolicy/security.all, networkpolicy/default/security.web");
  });

  test("works when they are gone", async () => {
    await ctl("delete np security.web");
    await ctl("delete gnp security.all");

    expect(await ctl("delete tier security")).toMatchObject({ code: EXIT_OK });
  });

  test("is always refused for the default tier", async () => {
    await apply("Tier", "default", { order: 5 });
    const { code, stderr } = await ctl("delete tier default --force");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("Cannot delete tier/default: policies without a tier are in it");
  });
});

describe("delete profile", () => {
  const ids = { orchestrator: "cni", node: "n1", workload: "web", containerID: "c1", endpoint: "eth0" };

  test("that endpoints name is refused, and lists them", async () => {
    await apply("Profile", "pods", {});
    await apply("WorkloadEndpoint", "n1-cni-c1-eth0", { ...ids, profiles: ["pods"] });
    await apply("HostEndpoint", "uplink", { node: "n1", interfaceName: "eth0", profiles: ["other", "pods"] });
    const { code, stdout, stderr } = await ctl("delete profile pods");

    expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "" });
    expect(stderr).toContain(
      'Cannot delete profile/pods: it is in use by 2 users: workloadendpoint/default/n1-cni-c1-eth0 (container "web" on node n1), hostendpoint/uplink (',
    );
    expect((await ctl("get profiles -o name")).stdout).toBe("profile/pods\n");
    expect((await ctl("delete profile pods --force")).stdout).toBe("profile/pods deleted\n");
  });

  test("that nobody names is deleted", async () => {
    await apply("Profile", "pods", {});
    await apply("Profile", "unused", {});
    await apply("WorkloadEndpoint", "n1-cni-c1-eth0", { ...ids, profiles: ["pods"] });

    expect(await ctl("delete profile unused")).toMatchObject({ code: EXIT_OK, stdout: "profile/unused deleted\n" });
  });
});

describe("the built-in profile", () => {
  const NAME = "vendor-default-allow";

  test.each([
    `get profile ${NAME}`,
    `get profile ${NAME} -o yaml`,
    `delete profile ${NAME}`,
    `label profile ${NAME} a=b`,
  ])('"%s" says that it is not in the datastore, but exists', async (words) => {
    await apply("Profile", "vendor-default-allowed", {});
    const { code, stderr } = await ctl(words);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`profile/${NAME} in the datastore: it is built in, allows everything`);
    expect(stderr).not.toContain("did you mean");
  });

  test.each(["apply", "create", "delete"])("cannot be replaced: %s -f is refused", async (command) => {
    const { code, stderr } = await ctl(`${command} -f -`, resource("Profile", NAME, {}));

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`metadata.name: "${NAME}" is the name of a built-in profile; use another one`);
  });
});
