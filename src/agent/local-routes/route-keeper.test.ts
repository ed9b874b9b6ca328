import { describe, expect, test } from "bun:test";
import { address } from "../../../test/support/ip.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { isSameAddress } from "../../ip/address.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { ROUTE_PROTOCOL, type Route } from "../../linux/rtnetlink/route.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { workloadRoute } from "../../routing/workload-route.ts";
import { followRoutes } from "./follow-routes.ts";
import type { RouteKernel } from "./kernel-routes.ts";
import { type RoutedEndpoint, routedEndpoint } from "./local-routes.ts";
import { CONFIRM_MILLISECONDS, RouteKeeper, type RouteMeans } from "./route-keeper.ts";

const NAME = `${identity.interfacePrefix}3`;
const LINK: Link = {
  ...{ index: 3, name: NAME, isUp: true, mtu: 1500, mac: new Uint8Array(6), kind: "veth", alias: "net/c3/eth0" },
  ...{ transmitQueues: 1, receiveQueues: 1 },
};
const OTHER: Link = { ...LINK, index: 9, name: "other", alias: "" };

function endpoint(...ipNetworks: string[]): WorkloadEndpoint {
  const spec = { node: "node-1", interfaceName: NAME, containerID: "c3", endpoint: "eth0", ipNetworks };
  return { apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata: { name: "a", namespace: "x" }, spec };
}
const put = (...ipNetworks: string[]): RecordChange<WorkloadEndpoint> => ({
  ...{ kind: "put", key: "a", value: endpoint(...ipNetworks), previous: undefined },
});
const route = (text: string, linkIndex = LINK.index): Route => ({ ...workloadRoute(address(text)), linkIndex });

/** A kernel with one link of a pod, and a datastore that agrees with the endpoint that the keeper got. */
function openKeeper(
  recorded: () => readonly RoutedEndpoint[] | undefined = () => [],
  undecided: readonly string[] = [],
) {
  const routes: Route[] = [];
  const [counts, reports] = [{ states: 0, reads: 0 }, [] as string[]];
  let now = 0;
  const kernel: RouteKernel = {
    state: () => {
      counts.states += 1;
      return { links: [LINK, OTHER], routes: [...routes] };
    },
    linkNamed: (name) => [LINK, OTHER].find((link) => link.name === name),
    linkServing(wanted) {
      const found = routes.find(({ destination }) => isSameAddress(destination.network, wanted));
      return [LINK, OTHER].find(({ index }) => index === found?.linkIndex);
    },
    resolve(difference) {
      if (difference.kind === "stale" || difference.kind === "changed")
        routes.splice(routes.indexOf(difference.present), 1);
      if (difference.kind === "missing" || difference.kind === "changed") routes.push(difference.wanted);
      return undefined;
    },
    close: () => {},
  };
  const means: RouteMeans = {
    ...{ node: "node-1", network: "net", areEndpointsPods: false, kernel, elapsed: () => now },
    recorded: async () => {
      counts.reads += 1;
      const endpoints = recorded();
      return endpoints && { endpoints, undecided: new Set(undecided) };
    },
    report: (message) => void reports.push(message),
  };
  const later = (milliseconds = CONFIRM_MILLISECONDS) => {
    now += milliseconds;
  };
  return { keeper: new RouteKeeper(means), means, routes, counts, reports, later };
}

