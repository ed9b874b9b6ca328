/** Host ports after another program has changed their tables: "vendorctl node restore" writes them as the ADDs did. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { ERROR_TABLE } from "../../src/errors.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, askUdp, openUdpClient, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { CLIENT4, CLIENT6, HOST4, HOST6, mainPluginProblem, openPortHost, type PortHost } from "./port-host.ts";
import { type Portmap, type PortmapCall, port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft")];
const testRestore = testNeeding(...needs);
const testBehind = (main: "own" | "ptp" | "bridge") => testNeeding(...needs, mainPluginProblem(main));
const TABLE = identity.hostPortTable;
const ONE: PortmapCall = {
  id: "one",
  addresses: ["10.77.0.2/24", "fd77::2/64"],
  ports: [port(80), port(80, undefined, "udp"), port(90, "192.0.2.1")],
};
const TWO: PortmapCall = { id: "two", addresses: ["10.77.0.3/24"], ports: [port(81), port(82)] };

describe("restored host ports", () => {
  let world: PortHost;
  let portmap: Portmap;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    portmap = portmapOn(world);
  });
  afterEach(async () => {
    for (const id of ["one", "two", "three"]) {
      for (const ifname of ["eth0", "eth1"]) await portmap?.run("DEL", { id, ifname });
      await world?.host.run(["ip", "netns", "delete", `vt-${id}`]);
    }
    await world?.host.run(["nft", "flush ruleset"]);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const alive = (...ids: readonly string[]) => Promise.all(ids.map((id) => world.makePod(id, [])));
  const nft = (text: string) => world.host.must(["nft", text]);
  const restored = async () => {
    const { code, stdout, stderr } = await world.restore();
    expect(code).toBe(0);
    return { stdout, stderr };
  };

  for (const damage of [
    "flush ruleset",
    `delete table ip ${TABLE}`,
    `flush table ip6 ${TABLE}`,
    `flush chain ip ${TABLE} output`,
    `add rule ip ${TABLE} prerouting counter`,
    `flush map ip ${TABLE} ports`,
    `flush map ip6 ${TABLE} attachments`,
    `delete element ip ${TABLE} owners { tcp . 0.0.0.0 . 80 }`,
    `delete element ip ${TABLE} ports { udp . 0.0.0.0 . 80 }`,
    `delete element ip ${TABLE} sources { 10.77.0.2 . 10.77.0.2 }`,
  ]) {
    testRestore(`are as before after "${damage.replaceAll(TABLE, "<table>")}", and then stay as they are`, async () => {
      await alive("one", "two");
      for (const call of [ONE, TWO]) await portmap.must("ADD", call);
      const before = [...(await world.kept())].sort();
      await nft(damage);
      expect((await restored()).stdout).toContain(TABLE);

      expect([...(await world.kept())].sort()).toEqual(before);
      for (const call of [ONE, TWO]) await portmap.must("CHECK", call);
      expect((await restored()).stdout).toContain("up to date");
      for (const call of [ONE, TWO]) await portmap.must("DEL", call);
      expect([await world.kept(), world.files()]).toEqual([[], []]);
      // Nothing is left that could bring them back.
      expect((await restored()).stdout).toContain("up to date");
      expect(await world.kept()).toEqual([]);
    });
  }

  for (const main of ["own", "ptp", "bridge"] as const) {
    testBehind(main)(`lead packets to a container behind ${main} from everywhere, as before`, async () => {
      const network = world.network({ main });
      const pod = await world.makePod("three", [
        { hostPort: 83, containerPort: 80 },
        { hostPort: 84, containerPort: 53, protocol: "udp" },
      ]);
      const { interfaces } = await network.add(pod.attachment);
      const setting = `/proc/sys/net/ipv4/conf/${interfaces?.[0]?.name}/route_localnet`;
      using _tcp = serveTcp(pod.netns, "pod", 80);
      using _udp = await serveUdp(pod.netns, "pod", 53);
      using client = await openUdpClient(world.client, CLIENT4);
      await nft("flush ruleset");
      expect(await askTcp(world.client, HOST4, 83)).not.toStartWith("pod ");
      // From now on the kernel tracks it as a conversation with the host.
      expect(await client.ask(HOST4, 84)).not.toStartWith("pod ");
      await restored();

      expect(await askTcp(world.client, HOST4, 83)).toBe(`pod ${CLIENT4}`);
      expect(await askTcp(world.client, HOST6, 83)).toBe(`pod ${CLIENT6}`);
      expect(await client.ask(HOST4, 84)).toBe(`pod ${CLIENT4}`);
      expect(await askUdp(world.netns, HOST4, 84)).toStartWith("pod ");
      expect(await askTcp(world.netns, "127.0.0.1", 83)).toStartWith("pod ");
      expect(await askTcp(pod.netns, HOST4, 83)).toStartWith("pod ");
      await network.del(pod.attachment);
      expect([await world.kept(), world.files()]).toEqual([[], []]);
      // On a bridge, which stays, it is switched off with the last container.
      if (main === "bridge") expect(await world.host.must(["cat", setting])).toBe("0\n");
    });
  }

  testRestore("leave 127.0.0.0/8 to the process that listened when the container was added", async () => {
    await alive("one");
    const listener = serveTcp(world.netns, "host", 80);
    await portmap.must("ADD", ONE);
    const before = [...(await world.kept())].sort();
    listener[Symbol.dispose]();
    expect(before.join("\n")).toContain("ip host-loopback:");
    await nft("flush ruleset");
    await restored();

    expect([...(await world.kept())].sort()).toEqual(before);
  });

  testRestore("do not include one that another container got meanwhile, which is reported", async () => {
    await alive("one", "two", "three");
    for (const call of [ONE, TWO]) await portmap.must("ADD", call);
    await nft("flush ruleset");
    await portmap.must("ADD", { id: "three", addresses: ["10.77.0.4/24"], ports: [port(81), port(90)] });
    const { stderr } = await restored();

    expect(stderr).toContain('Host port tcp 81 of "ports/two/eth0" is not restored: it belongs to "ports/three/eth0"');
    expect(stderr).toContain("Host port tcp 192.0.2.1:90");
    const kept = await world.kept();
    expect(kept).toContain("ip ports: 6 . 0.0.0.0 . 81 : 10.77.0.4 . 80");
    for (const own of ["80 : 10.77.0.2 . 80", "82 : 10.77.0.3 . 80"]) {
      expect(kept).toContain(`ip ports: 6 . 0.0.0.0 . ${own}`);
    }
    expect((await restored()).stdout).toContain("up to date");
    await portmap.must("DEL", { id: "three" });
    await restored();
    for (const call of [ONE, TWO]) await portmap.must("CHECK", call);
  });

  testRestore("do not take a container's address back from the one that has it now", async () => {
    await alive("one", "two");
    await portmap.must("ADD", ONE);
    await portmap.must("ADD", { ...TWO, addresses: ONE.addresses ?? [] });
    const before = [...(await world.kept())].sort();
    expect((await restored()).stdout).not.toContain(TABLE);
    expect([...(await world.kept())].sort()).toEqual(before);
  });

  testRestore("go to the interface of a container that had them", async () => {
    await alive("one");
    const second: PortmapCall = { ...ONE, ifname: "eth1", addresses: ["10.77.0.9/24"] };
    for (const call of [ONE, second]) await portmap.must("ADD", call);
    const before = [...(await world.kept())].sort();
    await nft("flush ruleset");
    await restored();
    expect([...(await world.kept())].sort()).toEqual(before);
    for (const call of [ONE, second]) await portmap.must("DEL", call);
    expect([await world.kept(), world.files()]).toEqual([[], []]);
  });

  testRestore("are those of the last ADD", async () => {
    await alive("one");
    await portmap.must("ADD", ONE);
    await portmap.must("ADD", { ...ONE, ports: [port(85)] });
    const before = await world.kept();
    await nft("flush ruleset");
    await restored();
    expect(await world.kept()).toEqual(before);
  });

  testRestore(
    "are not recorded if the folder cannot be written: ADD warns, and all but the restore works",
    async () => {
      await alive("one", "two");
      await portmap.must("ADD", ONE);
      const folder = world.recordFolder;
      await world.host.must(["sh", "-ec", `mount --bind ${folder} ${folder}; mount -o remount,bind,ro ${folder}`]);
      try {
        const { stderr } = await portmap.must("ADD", TWO);
        expect(stderr).toContain("not come back");
        await portmap.must("CHECK", TWO);
        await portmap.must("DEL", TWO);
        expect((await world.kept()).join("\n")).not.toContain("10.77.0.3");
        // A former record that cannot be replaced would bring its ports back.
        await portmap.refused("ADD", ERROR_TABLE["io-failure"].code, { ...ONE, ports: [port(86)] });
      } finally {
        await world.host.must(["umount", folder]);
      }
    },
  );

  testRestore("are none of a container that another host network namespace serves, whose record stays", async () => {
    await alive("one", "two", "three");
    const under = ["nsenter", "--net=/run/netns/vt-three"];
    await portmap.must("ADD", { ...ONE, under });
    const files = world.files();
    expect(files).toHaveLength(1);
    expect((await restored()).stdout).not.toContain(TABLE);
    expect(await world.kept()).toEqual([]);
    await portmap.must("GC", { config: { "cni.dev/valid-attachments": [] } });
    expect(world.files()).toEqual(files);
    await portmap.must("GC", { config: { "cni.dev/valid-attachments": [] }, under });
    expect(world.files()).toEqual([]);
  });

  testRestore("are none of a container that is gone, whose ADD failed, or that GC finds gone", async () => {
    await alive("one", "two");
    for (const call of [ONE, TWO]) await portmap.must("ADD", call);
    await alive("three");
    const failing: PortmapCall = { id: "three", addresses: ["10.77.0.4/24"], ports: [port(95), port(81)] };
    await portmap.refused("ADD", ERROR_TABLE["host-port-taken"].code, failing);
    await world.host.must(["ip", "netns", "delete", "vt-one"]);
    await nft("flush ruleset");
    expect(world.files()).toHaveLength(2);
    const valid = [{ containerID: "one", ifname: "eth0" }];
    await portmap.must("GC", { config: { "cni.dev/valid-attachments": valid } });
    expect(world.files()).toHaveLength(1);
    await restored();
    expect([await world.kept(), world.files()]).toEqual([[], []]);
  });
});
