import { describe, expect, test } from "bun:test";
import { ownerOf } from "../../chained/portmap/port-owner.ts";
import { identity } from "../../identity.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { describeUsers, networkUsers } from "./network-users.ts";

const LONG_ID = "d05921e6aaea".padEnd(64, "0");
const OWN = `${identity.interfacePrefix}0123456789`;

function link(name: string, alias?: string): Link {
  return {
    index: 7,
    name,
    isUp: true,
    mtu: 1500,
    mac: new Uint8Array(6),
    ...(alias === undefined ? {} : { alias }),
    transmitQueues: 1,
    receiveQueues: 1,
  };
}

function endpoint(spec: object) {
  return { key: "", value: JSON.stringify({ metadata: { namespace: "shop" }, spec }), revision: "1" };
}

/** As portmap records it. */
function owner(network: string, containerId: string, args = "") {
  return { owner: ownerOf(network, { containerId, ifname: "eth0", args }), ports: [] };
}

const ARGS = { container: "IgnoreUnknown=1;K8S_POD_NAME=web", pod: "K8S_POD_NAMESPACE=red;K8S_POD_NAME=web" };
const NO_OWNERS = { owners: [], unreadable: [] };

describe("networkUsers()", () => {
  test.each(["", ARGS.container, ARGS.pod])(
    "counts a container with a link and host ports once, called by %j",
    (args) => {
      const links = [link("eth0"), link(OWN, `pods/${LONG_ID}/eth0`), link(`${OWN}a`, `other/${LONG_ID}/eth1`)];
      const owners = [owner("pods", LONG_ID, args), owner("other", LONG_ID, args)];

      expect(networkUsers(links, { owners, unreadable: [] })).toEqual([
        { kind: "link", containerId: LONG_ID, link: OWN },
      ]);
    },
  );

  test.each([
    ["", "d05921e6aaea"],
    [ARGS.container, "web"],
    [ARGS.pod, "red/web"],
  ])("finds the containers of other plugins by their host ports, called by %j", (args, name) => {
    const owners = [owner("podman", LONG_ID, args), owner("second", LONG_ID, args)];

    expect(networkUsers([], { owners, unreadable: [] })).toEqual([{ kind: "ports", name }]);
  });

  test("counts every link that does not say whose it is, and every record that cannot be read", () => {
    expect(networkUsers([link(OWN), link(`${OWN}a`, "odd")], NO_OWNERS)).toHaveLength(2);
    expect(networkUsers([], { owners: [], unreadable: ["/run/a", "/run/b"] })).toEqual([
      { kind: "unreadable record", path: "/run/a" },
      { kind: "unreadable record", path: "/run/b" },
    ]);
  });
});

describe("describeUsers()", () => {
  test("names containers and pods as people do, and others by their ID or link", () => {
    const of = (containerId: string) => ({ kind: "link" as const, containerId, link: `${OWN}${containerId}` });
    const endpoints = [
      endpoint({ containerID: "one", workload: "web" }),
      endpoint({ containerID: "two", pod: "db-0", workload: "ignored" }),
      { key: "", value: "{", revision: "1" },
    ];

    expect(describeUsers([of("one"), of("two"), of(LONG_ID)], endpoints)).toBe(
      "3 containers use it: d05921e6aaea, shop/db-0, web",
    );
    expect(describeUsers([{ kind: "ports", name: "red/web" }], endpoints)).toBe("1 container uses it: red/web");
    expect(describeUsers([of("")], [])).toBe(`1 container uses it: ${OWN}`);
    const pods = [endpoint({ pod: "db-0", interfaceName: OWN })];
    expect(describeUsers([{ ...of("sandbox"), link: OWN }], pods)).toBe("1 container uses it: shop/db-0");
  });

  test("names a record that cannot be read by its file", () => {
    expect(describeUsers([{ kind: "unreadable record", path: "/run/a" }], [])).toBe(
      '1 container uses it: one whose record "/run/a" cannot be read',
    );
  });

  test("cuts a long list", () => {
    const users = Array.from({ length: 12 }, (_, index) => ({ kind: "ports" as const, name: `c${index}` }));

    expect(describeUsers(users, [])).toEndWith(" and 2 more");
  });
});
