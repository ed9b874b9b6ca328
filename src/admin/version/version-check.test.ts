import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { fakeCluster } from "../../../test/support/fake-cluster.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { EtcdFailure, failureOfConnection } from "../../datastore/etcd/failure.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";
import { compareWithCluster } from "./compare-with-cluster.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });
const POOL = `{"apiVersion":"vendor.org/v3","kind":"IPPool","metadata":{"name":"p"},"spec":{"cidr":"10.0.0.0/16"}}`;

async function clusterOf(clusterVersion: string | undefined) {
  const memory = openMemory();
  const spec = { datastoreReady: true, ...(clusterVersion === undefined ? {} : { vendorVersion: clusterVersion }) };
  const value = { apiVersion: "vendor.org/v3", kind: "ClusterInformation", metadata: { name: "default" }, spec };
  await memory.commit([{ kind: "create", key: KEY, value: JSON.stringify(value) }]);
  const calls: string[] = [];
  const store = storeAround(memory, {
    read: (wanted) => {
      calls.push("read");
      return memory.read(wanted);
    },
    commit: (changes) => {
      calls.push("commit");
      return memory.commit(changes);
    },
  });
  const run = (words: string, more: AdminSurroundings = {}) =>
    runInside(words.split(" "), { store, version: "v3.29.0", stdin: POOL, ...more });
  return { run, calls, memory };
}

describe("compareWithCluster()", () => {
  test.each([
    ["v3.29.0", "v3.29.0", "same"],
    ["v3.29.0", "3.29.0", "same"],
    ["v3.29.0-next", "v3.29.0", "same"],
    ["v3.29.0", "v3.29.1", "tool is older"],
    ["v3.29.5", "v3.30.0", "tool is older"],
    ["v3.29.0", "v4.0.0-rc.1", "tool is older"],
    ["v3.30.0", "v3.29.7", "tool is newer"],
    ["v3.29.1", "v3.29.0", "tool is newer"],
    ["v3.29.0", "", "same"],
    ["v3.29.0", "master", "same"],
    ["v3.29.0", undefined, "same"],
  ] as const)("%s on %s: %s", (tool, cluster, kind) => expect(compareWithCluster(tool, cluster).kind).toBe(kind));
});

describe("a tool on a cluster of another release", () => {
  test.each(["get ippools", "apply -f -", "delete ippool p", "ipam show", "datastore init"])(
    "refuses %s if the tool is older, and names both releases and the override",
    async (words) => {
      const { run, calls } = await clusterOf("v3.30.1");
      const { code, stderr, stdout } = await run(words);
      expect([code, stdout]).toEqual([EXIT_FAILED, ""]);
      for (const text of ["v3.30.1", "v3.29.0", "--allow-version-mismatch"]) expect(stderr).toContain(text);
      expect(calls).not.toContain("commit");
    },
  );

  test("works with the override, before or after the command", async () => {
    const { run } = await clusterOf("v3.30.1");
    for (const words of ["get ippools --allow-version-mismatch", "--allow-version-mismatch get ippools"]) {
      expect(await run(words)).toMatchObject({ code: EXIT_OK, stderr: expect.not.stringContaining("v3.30.1") });
    }
  });

  test.each(["version", "explain ippool", "datastore check", "node register --name a", "completion bash"])(
    "does not refuse %s",
    async (words) => {
      const { run } = await clusterOf("v3.30.1");
      expect(await run(words)).toMatchObject({ code: EXIT_OK, stderr: expect.not.stringContaining("Cannot work on") });
    },
  );

  test("warns on stderr if the tool is newer", async () => {
    const { run } = await clusterOf("v3.28.0");
    const { code, stderr, stdout } = await run("get ippools -o json");
    expect(code).toBe(EXIT_OK);
    expect(stderr).toBe("Warning: this vendorctl is v3.29.0, and the cluster has v3.28.0\n");
    expect(JSON.parse(stdout)).toMatchObject({ kind: "List" });
  });

  test("is known without a round trip of its own", async () => {
    const count = async (version: string) => {
      const { run, calls } = await clusterOf("v3.29.0");
      await run("get ippools", { version });
      return calls.length;
    };
    expect(await count("v3.29.0")).toBe(1);
    const { run, calls } = await clusterOf("v3.29.0");
    await run("get ippools --allow-version-mismatch");
    expect(calls).toHaveLength(1);
  });
});

describe("a version that cannot be read", () => {
  test("blocks nothing: absent, empty, damaged, forbidden", async () => {
    const empty = openMemory();
    expect((await runInside(["get", "ippools"], { store: empty })).code).toBe(EXIT_OK);
    const { run } = await clusterOf(undefined);
    expect(await run("get ippools")).toMatchObject({ code: EXIT_OK, stderr: expect.not.stringContaining("Warning") });

    const damaged = openMemory();
    await damaged.commit([{ kind: "create", key: KEY, value: "{" }]);
    expect((await runInside(["get", "ippools"], { store: damaged })).code).toBe(EXIT_OK);

    const memory = openMemory();
    const forbidding = storeAround(memory, {
      read: (wanted) =>
        wanted.some((each) => each.kind === "key" && each.key === KEY)
          ? Promise.reject(new PluginError("datastore-unavailable", "forbidden"))
          : memory.read(wanted),
    });
    expect((await runInside(["get", "ippools"], { store: forbidding })).code).toBe(EXIT_OK);
  });

  test("is reported as the command reports it if nothing can be read", async () => {
    const openDatastore = () => Promise.reject(new PluginError("datastore-unavailable", "Cannot reach etcd"));
    const { code, stderr } = await runInside(["get", "ippools"], { openDatastore });
    expect([code, stderr]).toEqual([EXIT_FAILED, expect.stringContaining("Cannot reach etcd")]);
  });

  test.each([
    ["has no route", new EtcdFailure({ stage: "connect", effect: "none", cure: "moment", advice: "" }, "EHOSTUNREACH")],
    ["is silent", failureOfConnection(new DOMException("The operation timed out.", "TimeoutError"))],
  ])("is not read a second time from an etcd that %s", async (_, cause) => {
    let reads = 0;
    const unreached = storeAround(openMemory(), {
      read: () => {
        reads += 1;
        return Promise.reject(new PluginError("datastore-unavailable", "Cannot reach etcd", { cause }));
      },
    });

    expect((await runInside(["get", "ippools"], { store: unreached })).code).toBe(EXIT_FAILED);
    expect(reads).toBe(1);
  });
});

describe("a command on the whole cluster", () => {
  const env = { KUBECONFIG: "/k" };
  const path = "/apis/vendor.org/v3/clusterinformations/default";
  const information = (version: string) => ({
    apiVersion: "vendor.org/v3",
    kind: "ClusterInformation",
    metadata: { name: "default" },
    spec: { vendorVersion: version },
  });

  test("refuses a later release, and upgrade commands do not warn of an earlier one", async () => {
    const openWith = (version: string) => {
      const { client } = fakeCluster({ objects: { [path]: information(version) } });
      return { openKubeClient: async () => client, env, version: "v3.29.0" };
    };
    for (const words of [["upgrade", "detect"], ["upgrade", "status"], ["uninstall"]]) {
      const { code, stderr } = await runInside(words, openWith("v3.30.0"));
      expect([code, stderr]).toEqual([
        EXIT_FAILED,
        expect.stringContaining("Cannot work on this cluster: it has v3.30.0"),
      ]);
    }
    expect((await runInside(["upgrade", "detect"], openWith("v3.22.0"))).stderr).toBe("");
  });
});
