/**
 * Comparison with upstream's own programs: the same calls return the same results
 * and write the same files, and either program can continue with the files of the other.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { callHostLocal, filesOf, type HostLocalCall, OURS, upstreamPrograms } from "../support/host-local.ts";
import type { PluginRun } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const folder = temporaryDirectory("hostlocal-upstream");
afterAll(() => folder.remove());

type Step = Pick<HostLocalCall, "command" | "containerId" | "ifname" | "args" | "cniVersion" | "ipam" | "config">;

const ADD = (containerId: string, more: Partial<Step> = {}): Step => ({ command: "ADD", containerId, ...more });
const DEL = (containerId: string, more: Partial<Step> = {}): Step => ({ command: "DEL", containerId, ...more });

const SMALL = { subnet: "10.1.2.0/29" };
const TWO_RANGES = { ranges: [[{ subnet: "10.1.0.0/30" }, { subnet: "10.2.0.0/29", gateway: "10.2.0.3" }]] };
const FAMILIES = {
  ranges: [
    [{ subnet: "10.1.2.0/24", rangeStart: "10.1.2.10", rangeEnd: "10.1.2.12" }],
    [{ subnet: "2001:db8:1::0/120" }],
  ],
  routes: [{ dst: "::/0" }, { dst: "10.0.0.1/8", gw: "10.1.2.1" }],
};
const ASKING = (...ips: string[]) => ({ config: { args: { cni: { ips } } } });

const SCENARIOS: readonly [string, object, readonly Step[]][] = [
  [
    "fills a subnet and reuses released addresses",
    SMALL,
    [..."abcdefg".split("").map((id) => ADD(id)), DEL("c"), DEL("a"), ADD("h"), ADD("i"), ADD("j")],
  ],
  [
    "uses two ranges in turn",
    TWO_RANGES,
    [..."abcd".split("").map((id) => ADD(id)), DEL("a"), DEL("b"), ..."efghi".split("").map((id) => ADD(id))],
  ],
  ["serves two families", FAMILIES, [ADD("a"), ADD("b"), ADD("c"), ADD("d"), DEL("b"), ADD("d"), ADD("e")]],
  [
    "returns a result of version 0.2.0",
    FAMILIES,
    [ADD("a", { cniVersion: "0.2.0" }), ADD("b", { cniVersion: "0.1.0" }), DEL("a", { cniVersion: "0.2.0" })],
  ],
  [
    "returns a result of version 0.4.0",
    FAMILIES,
    [
      ADD("a", { cniVersion: "0.4.0" }),
      { command: "CHECK", containerId: "a", cniVersion: "0.4.0" },
      { command: "CHECK", containerId: "b", cniVersion: "0.4.0" },
    ],
  ],
  ["refuses a second ADD", SMALL, [ADD("a"), ADD("a"), ADD("a", { ifname: "eth1" }), DEL("a"), DEL("a"), ADD("a")]],
  [
    "assigns requested addresses",
    SMALL,
    [
      ADD("a", { args: "IP=10.1.2.5" }),
      ADD("b", { args: "IP=10.1.2.5" }),
      ADD("c", { args: "IP=10.1.2.1" }),
      ADD("d", ASKING("10.1.2.3/29")),
      ADD("e"),
      ADD("g", { args: "IP=nonsense" }),
    ],
  ],
  [
    "uses the runtime's ranges first",
    SMALL,
    [ADD("a", { config: { runtimeConfig: { ipRanges: [[{ subnet: "11.0.0.0/30" }]] } } }), ADD("b"), DEL("a")],
  ],
  [
    "accepts requests for the network address and the broadcast address",
    { ranges: [[{ subnet: "10.1.2.0/30", rangeStart: "10.1.2.0", rangeEnd: "10.1.2.3" }]] },
    [ADD("a"), ADD("b"), ADD("c"), ADD("d")],
  ],
  [
    "uses changed ranges",
    SMALL,
    [
      ADD("a"),
      ADD("b"),
      ADD("c", { ipam: { subnet: "10.5.0.0/29" } }),
      ADD("d"),
      DEL("c", { ipam: { subnet: "10.6.0.0/29" } }),
    ],
  ],
];

const REFUSED: readonly [string, object][] = [
  ["no range", {}],
  ["host bits", { subnet: "10.1.2.5/24" }],
  ["too small", { subnet: "10.1.2.0/31" }],
  ["start outside", { subnet: "10.1.2.0/24", rangeStart: "10.1.3.1" }],
  ["start after end", { subnet: "10.1.2.0/24", rangeStart: "10.1.2.9", rangeEnd: "10.1.2.8" }],
  ["overlap", { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.2.128/25" }]] }],
  ["mixed families", { ranges: [[{ subnet: "10.1.2.0/24" }, { subnet: "2001:db8::/64" }]] }],
  ["empty set", { ranges: [[]] }],
  ["not nested", { ranges: [{ subnet: "10.1.2.0/24" }] }],
  ["leading zero", { subnet: "010.1.2.0/24" }],
  ["no resolv.conf", { subnet: "10.1.2.0/24", resolvConf: "/nonexistent" }],
];

/** The result of a success (without an empty `dns`), or a failure. */
function outcomeOf(run: PluginRun): unknown {
  if (run.exitCode !== 0) return "refused";
  if (run.stdout.trim() === "") return "done";
  const { dns = {}, ...result } = JSON.parse(run.stdout);
  return { ...result, dns };
}

