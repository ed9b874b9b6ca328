/** The controllers of nodes, on two datastores in memory. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ControllersInMemory } from "../../test/support/controllers-in-memory.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { API_VERSION, identity } from "../identity.ts";
import { CREATED_BY_LABEL } from "../model/automatic-host-endpoint.ts";
import { resourceKey } from "../model/keys.ts";
import { CONTROLLERS } from "../model/kube-controllers-configuration.ts";
import { CONFIGURATION_KEY } from "./configuration.ts";
import { controllerSettings } from "./settings.ts";

let site: ControllersInMemory;

beforeEach(() => {
  site = new ControllersInMemory();
});
afterEach(() => site.end());

const KEY = resourceKey("nodes", { name: "n1" });
const OBJECT_KEY = resourceKey("nodes", { name: "host-1" });
const node = (name: string, metadata: object, spec: object = {}) => ({
  apiVersion: API_VERSION,
  kind: "Node",
  metadata: { name, ...metadata },
  spec,
});
const record = (labels: Record<string, string>, spec: object = {}) =>
  node("n1", { labels }, { orchRefs: [{ orchestrator: "k8s", nodeName: "host-1" }], ...spec });
const object = (labels: Record<string, string>, spec: object = {}) => node("host-1", { labels }, spec);

describe("the records of nodes", () => {
  test("get the labels of the orchestrator's node, lose those that it lost, and keep their own", async () => {
    await site.putRecord(KEY, record({ own: "yes" }));
    await site.putObject(OBJECT_KEY, object({ zone: "a", rack: "1" }));
    site.start();
    await site.until(KEY, ({ metadata }) => metadata.labels.zone === "a");
    expect((await site.record(KEY)).metadata.labels).toEqual({ own: "yes", zone: "a", rack: "1" });

    await site.putObject(OBJECT_KEY, object({ zone: "b" }));
    await site.until(KEY, ({ metadata }) => metadata.labels.zone === "b");
    expect((await site.record(KEY)).metadata.labels).toEqual({ own: "yes", zone: "b" });
  });

  test("have a label of the orchestrator's node put back", async () => {
    await site.putRecord(KEY, record({}));
    await site.putObject(OBJECT_KEY, object({ zone: "a" }));
    site.start();
    await site.until(KEY, ({ metadata }) => metadata.labels.zone === "a");
    const { metadata, ...rest } = await site.record(KEY);
    await site.putRecord(KEY, { ...rest, metadata: { ...metadata, labels: { zone: "mine" } } });

    await site.until(KEY, (found) => found.metadata.labels.zone === "a");
  });

  test("get the external addresses of the orchestrator's node, and keep those of the host", async () => {
    const own = { address: "192.0.2.1/24", type: "InternalIP" };
    const external = (address: string) => ({ address, type: "ExternalIP" });
    const listed = async () => (await site.record(KEY)).spec.addresses;
    await site.putRecord(KEY, record({}, { addresses: [own] }));
    await site.putObject(
      OBJECT_KEY,
      object({}, { addresses: [{ ...own, address: "192.0.2.1" }, external("198.51.100.1")] }),
    );
    site.start();
    await site.until(KEY, ({ spec }) => spec.addresses.length === 2);
    expect(await listed()).toEqual([own, external("198.51.100.1")]);

    await site.putObject(OBJECT_KEY, object({ zone: "a" }));
    await site.until(KEY, ({ metadata }) => metadata.labels.zone === "a");
    expect(await listed()).toEqual([own]);
  });

  test("keep their labels if the sync is disabled", async () => {
    await site.putRecord(KEY, record({}));
    await site.putObject(OBJECT_KEY, object({ zone: "a" }));
    const controllers = site.start({ environment: { SYNC_NODE_LABELS: "disabled" } });
    await site.untilSynced(controllers);

    expect((await site.record(KEY)).metadata.labels).toEqual({});
  });

  test("go with the orchestrator's node, those of other hosts stay", async () => {
    const other = resourceKey("nodes", { name: "podman-host" });
    await site.putRecord(KEY, record({}));
    await site.putRecord(other, node("podman-host", {}));
    await site.putObject(OBJECT_KEY, object({}));
    const controllers = site.start();
    await site.untilSynced(controllers);
    expect(await site.record(KEY)).toBeDefined();

    await site.deleteObject(OBJECT_KEY);
    await site.until(KEY, (found) => found === undefined);
    expect(await site.record(other)).toBeDefined();
  });

  test("stay if the orchestrator's API, asked again, has the node", async () => {
    const controllers = site.start({ watches: "silent" });
    await pollUntil(() => controllers.states.every(({ isListed }) => isListed), "the first lists");
    await site.putObject(OBJECT_KEY, object({}));
    await site.putRecord(KEY, record({}));
    const isRefused = () => controllers.states.some(({ failingKeys }) => failingKeys > 0);
    await pollUntil(async () => isRefused() || (await site.record(KEY)) === undefined, "the decision");

    expect(await site.record(KEY)).toBeDefined();
  });
});

describe("automatic host endpoints", () => {
  const ENDPOINT_KEY = resourceKey("hostendpoints", { name: "n1-auto-hep" });
  const enabled = { environment: { AUTO_HOST_ENDPOINTS: "enabled" } };

  test("have the labels of their node and all its addresses, without duplicates, and follow them", async () => {
    const spec = {
      bgp: { ipv4Address: "10.1.0.1/24", ipv4IPIPTunnelAddr: "10.2.0.1" },
      ipv4VXLANTunnelAddr: "10.3.0.1",
      ipv6VXLANTunnelAddr: "fd03::1",
      addresses: [{ address: "10.1.0.1", type: "InternalIP" }],
    };
    const reported = {
      addresses: [
        { address: "10.1.0.1", type: "InternalIP" },
        { address: "fd01::1", type: "InternalIP" },
      ],
    };
    await site.putRecord(KEY, record({ zone: "a" }, spec));
    await site.putObject(OBJECT_KEY, object({ zone: "a" }, reported));
    site.start(enabled);

    await site.until(ENDPOINT_KEY, (found) => found !== undefined);
    expect(await site.record(ENDPOINT_KEY)).toMatchObject({
      metadata: { name: "n1-auto-hep", labels: { zone: "a", "vendor.org/created-by": identity.controllers } },
      spec: {
        node: "n1",
        interfaceName: "*",
        expectedIPs: ["10.1.0.1", "10.2.0.1", "10.3.0.1", "fd03::1", "fd01::1"],
        profiles: ["vendor-default-allow"],
      },
    });
    await site.putObject(
      OBJECT_KEY,
      object({ zone: "b" }, { addresses: [{ address: "10.1.0.9", type: "InternalIP" }] }),
    );
    await site.until(
      ENDPOINT_KEY,
      ({ metadata, spec: { expectedIPs } }) => metadata.labels.zone === "b" && expectedIPs.includes("10.1.0.9"),
    );
  });

  test("are held if most of their nodes are gone at once", async () => {
    const keys = Array.from({ length: 25 }, (_, index) => resourceKey("hostendpoints", { name: `n${index}-auto-hep` }));
    for (const [index, key] of keys.entries()) {
      const labels = { [CREATED_BY_LABEL]: identity.controllers };
      const metadata = { name: `n${index}-auto-hep`, labels };
      const spec = { node: `n${index}`, interfaceName: "*", expectedIPs: [], profiles: [] };
      await site.putRecord(key, { apiVersion: API_VERSION, kind: "HostEndpoint", metadata, spec });
    }
    const controllers = site.start(enabled);
    const state = () => controllers.states.find(({ name }) => name === "host endpoints");
    await pollUntil(() => state()?.isSynced ?? false, "all keys to be worked on");

    expect(state()).toMatchObject({ heldRemovals: 25, writes: 0 });
  });

  test("are put back if they are changed or deleted, and go with their node", async () => {
    await site.putRecord(KEY, record({}));
    await site.putObject(OBJECT_KEY, object({}));
    site.start(enabled);
    await site.until(ENDPOINT_KEY, (found) => found !== undefined);
    await site.deleteRecord(ENDPOINT_KEY);
    await site.until(ENDPOINT_KEY, (found) => found !== undefined);
    const { spec, ...rest } = await site.record(ENDPOINT_KEY);
    await site.putRecord(ENDPOINT_KEY, { ...rest, spec: { ...spec, profiles: [] } });
    await site.until(ENDPOINT_KEY, (found) => found.spec.profiles.length === 1);

    await site.deleteObject(OBJECT_KEY);
    await site.until(ENDPOINT_KEY, (found) => found === undefined);
  });

  test("are removed if they are disabled; those of users stay, whatever their name is", async () => {
    const own = resourceKey("hostendpoints", { name: "n2-auto-hep" });
    await site.putRecord(KEY, record({}));
    await site.putObject(OBJECT_KEY, object({}));
    await site.putRecord(own, {
      apiVersion: API_VERSION,
      kind: "HostEndpoint",
      metadata: { name: "n2-auto-hep" },
      spec: { node: "n2", interfaceName: "*" },
    });
    site.start(enabled);
    await site.until(ENDPOINT_KEY, (found) => found !== undefined);
    await site.end();
    const controllers = site.start();

    await site.until(ENDPOINT_KEY, (found) => found === undefined);
    await site.untilSynced(controllers);
    expect(await site.record(own)).toBeDefined();
  });

  test("of an earlier release, whose controllers had another name, are kept up to date", async () => {
    await site.putRecord(KEY, record({ zone: "a" }));
    await site.putObject(OBJECT_KEY, object({ zone: "a" }));
    await site.putRecord(ENDPOINT_KEY, {
      apiVersion: API_VERSION,
      kind: "HostEndpoint",
      metadata: { name: "n1-auto-hep", labels: { [CREATED_BY_LABEL]: `${identity.product}-kube-controllers` } },
      spec: { node: "n1", interfaceName: "*" },
    });
    site.start(enabled);

    await site.until(ENDPOINT_KEY, ({ metadata }) => metadata.labels.zone === "a");
    expect((await site.record(ENDPOINT_KEY)).metadata.labels[CREATED_BY_LABEL]).toBe(identity.controllers);
  });
});

describe("the configuration", () => {
  test("is created with a section of each controller, so that a patch of one ends no other", async () => {
    site.start();
    await site.until(CONFIGURATION_KEY, (found) => found !== undefined);
    const { spec } = await site.record(CONFIGURATION_KEY);

    expect(spec).toEqual({ controllers: Object.fromEntries(CONTROLLERS.map((name) => [name, {}])) });
    const node = { hostEndpoint: { autoCreate: "Enabled" } } as const;
    const patched = controllerSettings({}, { controllers: { ...spec.controllers, node } }, { isEtcd: true });
    expect(Object.keys(patched.running.controllers)).toEqual([...CONTROLLERS]);
  });
});
