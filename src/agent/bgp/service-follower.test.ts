import { describe, expect, test } from "bun:test";
import { prefixes } from "../../../test/support/bgp-plan.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { ManualClock, settled } from "../../../test/support/manual-clock.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { SERVICE_RECORDS } from "../../datastore/kube/service-records.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { PluginError } from "../../errors.ts";
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

interface Following {
  /** How a list ends instead; it may never end. */
  readonly refuse?: (what: "Services" | "EndpointSlices") => Promise<never> | undefined;
  readonly open?: () => Promise<never>;
  /** Called before a change is noted. */
  readonly changed?: () => void;
}

/** A follower of a large cluster, in a time that stands still. Its turn is after 30 s. */
function startFollower({ refuse = () => undefined, open, changed = () => {} }: Following = {}) {
  const api = startFakeApi();
  const clock = new ManualClock();
  const lists: string[] = [];
  const stop = new AbortController();
  const problems: string[] = [];
  const connect = async () => {
    const client = api.connect();
    const store = openKubeStore({ api: client, mappings: SERVICE_RECORDS, close: () => client.close() });
    const read: typeof store.read = (...asked) => {
      const what = JSON.stringify(asked).includes("servicenodes") ? "EndpointSlices" : "Services";
      lists.push(what);
      return refuse(what) ?? store.read(...asked);
    };
    return { read, watch: store.watch.bind(store), close: store.close.bind(store) };
  };
  const wait = (milliseconds: number, signal: AbortSignal) => clock.wait(milliseconds, signal);
  const follower = new ServiceFollower({
    ...{ node: "node-1", open: open ?? connect, report: (message) => void problems.push(message), wait },
    replica: { clock, peers: () => 5_000, random: () => 0.5 },
  });
  const texts = () =>
    follower.services === "unknown"
      ? "unknown"
      : follower.services.map(({ externalIPs, families }) => {
          const on = families === "unknown" ? families : [...families].join();
          return `${externalIPs.map(formatAddress)} on ${on}`;
        });
  const told: unknown[] = [];
  const running = follower.run(stop.signal, () => {
    changed();
    told.push(texts());
  });
  return {
    ...{ follower, clock, lists, told, problems, texts },
    untilTold: (expected: "unknown" | readonly string[]) =>
      pollUntil(() => Bun.deepEquals(texts(), expected), JSON.stringify(expected), 5_000).catch(() =>
        expect<unknown>(texts()).toEqual(expected),
      ),
    write: (method: "POST" | "PUT" | "DELETE", path: string, object?: object) =>
      api.respond({ method, path, ...(object === undefined ? {} : { body: JSON.stringify(object) }) }),
    read: (path: string) => JSON.parse(api.respond({ method: "GET", path }).text),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

describe("ServiceFollower", () => {
  test("follows only what is needed: Services with networks, EndpointSlices with a Service in them", async () => {
    await using following = startFollower();
    const { follower, lists, texts, untilTold, write } = following;
    write("POST", SERVICES, service("any", "192.0.2.6", "Cluster"));
    write("POST", SERVICES, service("outside", "198.51.100.6"));
    write("POST", SLICES, slice("web-1", "web", "node-1"));

    expect([texts(), lists]).toEqual([[], []]);
    follower.follow(EXTERNAL);
    expect(texts()).toBe("unknown");
    await untilTold([]);
    await settled();
    expect(lists).toEqual(["Services"]);
    follower.follow(NONE);
    await settled();
    expect(texts()).toEqual([]);
  });

  test("tells which Services have a ready endpoint here", async () => {
    await using following = startFollower();
    const { follower, untilTold, write, read } = following;
    write("POST", SERVICES, service("web", "192.0.2.7"));
    write("POST", SLICES, slice("web-1", "web", "node-1"));
    follower.follow(EXTERNAL);

    await untilTold(["192.0.2.7 on 4"]);
    const { metadata } = read(`${SLICES}/web-1`);
    write("PUT", `${SLICES}/web-1`, { ...slice("web-1", "web", "node-1", false), metadata });
    await untilTold(["192.0.2.7 on "]);
    write("POST", SLICES, slice("web-2", "web", "node-2"));
    write("POST", SLICES, slice("web-3", "web", "node-1"));
    await untilTold(["192.0.2.7 on 4"]);
    write("DELETE", `${SLICES}/web-3`);
    await untilTold(["192.0.2.7 on "]);
    write("DELETE", `${SERVICES}/web`);
    await untilTold([]);
  });

  test("nodes list EndpointSlices one after the other if a Service is the first Local one, and watch on for minutes after the last", async () => {
    await using following = startFollower();
    const { follower, clock, lists, untilTold, write } = following;
    write("POST", SLICES, slice("web-1", "web", "node-1"));
    follower.follow(EXTERNAL);
    await untilTold([]);

    write("POST", SERVICES, service("web", "192.0.2.7"));
    await untilTold(["192.0.2.7 on unknown"]);
    await settled();
    await clock.advance(29_000);
    expect([lists, follower.problem]).toEqual([["Services"], undefined]);
    await clock.advance(1_000);
    await untilTold(["192.0.2.7 on 4"]);
    expect(lists).toEqual(["Services", "EndpointSlices"]);

    write("DELETE", `${SERVICES}/web`);
    await untilTold([]);
    await settled();
    await clock.advance(240_000);
    write("POST", SERVICES, service("web", "192.0.2.7"));
    await untilTold(["192.0.2.7 on 4"]);
    expect(lists).toHaveLength(2);

    write("DELETE", `${SERVICES}/web`);
    await untilTold([]);
    await settled();
    await clock.advance(300_000);
    write("POST", SERVICES, service("web", "192.0.2.7"));
    await untilTold(["192.0.2.7 on unknown"]);
    await settled();
    await clock.advance(29_000);
    expect(lists).toHaveLength(2);
    await clock.advance(1_000);
    await untilTold(["192.0.2.7 on 4"]);
  });

  test("nodes list Services one after the other if the configuration names the first networks", async () => {
    await using following = startFollower();
    const { follower, clock, lists, texts, untilTold } = following;
    follower.follow(NONE);
    await settled();
    follower.follow(EXTERNAL);
    await settled();
    await clock.advance(29_000);
    expect([texts(), lists, follower.problem]).toEqual(["unknown", [], undefined]);
    await clock.advance(1_000);
    await untilTold([]);
    expect(lists).toEqual(["Services"]);
  });

  test("a list that does not end is a problem after 20 s, and what is known stays unknown", async () => {
    await using following = startFollower({ refuse: () => new Promise<never>(() => {}) });
    const { follower, clock, texts, told } = following;
    follower.follow(EXTERNAL);
    await settled();
    await clock.advance(19_000);
    expect([texts(), follower.problem]).toEqual(["unknown", undefined]);
    await clock.advance(1_000);

    expect(told).toEqual(["unknown"]);
    expect(follower.problem).toStartWith("Cannot read Services: no list after 20 seconds; ");
  });

  test("EndpointSlices that are forbidden are a problem while a Service needs them", async () => {
    const forbidden = () => Promise.reject(new PluginError("api-unavailable", "forbidden"));
    await using following = startFollower({ refuse: (what) => (what === "EndpointSlices" ? forbidden() : undefined) });
    const { follower, untilTold, write } = following;
    write("POST", SERVICES, service("web", "192.0.2.7"));
    follower.follow(EXTERNAL);

    await untilTold(["192.0.2.7 on unknown"]);
    await pollUntil(() => follower.problem !== undefined, "a problem");
    expect(follower.problem).toStartWith("Cannot read EndpointSlices: forbidden; ");
    write("DELETE", `${SERVICES}/web`);
    await untilTold([]);
    expect(follower.problem).toBeUndefined();
  });

  test("an API that cannot be opened is a problem", async () => {
    await using following = startFollower({ open: () => Promise.reject(new Error("no kubeconfig")) });
    const { follower, told, problems } = following;
    follower.follow(EXTERNAL);
    await pollUntil(() => told.length > 0, "what is known");

    expect([told, problems]).toEqual([["unknown"], ["Cannot read Services: no kubeconfig"]]);
    expect(follower.problem).toContain("no kubeconfig");
  });

  test("goes on after a failure of whoever is told", async () => {
    const failures = [new Error("a defect")];
    const changed = () => {
      const failure = failures.pop();
      if (failure !== undefined) throw failure;
    };
    await using following = startFollower({ changed });
    const { follower, clock, lists, problems } = following;
    follower.follow(EXTERNAL);
    await pollUntil(() => problems.length > 0, "the failure");
    expect(problems).toEqual(["Cannot read Services: a defect"]);
    await settled();
    await clock.advance(10_000);
    await pollUntil(() => lists.length === 2, "another list");
  });
});
