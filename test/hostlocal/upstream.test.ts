/**
 * Upstream's own programs as the judge: the same calls give the same answers
 * and the same files, and either program carries on where the other stopped.
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

const STORIES: readonly [string, object, readonly Step[]][] = [
  [
    "fills a subnet and reuses what is freed",
    SMALL,
    [..."abcdefg".split("").map((id) => ADD(id)), DEL("c"), DEL("a"), ADD("h"), ADD("i"), ADD("j")],
  ],
  [
    "goes round two ranges",
    TWO_RANGES,
    [..."abcd".split("").map((id) => ADD(id)), DEL("a"), DEL("b"), ..."efghi".split("").map((id) => ADD(id))],
  ],
  ["serves two families", FAMILIES, [ADD("a"), ADD("b"), ADD("c"), ADD("d"), DEL("b"), ADD("d"), ADD("e")]],
  [
    "answers version 0.2.0",
    FAMILIES,
    [ADD("a", { cniVersion: "0.2.0" }), ADD("b", { cniVersion: "0.1.0" }), DEL("a", { cniVersion: "0.2.0" })],
  ],
  [
    "answers version 0.4.0",
    FAMILIES,
    [
      ADD("a", { cniVersion: "0.4.0" }),
      { command: "CHECK", containerId: "a", cniVersion: "0.4.0" },
      { command: "CHECK", containerId: "b", cniVersion: "0.4.0" },
    ],
  ],
  ["refuses what is twice", SMALL, [ADD("a"), ADD("a"), ADD("a", { ifname: "eth1" }), DEL("a"), DEL("a"), ADD("a")]],
  [
    "gives what is asked for",
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
    "takes the runtime's ranges first",
    SMALL,
    [ADD("a", { config: { runtimeConfig: { ipRanges: [[{ subnet: "11.0.0.0/30" }]] } } }), ADD("b"), DEL("a")],
  ],
  [
    "lets the network's own address and the broadcast be asked for",
    { ranges: [[{ subnet: "10.1.2.0/30", rangeStart: "10.1.2.0", rangeEnd: "10.1.2.3" }]] },
    [ADD("a"), ADD("b"), ADD("c"), ADD("d")],
  ],
  [
    "follows a change of the ranges",
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
  ["start behind end", { subnet: "10.1.2.0/24", rangeStart: "10.1.2.9", rangeEnd: "10.1.2.8" }],
  ["overlap", { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.2.128/25" }]] }],
  ["mixed families", { ranges: [[{ subnet: "10.1.2.0/24" }, { subnet: "2001:db8::/64" }]] }],
  ["empty set", { ranges: [[]] }],
  ["not nested", { ranges: [{ subnet: "10.1.2.0/24" }] }],
  ["leading zero", { subnet: "010.1.2.0/24" }],
  ["no resolv.conf", { subnet: "10.1.2.0/24", resolvConf: "/nonexistent" }],
];

/** Success with its answer (an empty `dns` says nothing), or failure. */
function outcomeOf(run: PluginRun): unknown {
  if (run.exitCode !== 0) return "refused";
  if (run.stdout.trim() === "") return "done";
  const { dns = {}, ...answer } = JSON.parse(run.stdout);
  return { ...answer, dns };
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
const judged = upstream.length === 0 ? describe.skip : describe;

judged.each(upstream.length === 0 ? [["upstream's plugin (skipped: not on this host)", ""] as const] : upstream)(
  "beside host-local %s",
  (_, theirs) => {
    test.each([...STORIES])("%s: the same answers and files", async (_title, ipam, steps) => {
      expect(await play(steps, ipam, () => OURS)).toEqual(await play(steps, ipam, () => theirs));
    });

    test.each([...STORIES])("%s: with the two taking turns", async (_title, ipam, steps) => {
      const judge = await play(steps, ipam, () => theirs);
      expect(await play(steps, ipam, (step) => (step % 2 === 0 ? OURS : theirs))).toEqual(judge);
      expect(await play(steps, ipam, (step) => (step % 2 === 1 ? OURS : theirs))).toEqual(judge);
    });

    test.each([...REFUSED])("refuses the same configs: %s", async (_title, ipam) => {
      const dataDir = join(folder.path, crypto.randomUUID());
      const runs = [OURS, theirs].map((program) => callHostLocal({ program, dataDir, command: "ADD", ipam }));
      expect((await Promise.all(runs)).map(outcomeOf)).toEqual(["refused", "refused"]);
    });

    // Upstream's reserves and gives back first, so that its next address is another one.
    test("refuses an address outside of the ranges, and keeps none", async () => {
      for (const program of [OURS, theirs]) {
        const dataDir = join(folder.path, crypto.randomUUID());
        const run = await callHostLocal({ program, dataDir, command: "ADD", ipam: SMALL, args: "IP=10.9.9.9" });
        expect(outcomeOf(run)).toBe("refused");
        expect(Object.keys(filesOf(dataDir)).filter((name) => !name.startsWith("last"))).toEqual([]);
      }
    });

    test("one takes a whole network over from the other, and back", async () => {
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
