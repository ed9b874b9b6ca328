import { describe, expect, test } from "bun:test";
import { address } from "../../../test/support/ip.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { Route } from "../../linux/rtnetlink/route.ts";
import type { WorkloadEndpointSpec } from "../../model/workload-endpoint.ts";
import { workloadRoute } from "../../routing/workload-route.ts";
import { localRouteDifferences, type RoutedEndpoint, routedEndpoint } from "./local-routes.ts";

const PREFIX = identity.interfacePrefix;
const link = (index: number, more: Partial<Link> = {}): Link => ({
  ...{ index, name: `${PREFIX}${index}`, isUp: true, mtu: 1500, mac: new Uint8Array(6), kind: "veth" },
  ...{ transmitQueues: 1, receiveQueues: 1, alias: `net/c${index}/eth0` },
  ...more,
});
const endpoint = (index: number, ...addresses: readonly string[]): RoutedEndpoint => ({
  ...{ interfaceName: `${PREFIX}${index}`, containerId: `c${index}`, ifname: "eth0" },
  addresses: addresses.map(address),
});
const route = (text: string, linkIndex: number): Route => ({ ...workloadRoute(address(text)), linkIndex, table: 254 });

const difference = (
  endpoints: readonly RoutedEndpoint[],
  links: readonly Link[],
  routes: readonly Route[] = [],
  areEndpointsPods = false,
) =>
  localRouteDifferences(endpoints, { links, routes }, { network: "net", areEndpointsPods }).map((each) => {
    const { destination, linkIndex } = each.kind === "stale" ? each.present : each.wanted;
    return `${each.kind} ${formatPrefix(destination)} ${linkIndex}`;
  });

describe("localRouteDifferences()", () => {
  test("wants a route to each address of each endpoint, on its link", () => {
    const endpoints = [endpoint(3, "10.0.0.3", "fd00::3"), endpoint(4, "10.0.0.4")];
    expect(difference(endpoints, [link(3), link(4)], [route("10.0.0.4", 4)])).toEqual([
      "missing 10.0.0.3/32 3",
      "missing fd00::3/128 3",
    ]);
  });

  test("finds routes to addresses that the endpoint does not have", () => {
    const routes = [route("10.0.0.3", 3), route("10.0.0.9", 3), route("fd00::9", 3)];
    expect(difference([endpoint(3, "10.0.0.3")], [link(3)], routes)).toEqual([
      "stale 10.0.0.9/32 3",
      "stale fd00::9/128 3",
    ]);
  });

  test("removes nothing of a container that no endpoint is of: the datastore may have lost its records", () => {
    const routes = [route("10.0.0.3", 3), route("10.0.0.4", 4), route("fd00::4", 4)];
    expect(difference([endpoint(3, "10.0.0.3")], [link(3), link(4)], routes)).toEqual([]);
    expect(difference([], [link(3), link(4)], routes)).toEqual([]);
  });

  test("gives the address of such a container to the endpoint that has it", () => {
    const routes = [route("10.0.0.3", 4), route("10.0.0.4", 4)];
    expect(difference([endpoint(3, "10.0.0.3")], [link(3), link(4)], routes)).toEqual(["changed 10.0.0.3/32 3"]);
  });

  const UNTOUCHED: readonly (readonly [title: string, links: readonly Link[], endpoints: readonly RoutedEndpoint[]])[] =
    [
      [
        "a link of another container than the endpoint's",
        [link(3, { alias: "net/c2/eth0" })],
        [endpoint(3, "10.0.0.3")],
      ],
      ["a link of another interface of the container", [link(3, { alias: "net/c3/eth1" })], [endpoint(3, "10.0.0.3")]],
      ["a link without a mark", [link(3, { alias: "mine" })], [endpoint(3, "10.0.0.3")]],
      ["a link that does not exist", [], [endpoint(3, "10.0.0.3")]],
      ["a link of another network without an endpoint", [link(3, { alias: "other/c3/eth0" })], []],
      ["a link with a foreign name", [link(3, { name: "eth0" })], []],
      ["a link that is not a veth", [link(3, { kind: "vxlan" })], []],
    ];
  for (const [title, links, endpoints] of UNTOUCHED) {
    test(`touches nothing of ${title}`, () => {
      expect(difference(endpoints, links, [route("10.0.0.9", 3)])).toEqual([]);
    });
  }

  test("if endpoints are pods, another container does not keep routes to addresses that the endpoint does not have", () => {
    const ofPods = (alias: string, ...addresses: readonly string[]) =>
      difference([endpoint(3, ...addresses)], [link(3, { alias })], [route("10.0.0.3", 3), route("10.0.0.9", 3)], true);

    expect(ofPods("net/c2/eth0", "10.0.0.3")).toEqual(["stale 10.0.0.9/32 3"]);
    expect(ofPods("net/c2/eth0", "10.0.0.3", "10.0.0.4")).toEqual(["stale 10.0.0.9/32 3"]);
    expect(["net/c2/eth1", "other/c2/eth0", "mine"].flatMap((alias) => ofPods(alias, "10.0.0.3"))).toEqual([]);
  });

  test("and gives an address back to the pod that has it", () => {
    const endpoints = [endpoint(3), endpoint(4, "10.0.0.4")];
    const links = [link(3, { alias: "net/c2/eth0" }), link(4)];
    expect(difference(endpoints, links, [route("10.0.0.4", 3)], true)).toEqual(["changed 10.0.0.4/32 4"]);
  });

  test("wants nothing of a link that is down", () => {
    expect(difference([endpoint(3, "10.0.0.3")], [link(3, { isUp: false })])).toEqual([]);
  });

  test("decides nothing about an address that two endpoints have", () => {
    const endpoints = [endpoint(3, "10.0.0.3"), endpoint(4, "10.0.0.3")];
    expect(difference(endpoints, [link(3), link(4)])).toEqual([]);
    expect(difference(endpoints, [link(3), link(4)], [route("10.0.0.3", 4)])).toEqual([]);
  });

  test("ignores routes to networks and of other tables", () => {
    const network: Route = { ...route("10.0.0.9", 3), destination: { network: address("10.0.0.0"), length: 24 } };
    const elsewhere: Route = { ...route("10.0.0.9", 3), table: 100 };
    expect(difference([endpoint(3)], [link(3)], [network, elsewhere])).toEqual([]);
  });
});

describe("routedEndpoint()", () => {
  const read = (spec: WorkloadEndpointSpec) =>
    routedEndpoint({ apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata: { name: "a" }, spec }, "node-1");
  const whole = { node: "node-1", interfaceName: `${PREFIX}3`, containerID: "c3", endpoint: "eth0" };

  test("reads interface, container and addresses", () => {
    expect(read({ ...whole, ipNetworks: ["10.0.0.3/32", "fd00::3/128"] })).toEqual(endpoint(3, "10.0.0.3", "fd00::3"));
  });

  test("is nothing for another node, and for an endpoint that no ADD recorded", () => {
    expect([read({ ...whole, node: "node-2" }), read({ ...whole, containerID: "" }), read({ node: "node-1" })]).toEqual(
      [undefined, undefined, undefined],
    );
  });
});
