/** Ownership of host ports: conflicts, earlier containers of one attachment, and owners that ended without DEL. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { ERROR_TABLE } from "../../src/errors.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPortHost, type PortHost } from "./port-host.ts";
import { type Portmap, port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft")];
const testOwners = testNeeding(...needs);
const TAKEN = ERROR_TABLE["host-port-taken"].code;
const FIRST = ["10.77.0.2/24", "fd77::2/64"];
const SECOND = ["10.77.0.3/24", "fd77::3/64"];

describe("a host port", () => {
  let world: PortHost;
  let portmap: Portmap;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    portmap = portmapOn(world);
  });
  afterEach(async () => {
    await world?.host.run(["nft", "flush", "ruleset"]);
    await world?.host.run(["sh", "-c", "for each in one two three; do ip netns delete vt-$each 2>/dev/null; done"]);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const add = (id: string, addresses: readonly string[], ...ports: readonly ReturnType<typeof port>[]) =>
    portmap.must("ADD", { id, addresses, ports });
  const refusedAdd = (id: string, addresses: readonly string[], ...ports: readonly ReturnType<typeof port>[]) =>
    portmap.refused("ADD", TAKEN, { id, addresses, ports });
  const alive = (...ids: readonly string[]) => Promise.all(ids.map((id) => world.makePod(id, [])));
  const kill = (id: string) => world.host.must(["ip", "netns", "delete", `vt-${id}`]);

  testOwners(
    "of a running container is refused to another, with the owner in the error, and nothing is written",
    async () => {
      await alive("one", "two");
      await add("one", FIRST, port(80));
      const before = await world.kept();

      const message = await refusedAdd("two", SECOND, port(81), port(80));
      expect(message).toContain('container "one" of network "ports"');
      expect(message).toContain("tcp 80");
      expect(await world.kept()).toEqual(before);
    },
  );

  testOwners("is a different port on another protocol, another address, or in the other family", async () => {
    await alive("one", "two", "three");
    await add("one", FIRST, port(80), port(90, "192.0.2.1"), port(70, "0.0.0.0"));
    await add("two", SECOND, port(80, undefined, "udp"), port(80, undefined, "sctp"), port(90, "192.0.2.3"));
    await add("three", ["10.77.0.4/24", "fd77::4/64"], port(70, "::"), port(90, "fd00:2::1"));
  });

  testOwners(
    "is a different port on another address also if ADD has to create a table or to replace earlier records",
    async () => {
      await alive("one", "two", "three");
      await add("one", ["10.77.0.2/24"], port(90, "192.0.2.1"));
      for (let time = 0; time < 2; time++) await add("two", SECOND, port(90, "192.0.2.3"), port(90, "::"));

      expect(await refusedAdd("three", ["10.77.0.4/24"], port(90))).toMatch(/container "(one|two)" of network "ports"/);
      expect(await refusedAdd("three", ["10.77.0.4/24"], port(90, "192.0.2.3"))).toContain(
        'container "two" of network "ports"',
      );
      for (const id of ["one", "two"]) await portmap.must("DEL", { id });
      expect(await world.kept()).toEqual([]);
    },
  );

  testOwners("on every address excludes single addresses, and the other way round", async () => {
    await alive("one", "two");
    await add("one", FIRST, port(80), port(90, "192.0.2.1"));

    expect(await refusedAdd("two", SECOND, port(80, "192.0.2.3"))).toContain('container "one" of network "ports"');
    expect(await refusedAdd("two", SECOND, port(80, "fd00:2::1"))).toContain('container "one" of network "ports"');
    expect(await refusedAdd("two", SECOND, port(90))).toContain('container "one" of network "ports"');
    await add("two", SECOND, port(80, undefined, "udp"));
  });

  testOwners("is free for every address when the last single address is released, not before", async () => {
    await alive("one", "two", "three");
    await add("one", FIRST, port(90, "192.0.2.1"));
    await add("two", SECOND, port(90, "192.0.2.3"));
    await refusedAdd("three", ["10.77.0.4/24"], port(90));
    await portmap.must("DEL", { id: "one" });
    expect(await refusedAdd("three", ["10.77.0.4/24"], port(90))).toContain('container "two" of network "ports"');
    await portmap.must("DEL", { id: "two" });
    expect(await world.kept()).toEqual([]);
    await add("three", ["10.77.0.4/24"], port(90));
  });

  testOwners("of a deleted container is given to the next one, and a late DEL does not remove it", async () => {
    await alive("one", "two");
    await add("one", FIRST, port(80), port(81));
    await kill("one");
    await add("two", SECOND, port(80));

    const kept = await world.kept();
    expect(kept.join("\n")).not.toContain("ports/one/eth0");
    expect(kept).toContain("ip ports: 6 . 0.0.0.0 . 80 : 10.77.0.3 . 80");
    await portmap.must("DEL", { id: "one" });
    expect(await world.kept()).toEqual(kept);
    await portmap.must("CHECK", { id: "two", addresses: SECOND, ports: [port(80)] });
  });

  testOwners("on single addresses of deleted containers is given to one on every address", async () => {
    await alive("one", "two", "three");
    await add("one", FIRST, port(80, "192.0.2.1"));
    await add("two", SECOND, port(80, "192.0.2.3"));
    await kill("one");
    expect(await refusedAdd("three", ["10.77.0.4/24"], port(80))).toContain('container "two" of network "ports"');
    await kill("two");
    await add("three", ["10.77.0.4/24"], port(80));

    expect(await world.kept()).toContain("ip ports: 6 . 0.0.0.0 . 80 : 10.77.0.4 . 80");
    expect((await world.kept()).join("\n")).not.toContain("single-");
    await portmap.must("DEL", { id: "three" });
    expect(await world.kept()).toEqual([]);
  });

  testOwners("is kept by a container whose namespace is in use although its file was removed", async () => {
    await alive("one", "two");
    await add("one", FIRST, port(80));
    world.host.start(["nsenter", "--net=/run/netns/vt-one", "sleep", "1000"], "sleep.log");
    await world.host.must(["sh", "-c", 'until [ -n "$(ip netns pids vt-one)" ]; do sleep 0.02; done']);
    await kill("one");
    await refusedAdd("two", SECOND, port(80));
  });

  testOwners("is kept by a second ADD, follows a new address, and is released if not requested again", async () => {
    await alive("one");
    await add("one", FIRST, port(80), port(81));
    const before = await world.kept();
    await add("one", FIRST, port(80), port(81));
    expect(await world.kept()).toEqual(before);

    await add("one", SECOND, port(80), port(82, "192.0.2.1"));
    const after = await world.kept();
    expect(after.join("\n")).not.toContain("10.77.0.2");
    expect(after.filter((line) => line.startsWith("ip ports:")).sort()).toEqual([
      "ip ports: 6 . 0.0.0.0 . 80 : 10.77.0.3 . 80",
      "ip ports: 6 . 192.0.2.1 . 82 : 10.77.0.3 . 80",
    ]);
    await add("one", FIRST, port(82));
    expect((await world.kept()).join("\n")).not.toContain("single-");
    await portmap.must("DEL", { id: "one" });
    expect(await world.kept()).toEqual([]);
  });

  testOwners("is released if a second ADD has no address of its family, or does not ask for it there", async () => {
    await alive("one");
    const [ipv4 = "", ipv6 = ""] = FIRST;
    const families = async () => new Set((await world.kept()).map((line) => line.split(" ")[0]));

    await add("one", FIRST, port(80), port(90, "192.0.2.1"), port(90, "fd00:2::1"));
    await add("one", [ipv4], port(80));
    expect(await families()).toEqual(new Set(["ip"]));
    await add("one", FIRST, port(80, "::"));
    expect(await families()).toEqual(new Set(["ip6"]));
    await add("one", FIRST, port(80));
    expect(await families()).toEqual(new Set(["ip", "ip6"]));
    await add("one", [ipv6], port(80, "192.0.2.1"));
    expect(await world.kept()).toEqual([]);
  });

  testOwners("requested by two interfaces of one container goes to the first, and both succeed", async () => {
    await alive("one");
    await add("one", FIRST, port(80));
    const second = { id: "one", ifname: "eth1", network: "other", addresses: ["10.78.0.2/24"], ports: [port(80)] };
    const { stderr } = await portmap.must("ADD", second);
    expect(stderr).toContain("tcp 80");
    await portmap.must("CHECK", { id: "one", addresses: FIRST, ports: [port(80)] });
    await portmap.must("CHECK", second);

    await portmap.must("DEL", second);
    expect(await world.kept()).toContain("ip ports: 6 . 0.0.0.0 . 80 : 10.77.0.2 . 80");
    await portmap.must("DEL", { id: "one" });
    expect(await world.kept()).toEqual([]);
  });

  testOwners("keeps its masqueraded sources if the pod's address belonged to another pod before", async () => {
    await alive("one", "two");
    await add("one", FIRST, port(80));
    await add("two", FIRST, port(81));
    await portmap.must("DEL", { id: "one" });

    await portmap.must("CHECK", { id: "two", addresses: FIRST, ports: [port(81)] });
    await portmap.must("DEL", { id: "two" });
    expect(await world.kept()).toEqual([]);
  });

  testOwners("may belong to a container with a name of any length", async () => {
    const long = { id: "c".repeat(300), netns: "/run/netns/vt-one" };
    await alive("one", "two");
    await portmap.must("ADD", { ...long, addresses: FIRST, ports: [port(80)] });
    expect(await refusedAdd("two", SECOND, port(80))).toContain('container "ccc');
    await portmap.must("DEL", { ...long, id: `${"c".repeat(299)}d` });
    await portmap.must("CHECK", { ...long, addresses: FIRST, ports: [port(80)] });
    await portmap.must("DEL", long);
    expect(await world.kept()).toEqual([]);
  });
});