describe("RouteKeeper", () => {
  test("does nothing before it knows the endpoints", async () => {
    const { keeper, counts } = openKeeper();
    keeper.notice([{ kind: "put", route: route("10.0.0.3") }]);
    expect([keeper.isDoubtful, await keeper.look(), counts.states]).toEqual([false, "settled", 0]);
  });

  test("restores a missing route when it has seen twice that it is missing", async () => {
    const { keeper, routes, reports, later } = openKeeper();
    keeper.update([put("10.0.0.3/32")]);
    expect([await keeper.look(), routes]).toEqual(["unsettled", []]);
    later(CONFIRM_MILLISECONDS - 1);
    expect([await keeper.look(), routes]).toEqual(["unsettled", []]);
    later(1);
    expect([await keeper.look(), routes]).toEqual(["settled", [route("10.0.0.3")]]);
    expect(reports).toEqual([`Restored routes of pods: 10.0.0.3/32 on interface "${NAME}"`]);
  });

  test("does nothing about a difference that has gone", async () => {
    const { keeper, routes, reports, later } = openKeeper();
    keeper.update([put("10.0.0.3/32")]);
    await keeper.look();
    routes.push(route("10.0.0.3"));
    later();
    expect([await keeper.look(), routes.length, reports]).toEqual(["settled", 1, []]);
  });

  test("compares everything at first, later only if a suspect address is not routed as it should be", async () => {
    const { keeper, routes, counts } = openKeeper();
    routes.push(route("10.0.0.3"));
    keeper.update([put("10.0.0.3/32")]);
    await keeper.look();
    expect(counts.states).toBe(1);
    for (const event of [
      { kind: "put", route: route("10.0.0.3") },
      { kind: "delete", route: route("10.0.0.3") },
      { kind: "put", route: route("10.0.0.9", OTHER.index) },
      { kind: "link", link: LINK },
    ] as const) {
      keeper.notice([event]);
      expect([keeper.isDoubtful, await keeper.look(), counts.states]).toEqual([true, "settled", 1]);
    }
    routes.length = 0;
    keeper.notice([{ kind: "delete", route: route("10.0.0.3") }]);
    expect([await keeper.look(), counts.states]).toEqual(["unsettled", 2]);
  });

  test("is not concerned by routes of others, nor by changes of labels", () => {
    const { keeper } = openKeeper();
    keeper.update([put("10.0.0.3/32")]);
    void keeper.look();
    const other: Route = { ...route("10.0.0.9"), protocol: ROUTE_PROTOCOL.boot };
    const network: Route = { ...route("10.0.0.3"), destination: { network: address("10.0.0.0"), length: 24 } };
    keeper.notice([
      { kind: "put", route: other },
      { kind: "delete", route: route("10.0.0.9") },
      { kind: "put", route: network },
      { kind: "link", link: OTHER },
    ]);
    keeper.update([put("10.0.0.3/32")]);
    expect(keeper.isDoubtful).toBe(false);
  });

  test("removes a stale route if the datastore says the same", async () => {
    const { keeper, routes, reports, later } = openKeeper(() => {
      const read = routedEndpoint(endpoint("10.0.0.3/32"), "node-1");
      return read === undefined ? [] : [read];
    });
    routes.push(route("10.0.0.3"), route("10.0.0.4"));
    keeper.update([put("10.0.0.3/32")]);
    await keeper.look();
    later();
    expect([await keeper.look(), routes]).toEqual(["settled", [route("10.0.0.3")]]);
    expect(reports).toEqual([`Removed stale routes of pods: 10.0.0.4/32 on interface "${NAME}"`]);
  });

  test("leaves the routes of an interface alone whose record has become unreadable", async () => {
    const { keeper, routes, later } = openKeeper(() => [], [NAME]);
    routes.push(route("10.0.0.4"));
    keeper.update([put()]);
    await keeper.look();
    later();
    await keeper.look();
    expect(routes).toEqual([route("10.0.0.4")]);
  });

  test("keeps the routes of a container that the datastore does not know, and reports it if that lasts", async () => {
    const { keeper, routes, reports, counts, later } = openKeeper();
    routes.push(route("10.0.0.4"));
    keeper.update([]);
    for (const _look of [1, 2, 3]) {
      expect(await keeper.look()).toBe("settled");
      later();
      keeper.distrust();
    }
    expect([reports, counts.reads]).toEqual([[], 0]);
    later(60_000);
    await keeper.look();
    expect(reports).toEqual([
      expect.stringContaining("1 container runs here that the datastore does not know (net/c3/eth0)"),
    ]);
    expect(routes).toEqual([route("10.0.0.4")]);
  });

  test("does not report a container as unknown if the datastore cannot be read, knows it, or it is gone soon", async () => {
    const known = routedEndpoint(endpoint("10.0.0.4/32"), "node-1");
    for (const recorded of [undefined, known]) {
      const { keeper, reports, later } = openKeeper(() => recorded && [recorded]);
      keeper.update([]);
      await keeper.look();
      later(60_000);
      keeper.distrust();
      await keeper.look();
      expect(reports).toEqual([]);
    }
    const { keeper, reports, later } = openKeeper();
    keeper.update([]);
    await keeper.look();
    keeper.update([put("10.0.0.4/32")]);
    later(60_000);
    await keeper.look();
    keeper.update([{ kind: "delete", key: "a", previous: undefined }]);
    keeper.distrust();
    await keeper.look();
    expect(reports.filter((text) => text.includes("does not know"))).toEqual([]);
  });

  for (const [title, recorded] of [
    ["knows an address that has not arrived yet", routedEndpoint(endpoint("10.0.0.4/32"), "node-1")],
    ["cannot be read", undefined],
  ] as const) {
    test(`keeps a route if the datastore ${title}, and does not read it again soon`, async () => {
      const { keeper, routes, counts, later } = openKeeper(() => recorded && [recorded]);
      routes.push(route("10.0.0.4"));
      keeper.update([put()]);
      await keeper.look();
      for (const _look of [1, 2, 3]) {
        later();
        keeper.distrust();
        expect([await keeper.look(), routes.length, counts.reads]).toEqual(["settled", 1, 1]);
      }
      later(10_000);
      await keeper.look();
      expect(counts.reads).toBe(2);
    });
  }

  test("leaves a route of a routing daemon, and names it once a minute", async () => {
    const { keeper, routes, reports, later } = openKeeper();
    routes.push({ ...route("10.0.0.3", OTHER.index), protocol: 12 });
    keeper.update([put("10.0.0.3/32")]);
    for (const _look of [1, 2, 3, 4]) {
      await keeper.look();
      later();
    }
    expect(reports).toEqual([expect.stringContaining(`"${NAME}": another program has one`)]);
    later(60_000);
    await keeper.look();
    expect([reports.length, routes.length]).toEqual([2, 1]);
  });
});