async function play(steps: readonly Step[], ipam: object, programFor: (step: number) => string): Promise<unknown> {
  const dataDir = join(folder.path, crypto.randomUUID());
  const trail: unknown[] = [];
  for (const [index, step] of steps.entries()) {
    const run = await callHostLocal({ program: programFor(index), dataDir, ipam, ...step });
    trail.push({ step: `${step.command} ${step.containerId}`, outcome: outcomeOf(run), files: filesOf(dataDir) });
  }
  return trail;
}

const upstream = upstreamPrograms();
const describeEach = upstream.length === 0 ? describe.skip : describe;

describeEach.each(upstream.length === 0 ? [["upstream's plugin (skipped: not on this host)", ""] as const] : upstream)(
  "compared with host-local %s",
  (_, theirs) => {
    test.each([...SCENARIOS])("%s: the same results and files", async (_title, ipam, steps) => {
      expect(await play(steps, ipam, () => OURS)).toEqual(await play(steps, ipam, () => theirs));
    });

    test.each([...SCENARIOS])("%s: with the two programs alternating", async (_title, ipam, steps) => {
      const judge = await play(steps, ipam, () => theirs);
      expect(await play(steps, ipam, (step) => (step % 2 === 0 ? OURS : theirs))).toEqual(judge);
      expect(await play(steps, ipam, (step) => (step % 2 === 1 ? OURS : theirs))).toEqual(judge);
    });

    test.each([...REFUSED])("refuses the same configs: %s", async (_title, ipam) => {
      const dataDir = join(folder.path, crypto.randomUUID());
      const runs = [OURS, theirs].map((program) => callHostLocal({ program, dataDir, command: "ADD", ipam }));
      expect((await Promise.all(runs)).map(outcomeOf)).toEqual(["refused", "refused"]);
    });

    // Upstream's plugin reserves an address and releases it, so its next address is a different one.
    test("refuses an address outside the ranges, and reserves none", async () => {
      for (const program of [OURS, theirs]) {
        const dataDir = join(folder.path, crypto.randomUUID());
        const run = await callHostLocal({ program, dataDir, command: "ADD", ipam: SMALL, args: "IP=10.9.9.9" });
        expect(outcomeOf(run)).toBe("refused");
        expect(Object.keys(filesOf(dataDir)).filter((name) => !name.startsWith("last"))).toEqual([]);
      }
    });

    test("one program takes over a whole network from the other, and back", async () => {
      const ids = Array.from({ length: 6 }, (_id, index) => `pod${index}`);
      for (const [from, to] of [
        [theirs, OURS],
        [OURS, theirs],
      ] as const) {
        const dataDir = join(folder.path, crypto.randomUUID());
        const call = (program: string, command: "ADD" | "DEL" | "CHECK", containerId: string) =>
          callHostLocal({ program, command, dataDir, containerId, ipam: { subnet: "10.1.2.0/24" } });
        for (const id of ids) expect((await call(from, "ADD", id)).exitCode).toBe(0);
        for (const id of ids) expect((await call(to, "CHECK", id)).exitCode).toBe(0);
        expect((await call(to, "ADD", "pod3")).exitCode).toBe(1);
        expect((await call(to, "ADD", "later")).stdout).toContain("10.1.2.8/24");
        for (const id of [...ids, "later"]) expect((await call(to, "DEL", id)).exitCode).toBe(0);
        expect(filesOf(dataDir)).toEqual({ "last_reserved_ip.0": "10.1.2.8" });
      }
    });
  },
);
