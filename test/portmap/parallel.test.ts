/** Two hundred at once: every port has one owner, and nothing is left when all are deleted. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { ERROR_TABLE } from "../../src/errors.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPortHost, type PortHost } from "./port-host.ts";
import { type Portmap, type PortmapCall, port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft")];
const testParallel = testNeeding(...needs);
const COUNT = 200;

describe("portmap, two hundred at once", () => {
  let world: PortHost;
  let portmap: Portmap;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    portmap = portmapOn(world);
    await world.makePod("all", []);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  /** Two consecutive ones request the same port: both on every address, both on single ones, or one of each. */
  const callOf = (number: number): PortmapCall => {
    const pair = number >> 1;
    const shared = 1000 + pair;
    const hostIp = { 0: undefined, 1: number % 2 === 0 ? undefined : "192.0.2.1", 2: "192.0.2.1" }[pair % 3];
    return {
      id: `c${number}`,
      netns: "/run/netns/vt-all",
      addresses: [`10.77.${1 + (number >> 7)}.${1 + (number & 127)}/32`],
      ports: [port(3000 + number), port(shared, hostIp), port(4000 + number, "192.0.2.1", "udp")],
    };
  };
  const numbers = Array.from({ length: COUNT }, (_, number) => number);

  testParallel("gives each contested port to exactly one, and removes everything at the end", async () => {
    const outcomes = await Promise.all(numbers.map((number) => portmap.run("ADD", callOf(number))));
    const codes = outcomes.map(({ code, stdout }) => (code === 0 ? 0 : JSON.parse(stdout).code));
    expect([...new Set(codes)].sort()).toEqual([0, ERROR_TABLE["host-port-taken"].code]);

    const winners = numbers.filter((number) => codes[number] === 0);
    expect(winners.map((number) => number >> 1)).toEqual(Array.from({ length: COUNT / 2 }, (_, pair) => pair));
    const ports = (await world.kept()).filter((line) => line.startsWith("ip ports:"));
    expect(ports).toHaveLength(winners.length * 3);
    await Promise.all(winners.slice(0, 20).map((number) => portmap.must("CHECK", callOf(number))));

    await Promise.all(numbers.map((number) => portmap.must("DEL", { id: `c${number}`, netns: "" })));
    expect(await world.kept()).toEqual([]);
  });

  testParallel("gives ports to the refused ones while the owners are deleted", async () => {
    const first = numbers.filter((number) => number % 2 === 0);
    await Promise.all(first.map((number) => portmap.must("ADD", callOf(number))));
    const gone = first.map((number) => portmap.must("DEL", { id: `c${number}` }));
    const come = first.map((number) => portmap.run("ADD", callOf(number + 1)));
    await Promise.all(gone);
    const came = (await Promise.all(come)).filter(({ code }) => code === 0).length;

    const ports = (await world.kept()).filter((line) => line.startsWith("ip ports:"));
    expect(ports).toHaveLength(came * 3);
    await portmap.must("GC", { config: { "cni.dev/valid-attachments": [] } });
    expect(await world.kept()).toEqual([]);
  });
});
