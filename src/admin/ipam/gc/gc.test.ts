import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, request, seed, textsOf } from "../../../../test/support/ipam.ts";
import { startFakeApi } from "../../../../test/support/kube-api/fake-api.ts";
import { storeAround } from "../../../../test/support/wrapped-store.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../../config/installed-network-list.ts";
import type { Change } from "../../../datastore/datastore.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { readAllRecords } from "../../../ipam/all-records.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { findProblems } from "../../../ipam/invariants.ts";
import { formatMark } from "../../../ipam/link-mark.ts";
import { clusterInformation } from "../../../model/cluster-information.ts";
import { keepHandle } from "../../../model/kept-address.ts";
import { blocksPrefix, borrowedPrefix, resourceKey } from "../../../model/keys.ts";
import { workloadEndpointName } from "../../../model/workload-endpoint-name.ts";
import { EXIT_FAILED, EXIT_OK } from "../../main/command.ts";

/** The file exists; the datastore is that of the test. */
const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };

/** When everything is assigned. */
const ASSIGNED = "2026-01-02T03:04:05Z";
const minutesLater = (minutes: number) => new Date(Date.parse(ASSIGNED) + minutes * 60_000);

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/16", { blockSize: 30 }), nodeChange("node-2"));
  await runInside("node register --name node-1".split(" "), { store });
});

const allocator = () => openAllocator(store, means());
const gc = (words: string, surroundings: AdminSurroundings = {}) =>
  runInside(`ipam gc --name node-1 ${words}`.trim().split(" "), { store, now: minutesLater(60), ...surroundings });

/** It waits for half an hour, from the start. */
async function keptAddress(identity: Readonly<Record<string, string>>) {
  const handle = keepHandle({ network: "net", namespace: "", identity: JSON.stringify(identity) });
  const attributes = { ...identity, kept: "1800", containerID: "c1" };
  const { addresses } = await allocator().assign(
    request(handle, { network: "net", interface: "eth0", node: "node-1", attributes }),
  );
  await allocator().releaseAddresses(addresses);
  return { handle, address: addresses.map(({ address }) => formatAddress(address)).join() };
}

const endpointKey = (node: string, containerId: string) => {
  const named = workloadEndpointName({ node, orchestrator: "cni", workload: containerId, endpoint: "eth0" });
  return resourceKey("workloadendpoints", { namespace: "default", name: named.ok ? named.name : "" });
};

/** As the network plugin attaches a container. */
async function attach(containerId: string, node = "node-1"): Promise<string> {
  const owner = { network: "net", interface: "eth0", node } as const;
  const [address = ""] = textsOf(await allocator().assign(request(`net.${containerId}`, owner)));
  const spec = { orchestrator: "cni", node, containerID: containerId, endpoint: "eth0", ipNetworks: [`${address}/32`] };
  const key = endpointKey(node, containerId);
  const name = key.slice(key.lastIndexOf("/") + 1);
  const metadata = { name, namespace: "default" };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata, spec });
  const change: Change = { kind: "put", key, value };
  await seed(store, change);
  return address;
}