describe("RouteKeeper, while it is not enabled", () => {
  test("changes no route, and compares all when it is enabled again", async () => {
    const { keeper, routes, later } = openKeeper();
    keeper.setEnabled(false);
    keeper.update([put("10.0.0.3/32")]);
    expect(keeper.isDoubtful).toBe(false);
    expect(await keeper.look()).toBe("settled");
    later(CONFIRM_MILLISECONDS);
    await keeper.look();
    expect(routes).toEqual([]);

    keeper.setEnabled(true);
    expect(await keeper.look()).toBe("unsettled");
    later(CONFIRM_MILLISECONDS);
    await keeper.look();
    expect(routes).toEqual([route("10.0.0.3")]);
  });
});

describe("followRoutes()", () => {
  test("looks after updates and after events, also if events were lost; ends with the signal", async () => {
    const { means, routes, later, reports } = openKeeper();
    const stop = new AbortController();
    let opened = 0;
    async function* events() {
      opened += 1;
      if (opened === 1) throw new Error("no socket");
      routes.length = 0;
      yield "lost" as const;
      await new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
    }
    async function* updates() {
      yield { changes: { configurations: [], endpoints: [put("10.0.0.3/32")] } };
    }
    const wait = async (milliseconds: number, signal: AbortSignal) => {
      if (opened === 2 && routes.length > 0) stop.abort();
      if (milliseconds <= 60_000) later(milliseconds);
      else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await Bun.sleep(0);
    };
    await followRoutes(updates(), { ...means, events, wait, signal: stop.signal });
    expect(routes).toEqual([route("10.0.0.3")]);
    expect(reports[0]).toBe("Cannot follow changes of routes: no socket");
  });
});
