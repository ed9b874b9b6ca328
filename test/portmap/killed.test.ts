/** The plugin is killed at every message to the kernel, at every reply, and at every file: DEL, GC or the next ADD repairs it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPortHost, type PortHost } from "./port-host.ts";
import { type Portmap, type PortmapCall, port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft"), program("strace")];
const testKilled = testNeeding(...needs);
/** More calls than any command makes. */
const LIMIT = 60;
const KILLED = 137;
const ONE: PortmapCall = {
  id: "one",
  addresses: ["10.77.0.2/24", "fd77::2/64"],
  ports: [port(80), port(53, undefined, "udp"), port(90, "192.0.2.1")],
};
const GC: PortmapCall = { config: { "cni.dev/valid-attachments": [] } };

describe("portmap killed at any point", () => {
  let world: PortHost;
  let portmap: Portmap;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    portmap = portmapOn(world);
    await world.makePod("one", []);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  /** Kills the command at its first such call, at its second … until one run survives; returns how many were killed. */
  async function killAtEach(call: string, command: string, then: () => Promise<void>): Promise<number> {
    for (let count = 1; count < LIMIT; count++) {
      const inject = `inject=${call}:signal=SIGKILL:when=${count}`;
      const under = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", `trace=${call}`, "-e", inject];
      const { code, stdout, stderr } = await portmap.run(command, { ...ONE, under });
      if (code === 0) return count - 1;
      if (code !== KILLED) throw new Error(`${command} ended with ${code}: ${stdout}${stderr}`);
      await then();
    }
    throw new Error(`${command} still called ${call} after ${LIMIT} times`);
  }

  for (const call of ["sendto", "recvfrom", "write"]) {
    testKilled(`in an ADD at ${call}: DEL leaves nothing, GC leaves nothing, another ADD completes it`, async () => {
      await world.host.must(["nft", "flush", "ruleset"]);
      const endings = ["DEL", "GC", "ADD"] as const;
      let next = 0;
      const died = await killAtEach(call, "ADD", async () => {
        const ending = endings[next++ % endings.length] ?? "DEL";
        await portmap.must(ending, ending === "GC" ? GC : ONE);
        if (ending === "ADD") {
          await portmap.must("CHECK", ONE);
          await portmap.must("DEL", { id: "one" });
        }
        expect(await world.kept()).toEqual([]);
      });
      expect(died).toBeGreaterThan(call === "write" ? 0 : 3);
      await portmap.must("DEL", ONE);
    });

    testKilled(`in a DEL at ${call}: another DEL, or GC, completes it`, async () => {
      await portmap.must("ADD", ONE);
      let next = 0;
      const died = await killAtEach(call, "DEL", async () => {
        if (next++ % 2 === 0) await portmap.must("DEL", { id: "one" });
        else await portmap.must("GC", GC);
        expect(await world.kept()).toEqual([]);
        await portmap.must("ADD", ONE);
      });
      expect(died).toBeGreaterThan(call === "write" ? -1 : 3);
      expect(await world.kept()).toEqual([]);
    });
  }
});