/** As if every address had been assigned at the beginning. */
const agedBlocks = async (): Promise<readonly Change[]> =>
  (await readAllEntries(store, blocksPrefix(4))).map(({ key, value }) => ({
    kind: "put",
    key,
    value: value.replaceAll(/("timestamp":\s*")[^"]*"/g, `$1${ASSIGNED}"`),
  }));

const hasEndpoint = async (node: string, containerId: string) =>
  ((await store.read([{ kind: "key", key: endpointKey(node, containerId) }])).answers[0] ?? []).length > 0;
const revisionOf = async (containerId: string) =>
  (await store.read([{ kind: "key", key: endpointKey("node-1", containerId) }])).answers[0]?.[0]?.revision ?? "";
const borrowings = async (node: string) =>
  (await readAllEntries(store, borrowedPrefix(node))).map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
const handles = async () => (await readAllRecords(store)).handles.map(({ handleId }) => handleId).sort();
const linksOf = (...containers: readonly string[]) => ({
  hostLinks: {
    marks: new Set(containers.map((containerId) => formatMark({ network: "net", containerId, ifname: "eth0" }))),
  },
});

describe("ipam gc", () => {
  test("releases, with their endpoints, addresses of this node whose containers have no link, and only those", async () => {
    const [gone] = [await attach("gone"), await attach("runs"), await attach("away", "node-2")];
    await allocator().assign(request("net.foreign", { network: "net" }));

    const { code, stdout } = await gc("", linksOf("runs"));
    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(
      `released ${gone} (container "gone", interface "eth0" of network "net"): the host has no link for it`,
    );
    expect(await handles()).toEqual(["net.away", "net.foreign", "net.runs"]);
    expect([await hasEndpoint("node-1", "gone"), await hasEndpoint("node-1", "runs")]).toEqual([false, true]);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("releases no address whose endpoint it cannot remove: the next one finds both", async () => {
    await attach("gone");
    const refusing = storeAround(store, {
      commit: (changes) =>
        changes.some(({ kind, key }) => kind === "delete" && key === endpointKey("node-1", "gone"))
          ? Promise.reject(new Error("refused"))
          : store.commit(changes),
    });

    expect((await gc("", { store: refusing })).code).not.toBe(EXIT_OK);
    expect([await handles(), await hasEndpoint("node-1", "gone")]).toEqual([["net.gone"], true]);

    expect((await gc("")).code).toBe(EXIT_OK);
    expect([await handles(), await hasEndpoint("node-1", "gone")]).toEqual([[], false]);
  });

  test("forgets the connections of an address before it is released", async () => {
    const gone = await attach("gone");
    const forgotten: string[] = [];
    const forgetConnections = async (addresses: readonly Address[]) => {
      forgotten.push(...addresses.map(formatAddress), ...(await handles()));
    };
    await gc("--dry-run", { forgetConnections });
    expect(forgotten).toEqual([]);
    await gc("", { forgetConnections });
    expect([forgotten, await handles()]).toEqual([[gone, "net.gone"], []]);
  });

  test("--dry-run shows each with its reason and changes nothing", async () => {
    const address = await attach("gone");
    const { stdout } = await gc("--dry-run");

    expect(stdout).toContain(`would release ${address}`);
    expect(stdout).toContain("60 minutes after it was assigned");
    expect(await handles()).toEqual(["net.gone"]);
  });

  test("waits while an ADD may be in progress, but not after a reboot", async () => {
    await attach("new");
    await gc("", { now: minutesLater(4) });
    expect(await handles()).toEqual(["net.new"]);

    const { stdout } = await gc("", { now: minutesLater(4), hostLinks: { bootedAt: minutesLater(3) } });
    expect(stdout).toContain("the host was booted after it was assigned");
    expect(await handles()).toEqual([]);
  });

  test("finds an address in another node's block through its endpoint", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/29", { blockSize: 29 }));
    await attach("away", "node-2");
    await attach("borrows");
    await gc("");

    expect(await handles()).toEqual(["net.away"]);
  });

  test("finds an address in another node's block without an endpoint, and forgets the block afterwards", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/29", { blockSize: 29 }));
    await attach("away", "node-2");
    const owner = { network: "net", interface: "eth0", node: "node-1" } as const;
    await allocator().assign(request("net.borrows", owner));
    expect(await borrowings("node-1")).toEqual(["10.0.0.0-29"]);
    await gc("");

    expect([await handles(), await borrowings("node-1")]).toEqual([["net.away"], []]);
  });

  test("finds an address in a block that lost its node", async () => {
    await attach("stays");
    await runInside("delete node node-1 --force".split(" "), { store });
    await store.commit([{ kind: "delete", key: endpointKey("node-1", "stays"), revision: await revisionOf("stays") }]);
    expect(await borrowings("node-1")).toHaveLength(1);
    await runInside("node register --name node-1".split(" "), { store });
    await gc("");
    expect(await handles()).toEqual([]);
    // It leads to the block until the address has rested.
    expect(await borrowings("node-1")).toHaveLength(1);
    expect(findProblems({ ...(await readAllRecords(store)), now: minutesLater(60) })).toEqual([]);

    await gc("", { now: minutesLater(64) });
    await gc("", { now: minutesLater(64) });
    expect([await borrowings("node-1"), (await readAllRecords(store)).blocks]).toEqual([[], []]);
  });

  test("keeps the address of a container that is restarted after a reboot, while its link is not there yet", async () => {
    const owner = { network: "net", interface: "eth0", node: "node-1" } as const;
    const address = await attach("restarted");
    const restart = () =>
      openAllocator(store, means({ now: () => minutesLater(60) })).assign(
        request("net.restarted", { ...owner, renewsHeld: true }),
      );
    const rebooted = { now: minutesLater(60), hostLinks: { bootedAt: minutesLater(50) } };

    // Before the search reads the records.
    expect((await restart()).addresses).toMatchObject([{ held: true }]);
    await gc("", rebooted);
    expect([await handles(), await hasEndpoint("node-1", "restarted")]).toEqual([["net.restarted"], true]);

    // After that, and before it releases.
    await seed(store, ...(await agedBlocks()));
    let isRestarted = false;
    const racing = storeAround(store, {
      async commit(changes) {
        if (!isRestarted) {
          isRestarted = true;
          await restart();
        }
        return store.commit(changes);
      },
    });
    const { stdout } = await gc("", { ...rebooted, store: racing });
    expect(isRestarted).toBe(true);
    expect(stdout).toContain(`kept, since it has changed ${address}`);
    expect([await handles(), await hasEndpoint("node-1", "restarted")]).toEqual([["net.restarted"], true]);
  });

  test('finds what "ipam check" reports at once on the host, and --fix releases', async () => {
    const address = await attach("gone");
    const here = { store, hostName: "node-1", now: minutesLater(6) };
    const check = (words: string) => runInside(`ipam check ${words}`.trim().split(" "), here);
    const found = await check("");
    expect(found.code).toBe(EXIT_FAILED);
    expect(found.stdout).toContain(
      `Address ${address} (container "gone", interface "eth0" of network "net") is leaked`,
    );
    const elsewhere = await runInside(["ipam", "check"], { ...here, hostName: "node-2" });
    expect(elsewhere.stdout).not.toContain("container-gone");
    const config = { name: "net", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } };
    const embedded = { ...config, datastore_type: "embedded", datastore_path: import.meta.path };
    const files = { "/etc/cni/net.d/10-net.conf": JSON.stringify(embedded) };
    const status = await runInside(["status"], { ...here, files });
    expect(status.stdout).toContain(`for example: Address ${address} (container "gone"`);
    expect(await handles()).toEqual(["net.gone"]);

    expect((await check("--fix")).code).toBe(EXIT_OK);
    expect([await handles(), await hasEndpoint("node-1", "gone")]).toEqual([[], false]);
  });

  test("gives empty blocks back, except one of each pool", async () => {
    for (let index = 0; index < 12; index++) await attach(`c${index}`);
    expect((await gc("")).stdout).toContain("12 leaked addresses, 2 surplus blocks");
    const given = await readAllRecords(store);
    expect([given.blocks.length, given.affinities.length]).toEqual([3, 1]);
    expect(findProblems(given)).toEqual([]);
    await gc("", { now: minutesLater(63) });

    expect((await readAllRecords(store)).blocks).toHaveLength(1);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("gives every empty block back that is in no pool any more", async () => {
    await attach("gone");
    await gc("");
    expect((await readAllRecords(store)).blocks).toHaveLength(1);
    const { answers } = await store.read([{ kind: "key", key: resourceKey("ippools", { name: "blue" }) }]);
    for (const { key, revision } of answers.flat()) await store.commit([{ kind: "delete", key, revision }]);

    expect((await gc("")).stdout).toContain("0 leaked addresses, 1 surplus block");
    await gc("", { now: minutesLater(63) });
    const { blocks, affinities } = await readAllRecords(store);
    expect([blocks, affinities]).toEqual([[], []]);
  });

  test("is refused in another network namespace, and on another machine under the same name", async () => {
    await attach("gone");
    const elsewhere = await gc("", { hostLinks: { isHostNamespace: false } });
    expect(elsewhere).toMatchObject({ code: EXIT_FAILED, stderr: expect.stringContaining("--any-namespace") });
    const another = await gc("", { machineIdentity: "another" });
    expect(another).toMatchObject({ code: EXIT_FAILED, stderr: expect.stringContaining("another machine") });
    expect(await handles()).toEqual(["net.gone"]);
  });

  test("is refused under a name that no machine has registered, unless the datastore is embedded", async () => {
    await attach("gone");
    await seed(store, nodeChange("node-1"));
    const refused = await gc("");
    expect(refused).toMatchObject({ code: EXIT_FAILED, stderr: expect.stringContaining("node register") });
    expect(await handles()).toEqual(["net.gone"]);

    expect((await gc("", { env: EMBEDDED })).code).toBe(EXIT_OK);
    expect(await handles()).toEqual([]);
  });

  test("keeps what was assigned before this machine registered the node, unless told otherwise", async () => {
    const replaced = { store, machineIdentity: "successor", now: minutesLater(1) };
    await attach("of-the-predecessor");
    await runInside("node register --name node-1 --force".split(" "), replaced);
    const kept = await gc("", { machineIdentity: "successor" });
    expect(kept.stderr).toContain("--before-registration");
    expect(await handles()).toEqual(["net.of-the-predecessor"]);

    await gc("--before-registration", { machineIdentity: "successor" });
    expect(await handles()).toEqual([]);
  });

  test("frees addresses of the node's blocks that have waited for a container longer than their keepFor", async () => {
    const { handle, address } = await keptAddress({ container: "web" });
    const held = async () => (await allocator().held({ handle, node: "node-1" })).length;
    await gc("", { now: minutesLater(29) });
    expect(await held()).toBe(1);
    const text = `${address} (kept for container "web" of node node-1): it has waited since`;
    expect((await gc("--dry-run", { now: minutesLater(30) })).stdout).toContain(`would free ${text}`);
    expect(await held()).toBe(1);

    expect((await gc("", { now: minutesLater(30) })).stdout).toContain(`freed ${text}`);
    expect(await held()).toBe(0);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  describe("asks the orchestrator about what the host alone cannot judge:", () => {
    const LATER = { now: minutesLater(60), env: { DATASTORE_TYPE: "etcdv3", KUBECONFIG: "/kubeconfig" } };
    const OF_POD = { network: "net", node: "node-1", attributes: { pod: "web", namespace: "red" } } as const;
    let api = startFakeApi();
    beforeEach(async () => {
      api = startFakeApi();
      await create("/api/v1/nodes", { metadata: { name: "node-1" } });
    });
    const create = (path: string, object: object) =>
      api.connect(async (_, send) => send()).request({ method: "POST", path, body: JSON.stringify(object) });
    const createPod = (ip: string) =>
      create("/api/v1/namespaces/red/pods", {
        metadata: { name: "web", namespace: "red" },
        spec: { nodeName: "node-1" },
        status: { podIPs: [{ ip }] },
      });
    const asking = (more: AdminSurroundings = {}) =>
      gc("", { ...LATER, openKubeClient: async () => api.connect(async (_, send) => send()), ...more });
    const assign = async (more: object) =>
      textsOf(await allocator().assign(request("net.c1", { ...OF_POD, ...more })))[0] ?? "";

    test("leaves addresses that wait for a pod to the controllers", async () => {
      const { handle } = await keptAddress({ pod: "db-0", namespace: "red" });
      expect((await asking()).stdout).not.toContain("freed");
      expect(await allocator().held({ handle, node: "node-1" })).toHaveLength(1);

      expect((await gc("", { now: minutesLater(60) })).stdout).toContain("(kept for pod red/db-0)");
      expect(await allocator().held({ handle, node: "node-1" })).toEqual([]);
    });

    const TAKEN_OVER = { machineIdentity: "successor" };
    const takeOver = () =>
      runInside("node register --name node-1 --force".split(" "), { store, ...TAKEN_OVER, now: minutesLater(1) });

    test("of a former machine of the node, whose pod is gone", async () => {
      await assign({ interface: "eth0" });
      await takeOver();
      const { code, stdout, stderr } = await asking(TAKEN_OVER);

      expect([code, stderr]).toEqual([EXIT_OK, ""]);
      expect(stdout).toContain("pod red/web does not exist, and the host has no link for it");
      expect(await handles()).toEqual([]);
    });

    test("not one that its pod has, or that the host has a link for", async () => {
      const address = await assign({ interface: "eth0" });
      await takeOver();
      await asking({ ...TAKEN_OVER, ...linksOf("c1") });
      expect(await handles()).toEqual(["net.c1"]);

      await createPod(address);
      await asking(TAKEN_OVER);
      expect(await handles()).toEqual(["net.c1"]);
    });

    test("of another plugin, if no process has the address", async () => {
      const address = await assign({});
      for (const containerAddresses of [new Set(["127.0.0.1", address]), undefined]) {
        await asking(containerAddresses === undefined ? {} : { containerAddresses });
        expect(await handles()).toEqual(["net.c1"]);
      }

      await asking({ containerAddresses: new Set(["127.0.0.1"]) });
      expect(await handles()).toEqual([]);
    });

    test("without a time of its assignment", async () => {
      await assign({ interface: "eth0" });
      const blocks = await readAllEntries(store, blocksPrefix(4));
      for (const { key, value } of blocks)
        await seed(store, { kind: "put", key, value: value.replaceAll(/"timestamp":\s*"[^"]*"/g, '"timestamp":""') });
      await asking();

      expect(await handles()).toEqual([]);
    });

    test("not while the datastore does not record this cluster, and says so", async () => {
      await create("/api/v1/namespaces", { metadata: { name: "kube-system" } });
      await assign({ interface: "eth0" });
      await takeOver();
      const { code, stderr } = await asking(TAKEN_OVER);

      expect([code, await handles()]).toEqual([EXIT_OK, ["net.c1"]]);
      expect(stderr).toContain("the datastore does not record that it belongs to this cluster");
      expect(stderr).toContain("datastore adopt-cluster");
    });

    test("not while the datastore is recorded for another cluster, and says how to confirm a move", async () => {
      await create("/api/v1/namespaces", { metadata: { name: "kube-system" } });
      const record = (spec: object) => {
        const value = clusterInformation.write(clusterInformation.make({ name: "default" }, spec));
        return seed(store, { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value });
      };
      await record({ kubeSystemUID: "another" });
      await assign({ interface: "eth0" });
      await takeOver();
      const plugin = { type: identity.product, nodename: "node-1", ipam: { type: identity.ipamType } };
      const list = JSON.stringify({ name: "net", cniVersion: "1.0.0", plugins: [plugin] });
      const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-net.conflist`]: list };
      const client = api.connect(async (_, send) => send());
      const search = () => gc("", { ...LATER, ...TAKEN_OVER, files, openKubeClient: async () => client });
      const { code, stderr } = await search();
      expect([code, await handles()]).toEqual([EXIT_OK, ["net.c1"]]);
      expect(stderr).toContain("does not record that it belongs to this cluster");
      expect(stderr).toContain("confirm it: vendorctl datastore adopt-cluster");

      const { text } = await client.request({ method: "GET", path: "/api/v1/namespaces/kube-system" });
      await record({ kubeSystemUID: JSON.parse(text).metadata.uid });
      await search();
      expect(await handles()).toEqual([]);
    });

    test("while the API cannot be reached, it releases the others, and fails", async () => {
      await assign({});
      await attach("gone");
      const { code, stdout } = await asking({ openKubeClient: () => Promise.reject(new Error("unreachable")) });

      expect(code).toBe(EXIT_FAILED);
      expect(stdout).toContain("1 leaked address");
      expect(await handles()).toEqual(["net.c1"]);
    });
  });

  test("keeps an address that the host has a route to, whatever the alias of the link", async () => {
    const address = await attach("renamed");
    await gc("", { hostLinks: { routed: new Map([[address, ""]]) } });

    expect(await handles()).toEqual(["net.renamed"]);
  });
});
