import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { namedBy, workloadNames } from "./workload-names.ts";

const DB_ID = "0a77c4";
/** Its ID begins with the names of others. */
const OTHER_ID = "db77c4";

function endpoint(containerID: string, more: { workload: string } | { pod: string }, namespace = "default") {
  const name = `n1-cni-${containerID}-eth0`;
  const address = `10.0.0.${containerID === DB_ID ? 1 : containerID === OTHER_ID ? 2 : 3}/32`;
  const spec = { orchestrator: "cni", node: "n1", containerID, endpoint: "eth0", ipNetworks: [address], ...more };
  return { apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata: { name, namespace }, spec };
}

const CONTAINERS = [endpoint(DB_ID, { workload: "db" }), endpoint(OTHER_ID, { workload: "web" })];

async function storeWith(...all: readonly ReturnType<typeof endpoint>[]) {
  const store = openMemory();
  await seed(
    store,
    ...all.map((each) => ({
      ...{ kind: "put" as const, key: resourceKey("workloadendpoints", each.metadata), value: JSON.stringify(each) },
    })),
  );
  return store;
}

describe("namedBy()", () => {
  const all = [...CONTAINERS, endpoint("db77ff", { pod: "db77" }, "shop")].map((each) =>
    workloadEndpoint.readObject(each, "test"),
  );

  test.each([
    ["db", [DB_ID]],
    ["web", [OTHER_ID]],
    ["db77", ["db77ff"]],
    ["db77c", [OTHER_ID]],
    [OTHER_ID, [OTHER_ID]],
    ["0a7", []],
    ["0a77", [DB_ID]],
    ["", []],
  ])("%p: whole names first, then IDs from four characters", (word, ids) => {
    expect(namedBy(word, all, workloadNames).map(({ spec }) => spec.containerID ?? "")).toEqual(ids);
  });
});

describe("a name that is the beginning of another container's ID", () => {
  test.each([
    ["get wep db -o name", `n1-cni-${DB_ID}-eth0`],
    ["policy explain --from db --to web --port 80", "From:       db (10.0.0.1"],
    ["policy explain --from default/db --to default/db77c --port 80", "To:         web (10.0.0.2"],
    ["ipam explain db", "10.0.0.1"],
    ["ipam explain default/db", "10.0.0.1"],
  ])("is that of the container: %s", async (line, text) => {
    const { code, stdout } = await runInside(line.split(" "), { store: await storeWith(...CONTAINERS) });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(text);
  });
});

test.each(["policy explain --from db --to web --port 80", "ipam explain db"])(
  "a container and a pod of one name are both listed: %s",
  async (line) => {
    const store = await storeWith(...CONTAINERS, endpoint("ff00aa", { pod: "db" }, "shop"));
    const { code, stderr } = await runInside(line.split(" "), { store });

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain('"db" names several workloads');
    expect(stderr).toContain("shop/db");
  },
);
