import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { registerAsAgent } from "../../../test/support/agent-registration.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { Interruption, STOP_EXIT_CODES } from "../main/interruption.ts";

/** A cluster of nodes whose agents register as they do when they start. */
async function openCluster(version: string) {
  const store = openMemory();
  const run = (words: string, more: AdminSurroundings = {}) => runInside(words.split(" "), { store, ...more });
  const upgrade = (node: string, release: string) => {
    const plugin = { type: identity.product, nodename: node, ipam: { type: identity.ipamType } };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };
    return registerAsAgent({ store, files, version: release, machineIdentity: `machine of ${node}` });
  };
  const versions = async () => JSON.parse((await run("version -o json", { version })).stdout);
  await run("datastore init", { version });
  await run(`patch clusterinformation default -p {"spec":{"${identity.product}Version":"${version}"}}`);
  return { store, run, upgrade, versions };
}

describe("the version of the cluster", () => {
  test("rises when the agent of the last node has it, to the earliest of all", async () => {
    const { upgrade, versions } = await openCluster("v1.0.0");
    await upgrade("a", "v1.0.0");
    await upgrade("b", "v1.0.0");
    expect(await versions()).toEqual({ clientVersion: "v1.0.0", clusterVersion: "v1.0.0" });

    expect((await upgrade("a", "v1.10.0")).stdout).toBe("node/a updated\n");
    expect(await versions()).toMatchObject({
      clusterVersion: "v1.0.0",
      heldBackBy: [{ node: "b", version: "v1.0.0" }],
    });
    expect((await upgrade("b", "v1.9.0")).stdout).toContain("v1.9.0");
    expect(await versions()).toMatchObject({
      clusterVersion: "v1.9.0",
      heldBackBy: [{ node: "b", version: "v1.9.0" }],
    });
    await upgrade("b", "v1.10.0");
    expect(await versions()).toEqual({ clientVersion: "v1.0.0", clusterVersion: "v1.10.0" });
  });

  test("never falls, neither by a downgrade nor by a node that joins with an earlier release", async () => {
    const { upgrade, versions } = await openCluster("v2.0.0");
    await upgrade("a", "v2.0.0");
    await upgrade("b", "v1.0.0");
    await upgrade("a", "v1.5.0");
    expect((await versions()).clusterVersion).toBe("v2.0.0");
  });

  test("counts a node without a recorded release as behind, until it is deleted", async () => {
    const { run, upgrade, versions } = await openCluster("v1.0.0");
    await run("node register --name by-hand");
    await upgrade("a", "v1.1.0");
    expect(await versions()).toMatchObject({ clusterVersion: "v1.0.0", heldBackBy: [{ node: "by-hand" }] });

    await run("delete node by-hand");
    await upgrade("a", "v1.1.0");
    expect(await versions()).toEqual({ clientVersion: "v1.0.0", clusterVersion: "v1.1.0" });
  });

  test("is written once by agents that start at the same time", async () => {
    const { upgrade, versions } = await openCluster("v1.0.0");
    const names = ["a", "b", "c", "d"];
    for (const node of names) await upgrade(node, "v1.0.0");
    const done = await Promise.all(names.map((node) => upgrade(node, "v1.1.0")));
    expect(done.map(({ code }) => code)).toEqual(names.map(() => EXIT_OK));
    expect((await versions()).clusterVersion).toBe("v1.1.0");
  });

  test("stays while the datastore is locked", async () => {
    const { run, upgrade, versions } = await openCluster("v1.0.0");
    await run('patch clusterinformation default -p {"spec":{"datastoreReady":false}}');
    await upgrade("a", "v1.1.0");
    expect((await versions()).clusterVersion).toBe("v1.0.0");
  });
});

describe("version", () => {
  test("names the nodes that hold the cluster back, one per line", async () => {
    const { run, upgrade } = await openCluster("v1.0.0");
    await upgrade("a", "v1.0.0");
    await upgrade("b", "v1.1.0");
    await run("node register --name c");

    expect((await run("version", { version: "v1.1.0" })).stdout).toBe(
      [
        "Client Version:     v1.1.0",
        "Cluster Version:    v1.0.0",
        'Held Back By:       node "a" (v1.0.0)',
        '                    node "c" (no agent has recorded its version)',
        "",
      ].join("\n"),
    );
  });

  test("says why the version of the cluster is unknown, and succeeds", async () => {
    const openDatastore = () => Promise.reject(new PluginError("datastore-unavailable", "Cannot reach etcd"));
    const { code, stdout } = await runInside(["version"], { openDatastore, version: "v1.0.0" });
    expect([code, stdout]).toEqual([
      EXIT_OK,
      "Client Version:     v1.0.0\nCluster Version:    unknown (Cannot reach etcd)\n",
    ]);
    expect((await runInside(["version"])).stdout).toContain("unknown (the datastore is not initialized)");
  });

  test("--poll prints what has changed, until it is stopped", async () => {
    const stopping = new AbortController();
    const store = openMemory();
    const states = ["v3.29.1", "v3.29.1", "v3.29.2"];
    let waits = 0;
    const set = (version: string) =>
      runInside(["apply", "-f", "-", "--allow-version-mismatch"], {
        store,
        stdin: JSON.stringify({
          apiVersion: API_VERSION,
          kind: "ClusterInformation",
          metadata: { name: "default" },
          spec: { [`${identity.product}Version`]: version },
        }),
      });
    await set(states[0] ?? "");
    const { code, stdout } = await runInside(["version", "--poll", "10s"], {
      store,
      version: "v3.29.2",
      signal: stopping.signal,
      wait: async (milliseconds) => {
        expect(milliseconds).toBe(10_000);
        waits += 1;
        const next = states[waits];
        if (next === undefined) stopping.abort(new Interruption("SIGINT"));
        else await set(next);
      },
    });

    expect(code).toBe(STOP_EXIT_CODES.SIGINT);
    expect(stdout.match(/Cluster Version: {4}\S+/g)).toEqual([
      "Cluster Version:    v3.29.1",
      "Cluster Version:    v3.29.2",
    ]);
  });

  test.each([
    ["--poll", "often"],
    ["--poll=0s", "--client"],
    ["--poll", "0s"],
  ])("%s %s is wrong usage", async (...args) => {
    expect((await runInside(["version", ...args.filter((each) => typeof each === "string")])).code).toBe(EXIT_USAGE);
  });
});
