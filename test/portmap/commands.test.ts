/** DEL, CHECK, GC and STATUS of host ports, and tables that another program changed or removed. */

import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { CHAINING_VERSIONS, isAtLeast } from "../../src/cni/version.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";
import { openPortHost, type PortHost } from "./port-host.ts";
import { type Portmap, type PortmapCall, port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft")];
const testCommand = testNeeding(...needs);
const TABLE = identity.hostPortTable;
const OWNER = ownerOf("ports", { containerId: "one", ifname: "eth0" })
  .id.toHex()
  .replace(/(.{4})(?=.)/g, "$1:");
const ADDRESSES = ["10.77.0.2/24", "fd77::2/64"];
const ONE: PortmapCall = {
  id: "one",
  addresses: ADDRESSES,
  ports: [port(80), port(53, undefined, "udp"), port(90, "192.0.2.1")],
};

describe("portmap", () => {
  let world: PortHost;
  let portmap: Portmap;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    portmap = portmapOn(world);
    await world.makePod("one", []);
    await world.makePod("two", []);
  });
  afterEach(() => world?.host.run(["nft", "flush", "ruleset"]));
  afterAll(() => world?.[Symbol.asyncDispose]());

  const nft = (text: string) => world.host.must(["nft", text]);

  describe("DEL", () => {
    const without: Readonly<Record<string, PortmapCall>> = {
      "the mappings": { id: "one", addresses: ADDRESSES },
      "the result of ADD": { id: "one", ports: ONE.ports ?? [] },
      "both, as from a runtime that lost its disk": { id: "one" },
      "a namespace": { id: "one", netns: "" },
      "the namespace's file": { id: "one", netns: "/run/netns/vt-none" },
      "a config that ADD would accept": {
        id: "one",
        config: { snat: "no", backend: "iptables", conditionsV4: ["-x"] },
      },
      "valid mappings": { id: "one", config: { runtimeConfig: { portMappings: [{ hostPort: -1 }] } } },
    };
    for (const [what, call] of Object.entries(without)) {
      testCommand(`removes everything without ${what}, and succeeds silently the second time`, async () => {
        await portmap.must("ADD", ONE);
        for (let time = 0; time < 2; time++) {
          expect(await portmap.must("DEL", call)).toMatchObject({ stdout: "" });
          expect(await world.kept()).toEqual([]);
        }
      });
    }

    testCommand("succeeds if nothing was ever added, and creates no table", async () => {
      await portmap.must("DEL", ONE);
      expect(await nft("list tables")).toBe("");
    });

    testCommand("keeps the ports of other containers, interfaces and networks", async () => {
      await portmap.must("ADD", ONE);
      const before = await world.kept();
      for (const call of [{ id: "two" }, { id: "one", ifname: "eth1" }, { id: "one", network: "other" }]) {
        await portmap.must("DEL", call);
      }
      expect(await world.kept()).toEqual(before);
    });

    testCommand("removes the rest if a part was removed by hand", async () => {
      await portmap.must("ADD", ONE);
      await nft(`delete element ip ${TABLE} ports { tcp . 0.0.0.0 . 80 }`);
      await nft(`delete element ip ${TABLE} owners { udp . 0.0.0.0 . 53 }`);
      await nft(`delete element ip6 ${TABLE} sources { fd77::2 . fd77::2 }`);
      await portmap.must("DEL", ONE);
      expect(await world.kept()).toEqual([]);
    });

    testCommand("removes everything if some of its records were removed by hand", async () => {
      await portmap.must("ADD", ONE);
      await nft(`delete element ip ${TABLE} attachments { ${OWNER} . 0, ${OWNER} . 2 }`);
      await portmap.must("DEL", ONE);
      expect(await world.kept()).toEqual([]);
    });

    testCommand("of the same container eight times at once leaves nothing", async () => {
      await portmap.must("ADD", ONE);
      await Promise.all(Array.from({ length: 8 }, () => portmap.must("DEL", ONE)));
      expect(await world.kept()).toEqual([]);
    });
  });

  describe("DEL and GC", () => {
    testCommand("leave no open socket behind", async () => {
      const sockets = async () => (await world.host.must(["cat", "/proc/net/netlink"])).match(/^\S+ 12 .*$/gm)?.length;
      const before = await sockets();
      await portmap.must("ADD", ONE);
      await portmap.must("DEL", ONE);
      await portmap.must("GC", { config: { "cni.dev/valid-attachments": [] } });
      await pollUntil(async () => (await sockets()) === before, "the kernel to close the sockets");
    });
  });

  describe("ADD", () => {
    for (const cniVersion of CHAINING_VERSIONS) {
      testCommand(`passes the result on unchanged at ${cniVersion}, with ports and without`, async () => {
        const interfaces = [{ name: "veth0" }, { name: "eth0", sandbox: "/run/netns/vt-one" }];
        for (const ports of [ONE.ports ?? [], []]) {
          const { stdout } = await portmap.must("ADD", { ...ONE, ports, cniVersion });
          const result = JSON.parse(stdout);
          expect(result).toMatchObject({ cniVersion, interfaces });
          expect(result.ips.map((ip: { address: string }) => ip.address)).toEqual(ADDRESSES);
          if (isAtLeast(cniVersion, "0.4.0")) await portmap.must("CHECK", { ...ONE, ports, cniVersion });
          await portmap.must("DEL", { ...ONE, ports, cniVersion });
        }
        expect(await world.kept()).toEqual([]);
      });
    }

    const refusals: readonly (readonly [keyof typeof ERROR_TABLE, PortmapCall])[] = [
      ["version-incompatible", { ...ONE, cniVersion: "0.2.0" }],
      ["config-invalid", { id: "one", ports: ONE.ports ?? [] }],
      ["config-invalid", { ...ONE, ports: [port(81), port(0)] }],
      ["config-invalid", { ...ONE, ports: [port(81), port(70_000)] }],
      ["config-invalid", { ...ONE, ports: [port(81), port(82, "here")] }],
      ["config-invalid", { ...ONE, ports: [port(81), { ...port(81), containerPort: 81 }] }],
      ["field-unsupported", { ...ONE, config: { backend: "iptables" } }],
      ["field-unsupported", { ...ONE, config: { conditionsV4: ["!", "-d", "192.0.2.0/24"] } }],
      ["field-unsupported", { ...ONE, config: { conditionsV6: ["ip6", "daddr", "!=", "fd00::/8"] } }],
      ["field-unsupported", { ...ONE, config: { externalSetMarkChain: "KUBE-MARK-MASQ" } }],
    ];
    for (const [kind, call] of refusals) {
      const shown = JSON.stringify({ ...call, id: undefined, addresses: undefined });
      testCommand(`refuses with ${kind}, and writes nothing: ${shown}`, async () => {
        await portmap.refused("ADD", ERROR_TABLE[kind].code, call);
        expect(await nft("list tables")).toBe("");
      });
    }

    testCommand("skips, with a warning, a mapping that no address of the container can serve", async () => {
      const call = { ...ONE, addresses: ["10.77.0.2/24"], ports: [port(80), port(81, "fd00:2::1")] };
      const { stderr } = await portmap.must("ADD", call);
      expect(stderr).toContain("tcp 81");
      expect((await world.kept()).filter((line) => line.includes(" ports: "))).toHaveLength(1);
      await portmap.must("ADD", { ...call, addresses: [] });
    });

    testCommand("warns about a process of the host that listens on the port, and maps it nevertheless", async () => {
      using _tcp = serveTcp(world.netns, "host", 80, "0.0.0.0");
      using _both = serveTcp(world.netns, "host", 80, "::1");
      using _six = serveTcp(world.netns, "host", 81, "::1");
      using _udp = await serveUdp(world.netns, "host", 53, "127.0.0.1");
      const quiet = await portmap.must("ADD", {
        ...ONE,
        ports: [port(82), port(80, undefined, "udp"), port(53, "::")],
      });
      expect(quiet.stderr).toEqual(NOTHING_UNUSUAL);
      const { stderr } = await portmap.must("ADD", { ...ONE, ports: [port(80), port(81), port(53, undefined, "udp")] });
      expect(stderr.match(/Host port \S+ \d+/g)).toEqual(["Host port tcp 80", "Host port tcp 81", "Host port udp 53"]);
      await portmap.must("CHECK", { ...ONE, ports: [port(80), port(81), port(53, undefined, "udp")] });
    });
  });

  describe("CHECK", () => {
    testCommand("succeeds after ADD, also without mappings, and requires a result", async () => {
      await portmap.must("ADD", ONE);
      expect(await portmap.must("CHECK", ONE)).toMatchObject({ stdout: "" });
      await portmap.must("CHECK", { id: "two", addresses: ADDRESSES });
      await portmap.refused("CHECK", ERROR_TABLE["config-invalid"].code, { id: "one", ports: ONE.ports ?? [] });
      await portmap.refused("CHECK", ERROR_TABLE["version-incompatible"].code, { ...ONE, cniVersion: "0.3.1" });
    });

    const damages = [
      `delete element ip ${TABLE} ports { tcp . 0.0.0.0 . 80 }`,
      `delete element ip ${TABLE} owners { udp . 0.0.0.0 . 53 }`,
      `delete element ip ${TABLE} sources { 10.77.0.2 . 10.77.0.2 }`,
      `delete element ip ${TABLE} sources { 127.0.0.0 . 10.77.0.2 }`,
      `delete element ip6 ${TABLE} ports { tcp . :: . 80 }`,
      `delete element ip ${TABLE} ports { tcp . 0.0.0.0 . 80 }; add element ip ${TABLE} ports { tcp . 0.0.0.0 . 80 : 10.77.0.9 . 80 }`,
      `delete element ip ${TABLE} owners { tcp . 0.0.0.0 . 90 }`,
      `delete element ip ${TABLE} single { tcp . 192.0.2.1 . 90 }`,
      `delete element ip ${TABLE} attachments { ${OWNER} . 0 }`,
      `delete element ip ${TABLE} attachments { ${OWNER} . 4 }`,
      `flush map ip6 ${TABLE} attachments`,
      `flush chain ip ${TABLE} output`,
      `flush chain ip6 ${TABLE} to-pods`,
      `flush chain ip ${TABLE} guard; delete chain ip ${TABLE} guard`,
      `add rule ip ${TABLE} prerouting counter`,
      `insert rule ip ${TABLE} to-pods return`,
      `flush table ip6 ${TABLE}`,
      `delete table ip6 ${TABLE}`,
      "flush ruleset",
    ];
    for (const damage of damages) {
      testCommand(`fails after "${damage.replaceAll(TABLE, "<table>")}", and the next ADD repairs it`, async () => {
        await portmap.must("ADD", ONE);
        await nft(damage);
        await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
        await portmap.must("ADD", ONE);
        await portmap.must("CHECK", ONE);
        await portmap.must("DEL", ONE);
        expect(await world.kept()).toEqual([]);
      });
    }

    testCommand("reports another owner of the port", async () => {
      await portmap.must("ADD", ONE);
      await portmap.must("DEL", ONE);
      await portmap.must("ADD", { ...ONE, id: "two" });
      expect(await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE)).toContain("ports/two/eth0");
    });

    testCommand("reports other ports and another address of the container", async () => {
      await portmap.must("ADD", ONE);
      const code = ERROR_TABLE["check-failed"].code;
      await portmap.refused("CHECK", code, { ...ONE, ports: [port(81)] });
      await portmap.refused("CHECK", code, { ...ONE, addresses: ["10.77.0.9/24"] });
      await portmap.refused("CHECK", code, { ...ONE, config: { masqAll: true } });
    });

    testCommand("requires masqueraded sources only if the config requests them", async () => {
      await portmap.must("ADD", { ...ONE, config: { snat: false } });
      await portmap.must("CHECK", { ...ONE, config: { snat: false } });
      await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
      await portmap.must("ADD", { ...ONE, config: { masqAll: true } });
      await portmap.must("CHECK", { ...ONE, config: { masqAll: true } });
      await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
    });
  });

  describe("another container's ports", () => {
    testCommand("are kept when an ADD repairs flushed rules", async () => {
      await portmap.must("ADD", ONE);
      await nft(`flush table ip ${TABLE}`);
      await portmap.must("ADD", { id: "two", addresses: ["10.77.0.3/24"], ports: [port(99)] });
      await portmap.must("CHECK", ONE);
    });
  });

  describe("GC", () => {
    const valid = (...attachments: readonly (readonly [string, string])[]) => ({
      config: { "cni.dev/valid-attachments": attachments.map(([containerID, ifname]) => ({ containerID, ifname })) },
    });
    const others: readonly PortmapCall[] = [
      { id: "two", addresses: ["10.77.0.3/24"], ports: [port(81)] },
      { id: "one", ifname: "eth1", addresses: ["10.77.0.4/24"], ports: [port(82)] },
      { id: "one", network: "other", addresses: ["10.77.0.5/24"], ports: [port(83)] },
    ];
    const owners = async () =>
      [...new Set((await world.kept()).flatMap((line) => /"(\S+\/\S+\/eth\d)"/.exec(line)?.[1] ?? []))].sort();
    const addAll = () => Promise.all([ONE, ...others].map((call) => portmap.must("ADD", call)));

    testCommand(
      "keeps valid attachments, removes the others of the network, and does not touch other networks",
      async () => {
        await addAll();
        await portmap.must("GC", valid(["one", "eth0"]));
        expect(await owners()).toEqual(["other/one/eth0", "ports/one/eth0"]);
        await portmap.must("CHECK", ONE);
        await portmap.must("GC", valid());
        expect(await owners()).toEqual(["other/one/eth0"]);
        await portmap.must("GC", { ...valid(), network: "other" });
        expect(await world.kept()).toEqual([]);
      },
    );

    testCommand("removes nothing if the runtime sends no list, and accepts the misspelt key", async () => {
      await addAll();
      const before = await world.kept();
      await portmap.must("GC");
      expect(await world.kept()).toEqual(before);
      await portmap.must("GC", { config: { "cni.dev/attachments": [] } });
      expect(await owners()).toEqual(["other/one/eth0"]);
    });

    testCommand("succeeds if there is no table", async () => {
      await portmap.must("GC", valid());
    });

    testCommand("also removes ports whose records were all removed", async () => {
      await portmap.must("ADD", ONE);
      await nft(`flush map ip ${TABLE} attachments`);
      await portmap.must("GC", valid(["one", "eth0"]));
      expect(await owners()).toEqual(["ports/one/eth0"]);
      await portmap.must("GC", { ...valid(), network: "other" });
      expect(await owners()).toEqual(["ports/one/eth0"]);
      await portmap.must("GC", valid());
      expect(await world.kept()).toEqual([]);
    });

    testCommand("removes the note that a port is used on single addresses if it is not", async () => {
      await portmap.must("ADD", ONE);
      await nft(`delete element ip ${TABLE} single { tcp . 192.0.2.1 . 90 }`);
      await nft(`delete element ip ${TABLE} owners { tcp . 192.0.2.1 . 90 }`);
      await nft(`delete element ip ${TABLE} ports { tcp . 192.0.2.1 . 90 }`);
      await portmap.must("GC", valid());
      expect(await world.kept()).toEqual([]);
    });
  });

  describe("STATUS", () => {
    testCommand("reports options that ADD would refuse", async () => {
      await portmap.refused("STATUS", ERROR_TABLE["field-unsupported"].code, { config: { backend: "iptables" } });
    });

    testCommand("succeeds if the kernel accepts rules, and reports if it does not", async () => {
      expect(await portmap.must("STATUS")).toMatchObject({ stdout: "" });
      const stdin = JSON.stringify({ cniVersion: "1.1.0", name: "ports", type: "portmap" });
      const environment = { CNI_COMMAND: "STATUS", CNI_PATH: "/opt/cni/bin" };
      const command = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "/opt/cni/bin/portmap"];
      const { code, stdout } = await world.host.run(command, { stdin, environment });
      expect([code, JSON.parse(stdout).code]).toEqual([1, ERROR_TABLE["not-available"].code]);
    });
  });
});
