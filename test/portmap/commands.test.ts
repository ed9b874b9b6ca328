/** DEL, CHECK, GC and STATUS of host ports, and tables that somebody else changed or removed. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { CHAINING_VERSIONS, isAtLeast } from "../../src/cni/version.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { serveTcp, serveUdp } from "../support/talk.ts";
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
      "both, as a runtime that lost its disk": { id: "one" },
      "a namespace": { id: "one", netns: "" },
      "the namespace's file": { id: "one", netns: "/run/netns/vt-none" },
      "a config that ADD would take": { id: "one", config: { snat: "no", backend: "iptables", conditionsV4: ["-x"] } },
      "mappings that make sense": { id: "one", config: { runtimeConfig: { portMappings: [{ hostPort: -1 }] } } },
    };
    for (const [what, call] of Object.entries(without)) {
      testCommand(`removes everything without ${what}, and says nothing the second time`, async () => {
        await portmap.must("ADD", ONE);
        for (let time = 0; time < 2; time++) {
          expect(await portmap.must("DEL", call)).toMatchObject({ stdout: "" });
          expect(await world.kept()).toEqual([]);
        }
      });
    }

    testCommand("is well where nothing was ever added, and makes no table", async () => {
      await portmap.must("DEL", ONE);
      expect(await nft("list tables")).toBe("");
    });

    testCommand("leaves the ports of other containers, interfaces and networks", async () => {
      await portmap.must("ADD", ONE);
      const before = await world.kept();
      for (const call of [{ id: "two" }, { id: "one", ifname: "eth1" }, { id: "one", network: "other" }]) {
        await portmap.must("DEL", call);
      }
      expect(await world.kept()).toEqual(before);
    });

    testCommand("removes the rest when somebody removed a part by hand", async () => {
      await portmap.must("ADD", ONE);
      await nft(`delete element ip ${TABLE} ports { tcp . 0.0.0.0 . 80 }`);
      await nft(`delete element ip ${TABLE} owners { udp . 0.0.0.0 . 53 }`);
      await nft(`delete element ip6 ${TABLE} sources { fd77::2 . fd77::2 }`);
      await portmap.must("DEL", ONE);
      expect(await world.kept()).toEqual([]);
    });

    testCommand("removes everything when somebody removed a part of its records", async () => {
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
    testCommand("leave no socket behind that nobody closes", async () => {
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
      testCommand(`passes the result on as it came at ${cniVersion}, with ports and without`, async () => {
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

    testCommand("leaves out, with a warning, what no address of the container can serve", async () => {
      const call = { ...ONE, addresses: ["10.77.0.2/24"], ports: [port(80), port(81, "fd00:2::1")] };
      const { stderr } = await portmap.must("ADD", call);
      expect(stderr).toContain("tcp 81");
      expect((await world.kept()).filter((line) => line.includes(" ports: "))).toHaveLength(1);
      await portmap.must("ADD", { ...call, addresses: [] });
    });

    testCommand("warns of a process of the host that listens on the port, and maps it all the same", async () => {
      using _tcp = serveTcp(world.netns, "host", 80, "0.0.0.0");
      using _six = serveTcp(world.netns, "host", 81, "::1");
      using _udp = await serveUdp(world.netns, "host", 53, "127.0.0.1");
      const quiet = await portmap.must("ADD", {
        ...ONE,
        ports: [port(82), port(80, undefined, "udp"), port(80, "::")],
      });
      expect(quiet.stderr).toBe("");
      const { stderr } = await portmap.must("ADD", { ...ONE, ports: [port(80), port(81), port(53, undefined, "udp")] });
      expect(stderr.match(/Host port \S+ \d+/g)).toEqual(["Host port tcp 80", "Host port udp 53", "Host port tcp 81"]);
      await portmap.must("CHECK", { ...ONE, ports: [port(80), port(81), port(53, undefined, "udp")] });
    });
  });

  describe("CHECK", () => {
    testCommand("passes after ADD, with no mappings, and needs a result", async () => {
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
      testCommand(`tells after "${damage.replaceAll(TABLE, "<table>")}", and the next ADD repairs it`, async () => {
        await portmap.must("ADD", ONE);
        await nft(damage);
        await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
        await portmap.must("ADD", ONE);
        await portmap.must("CHECK", ONE);
        await portmap.must("DEL", ONE);
        expect(await world.kept()).toEqual([]);
      });
    }

    testCommand("tells who has the port instead", async () => {
      await portmap.must("ADD", ONE);
      await portmap.must("DEL", ONE);
      await portmap.must("ADD", { ...ONE, id: "two" });
      expect(await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE)).toContain("ports/two/eth0");
    });

    testCommand("tells other ports and another address of the container", async () => {
      await portmap.must("ADD", ONE);
      const code = ERROR_TABLE["check-failed"].code;
      await portmap.refused("CHECK", code, { ...ONE, ports: [port(81)] });
      await portmap.refused("CHECK", code, { ...ONE, addresses: ["10.77.0.9/24"] });
      await portmap.refused("CHECK", code, { ...ONE, config: { masqAll: true } });
    });

    testCommand("demands hidden sources only where the config asks for them", async () => {
      await portmap.must("ADD", { ...ONE, config: { snat: false } });
      await portmap.must("CHECK", { ...ONE, config: { snat: false } });
      await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
      await portmap.must("ADD", { ...ONE, config: { masqAll: true } });
      await portmap.must("CHECK", { ...ONE, config: { masqAll: true } });
      await portmap.refused("CHECK", ERROR_TABLE["check-failed"].code, ONE);
    });
  });

  describe("another container's ports", () => {
    testCommand("survive the repair that an ADD makes after the rules were flushed", async () => {
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

    testCommand("keeps what is valid, removes the rest of the network, and touches no other network", async () => {
      await addAll();
      await portmap.must("GC", valid(["one", "eth0"]));
      expect(await owners()).toEqual(["other/one/eth0", "ports/one/eth0"]);
      await portmap.must("CHECK", ONE);
      await portmap.must("GC", valid());
      expect(await owners()).toEqual(["other/one/eth0"]);
      await portmap.must("GC", { ...valid(), network: "other" });
      expect(await world.kept()).toEqual([]);
    });

    testCommand("removes nothing when the runtime names no list, and honours the misspelt key", async () => {
      await addAll();
      const before = await world.kept();
      await portmap.must("GC");
      expect(await world.kept()).toEqual(before);
      await portmap.must("GC", { config: { "cni.dev/attachments": [] } });
      expect(await owners()).toEqual(["other/one/eth0"]);
    });

    testCommand("is well where there is no table", async () => {
      await portmap.must("GC", valid());
    });

    testCommand("removes also what somebody removed all records of", async () => {
      await portmap.must("ADD", ONE);
      await nft(`flush map ip ${TABLE} attachments`);
      await portmap.must("GC", valid(["one", "eth0"]));
      expect(await owners()).toEqual(["ports/one/eth0"]);
      await portmap.must("GC", { ...valid(), network: "other" });
      expect(await owners()).toEqual(["ports/one/eth0"]);
      await portmap.must("GC", valid());
      expect(await world.kept()).toEqual([]);
    });

    testCommand("forgets that a port was held on single addresses when nobody holds it", async () => {
      await portmap.must("ADD", ONE);
      await nft(`delete element ip ${TABLE} single { tcp . 192.0.2.1 . 90 }`);
      await nft(`delete element ip ${TABLE} owners { tcp . 192.0.2.1 . 90 }`);
      await nft(`delete element ip ${TABLE} ports { tcp . 192.0.2.1 . 90 }`);
      await portmap.must("GC", valid());
      expect(await world.kept()).toEqual([]);
    });
  });

  describe("STATUS", () => {
    testCommand("tells options that no ADD could use", async () => {
      await portmap.refused("STATUS", ERROR_TABLE["field-unsupported"].code, { config: { backend: "iptables" } });
    });

    testCommand("is well where the kernel takes rules, and says so where it does not", async () => {
      expect(await portmap.must("STATUS")).toMatchObject({ stdout: "" });
      const stdin = JSON.stringify({ cniVersion: "1.1.0", name: "ports", type: "portmap" });
      const environment = { CNI_COMMAND: "STATUS", CNI_PATH: "/opt/cni/bin" };
      const command = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "/opt/cni/bin/portmap"];
      const { code, stdout } = await world.host.run(command, { stdin, environment });
      expect([code, JSON.parse(stdout).code]).toEqual([1, ERROR_TABLE["not-available"].code]);
    });
  });
});
