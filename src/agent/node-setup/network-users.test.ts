import { describe, expect, test } from "bun:test";
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

describe("networkUsers()", () => {
  test("finds containers by their links and by their host ports, each once", () => {
    const links = [link("eth0"), link(OWN, "pods/web/eth0"), link(`${OWN}a`, "other/web/eth1")];

    expect(networkUsers(links, { owners: ["pods/web/eth0", "podman/bridged/eth0"], unreadable: [] })).toEqual([
      { containerId: "web", link: OWN },
      { containerId: "bridged" },
    ]);
  });

  test("counts every link that does not say whose it is, and every record that cannot be read", () => {
    const none = { owners: [], unreadable: [] };

    expect(networkUsers([link(OWN), link(`${OWN}a`, "odd")], none)).toHaveLength(2);
    expect(networkUsers([], { owners: [], unreadable: ["/run/a", "/run/b"] })).toEqual([
      { containerId: "", record: "/run/a" },
      { containerId: "", record: "/run/b" },
    ]);
  });
});

describe("describeUsers()", () => {
  test("names containers and pods as people do, and others by their ID or link", () => {
    const users = [{ containerId: "one", link: OWN }, { containerId: "two" }, { containerId: LONG_ID }];
    const endpoints = [
      endpoint({ containerID: "one", workload: "web" }),
      endpoint({ containerID: "two", pod: "db-0", workload: "ignored" }),
      { key: "", value: "{", revision: "1" },
    ];

    expect(describeUsers(users, endpoints)).toBe("3 containers use it: d05921e6aaea, shop/db-0, web");
    expect(describeUsers([{ containerId: "", link: OWN }], [])).toBe(`1 container uses it: ${OWN}`);
    const pods = [endpoint({ pod: "db-0", interfaceName: OWN })];
    expect(describeUsers([{ containerId: "sandbox", link: OWN }], pods)).toBe("1 container uses it: shop/db-0");
  });

  test("names a record that cannot be read by its file", () => {
    expect(describeUsers([{ containerId: "", record: "/run/a" }], [])).toBe(
      '1 container uses it: one whose record "/run/a" cannot be read',
    );
  });

  test("cuts a long list", () => {
    const users = Array.from({ length: 12 }, (_, index) => ({ containerId: `c${index}` }));

    expect(describeUsers(users, [])).toEndWith(" and 2 more");
  });
});
