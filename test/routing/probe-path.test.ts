/** What a probe finds out about a path that loses packets, of which kind: real TCP and datagrams between two namespaces. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { PROBE_PORT } from "../../src/model/probe-port.ts";
import type { PathResult } from "../../src/routing/tunnel-paths.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { proofSize } from "../support/proof-size.ts";

const needs = [root, program("nft"), program("ip"), program("nsenter")];
const test = testNeeding(...needs);
const area = new NetnsArea("probe");
const PROGRAM = `${import.meta.dir}/probe-path.process.ts`;
const MTU = 1450;
const ADDRESSES = { 4: ["192.168.7.1", "192.168.7.2"], 6: ["fd07::1", "fd07::2"] } as const;
const TCP = `tcp dport ${PROBE_PORT}`;

describe("a probe of a path", () => {
  let [here, there]: [TestNetns | undefined, TestNetns | undefined] = [undefined, undefined];
  const inside = (netns: TestNetns | undefined, ...command: readonly string[]) => {
    if (netns !== undefined) runIn(netns, command);
  };
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    if (!canMakeNetns) return;
    [here, there] = [area.create("here"), area.create("there")];
    inside(here, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", there.name);
    [here, there].forEach((netns, index) => {
      inside(netns, "ip", "link", "set", "eth0", "mtu", String(MTU), "up");
      inside(netns, "ip", "addr", "add", `${ADDRESSES[4][index]}/24`, "dev", "eth0");
      inside(netns, "ip", "addr", "add", `${ADDRESSES[6][index]}/64`, "dev", "eth0", "nodad");
    });
  });
  afterEach(() => {
    for (const netns of [here, there]) if (netns !== undefined) area.delete(netns);
  });

  /** `dropped`: of what arrives at the other end. */
  async function probe(dropped: string, family: 4 | 6 = 4): Promise<PathResult> {
    if (here === undefined || there === undefined) throw new Error("no namespaces");
    const hook = "add table inet path; add chain inet path lost { type filter hook prerouting priority -400; }";
    inside(there, "nft", dropped === "" ? hook : `${hook}; add rule inet path lost ${dropped} drop`);
    const [, other] = ADDRESSES[family];
    const start = (netns: TestNetns, ...command: readonly string[]) =>
      Bun.spawn(["nsenter", `--net=${netns.path}`, process.execPath, PROGRAM, ...command], {
        ...{ stdout: "pipe", stderr: "inherit" },
      });
    const answering = start(there, "answer", other);
    try {
      await answering.stdout.getReader().read();
      const probing = start(here, "probe", other, String(MTU));
      return JSON.parse(await new Response(probing.stdout).text());
    } finally {
      answering.kill();
      await answering.exited;
    }
  }

  /** As if every packet were cut into segments before it leaves: each is lost or not on its own. */
  const cutSegments = () => inside(here, "ip", "link", "set", "eth0", "gso_max_segs", "1");

  test("finds nothing on a healthy one", async () => {
    expect(await probe("")).toEqual({ node: "there", small: "passed", large: "passed", tcp: "passed" });
  });

  test("finds that only TCP is lost, although connections begin", async () => {
    expect(await probe(`${TCP} meta length > 100`)).toMatchObject({ small: "passed", large: "passed", tcp: "lost" });
  });

  for (const family of proofSize({ everyDay: [4], soak: [4, 6] } as const)) {
    test(`finds TCP that loses a third of its packets, and no datagrams, by IPv${family}`, async () => {
      cutSegments();
      const { tcp, loss } = await probe(`${TCP} numgen inc mod 3 == 0`, family);
      expect(tcp).toBe("crawling");
      expect(loss?.tcp).toBeWithin(10, 60);
      expect(loss?.datagrams).toBeLessThan(10);
    }, 60_000);
  }

  const testInSoak = proofSize({ everyDay: false, soak: true }) ? test : testNeeding("part of the soak");
  testInSoak(
    "finds TCP that passes only if the card need not cut it into segments",
    async () => {
      expect(await probe(`${TCP} meta length > 1500`)).toMatchObject({ large: "passed", tcp: "crawling" });
    },
    60_000,
  );

  for (const [run, what, dropped] of [
    [test, "loses some packets of all kinds", "numgen random mod 5 == 0"],
    [testInSoak, "carries so much only", "limit rate over 20 kbytes/second burst 20 kbytes"],
  ] as const) {
    run(
      `does not blame the card if the path ${what}`,
      async () => {
        cutSegments();
        const { tcp } = await probe(dropped);
        expect(["passed", "unknown"]).toContain(tcp);
      },
      60_000,
    );
  }
});
