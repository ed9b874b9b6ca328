import { afterEach, describe, expect, test } from "bun:test";
import { prefixes } from "../../../test/support/bgp-plan.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { startFakeApi } from "../../datastore/kube/fake-api.ts";
import { SERVICE_RECORDS } from "../../datastore/kube/service-records.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { formatAddress } from "../../ip/address.ts";
import type { ServiceNetworks } from "../../routing/bgp/announcements.ts";
import { ServiceFollower } from "./service-follower.ts";

const NONE: ServiceNetworks = { cluster: [], external: [], loadBalancer: [], all: [] };
const EXTERNAL: ServiceNetworks = { ...NONE, external: prefixes("192.0.2.0/24"), all: prefixes("192.0.2.0/24") };

const service = (name: string, externalIP: string, externalTrafficPolicy = "Local") => ({
  metadata: { name, namespace: "shop" },
  spec: { externalTrafficPolicy, externalIPs: [externalIP] },
});
const slice = (name: string, of: string, nodeName: string, ready = true) => ({
  metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": of } },
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.0.0.5"], nodeName, conditions: { ready } }],
});
const SERVICES = "/api/v1/namespaces/shop/services";
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";

describe("ServiceFollower", () => {
  const stop = new AbortController();
  afterEach(() => stop.abort());

  test("follows only what is needed: Services with networks, EndpointSlices with a Service in them", async () => {
    const api = startFakeApi();
    const asked: string[] = [];
    const write = (method: "POST" | "PUT" | "DELETE", path: string, object?: object) =>
      api.respond({ method, path, ...(object === undefined ? {} : { body: JSON.stringify(object) }) });
    const open = async () => {
      const client = api.connect();
      const noting = {
        ...client,
        request: (request: Parameters<typeof client.request>[0]) => {
          asked.push(request.path);
          return client.request(request);
        },
        watch: (...given: Parameters<typeof client.watch>) => {
          asked.push(given[0]);
          return client.watch(...given);
        },
      };
      return openKubeStore({ api: noting, mappings: SERVICE_RECORDS, close: () => client.close() });
    };
    const wait = SYSTEM_CLOCK.wait;
    const follower = new ServiceFollower({ node: "node-1", open, report: () => {}, wait, replica: {} });
    const texts = () =>
      follower.services?.map(({ externalIPs, families }) => `${externalIPs.map(formatAddress)} on ${[...families]}`);
    const untilTold = (expected: readonly string[]) =>
      pollUntil(() => Bun.deepEquals(texts(), expected), `${JSON.stringify(expected)}, not ${JSON.stringify(texts())}`);
    const has = (part: string) => asked.some((path) => path.includes(part));
    write("POST", SERVICES, service("any", "192.0.2.6", "Cluster"));
    write("POST", SERVICES, service("outside", "198.51.100.6"));
    write("POST", SLICES, slice("web-1", "web", "node-1"));
    const running = follower.run(stop.signal, () => {});

    follower.follow(NONE);
    expect([texts(), asked]).toEqual([[], []]);
    follower.follow(EXTERNAL);
    expect(texts()).toBeUndefined();
    await untilTold([]);
    expect([has("services"), has("endpointslices")]).toEqual([true, false]);

    write("POST", SERVICES, service("web", "192.0.2.7"));
    await untilTold(["192.0.2.7 on 4"]);
    const { metadata } = JSON.parse(api.respond({ method: "GET", path: `${SLICES}/web-1` }).text);
    write("PUT", `${SLICES}/web-1`, { ...slice("web-1", "web", "node-1", false), metadata });
    await untilTold(["192.0.2.7 on "]);
    write("POST", SLICES, slice("web-2", "web", "node-2"));
    write("POST", SLICES, slice("web-3", "web", "node-1"));
    await untilTold(["192.0.2.7 on 4"]);
    write("DELETE", `${SLICES}/web-3`);
    await untilTold(["192.0.2.7 on "]);
    write("DELETE", `${SERVICES}/web`);
    await untilTold([]);

    follower.follow(NONE);
    stop.abort();
    await running;
  });

  test("what is announced does not wait for ever for an API that cannot be read", async () => {
    const told: unknown[] = [];
    const problems: string[] = [];
    const open = () => Promise.reject(new Error("no kubeconfig"));
    const follower = new ServiceFollower({
      ...{
        node: "node-1",
        open,
        replica: {},
        wait: (_: number, signal: AbortSignal) => SYSTEM_CLOCK.wait(60_000, signal),
      },
      report: (message) => void problems.push(message),
    });
    const ending = new AbortController();
    const running = follower.run(ending.signal, () => void told.push(follower.services));
    follower.follow(EXTERNAL);
    await pollUntil(() => told.length > 0, "what is known");

    expect([told, problems]).toEqual([[[]], ["Cannot read Services: no kubeconfig"]]);
    ending.abort();
    await running;
  });
});
