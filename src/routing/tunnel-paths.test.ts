import { describe, expect, test } from "bun:test";
import {
  type ComparedTurn,
  choosePeers,
  decideOffload,
  describePaths,
  isNothingArriving,
  isSuspicious,
  judgeTcp,
  type OffloadSetting,
  type OffloadState,
  type PathResult,
} from "./tunnel-paths.ts";

const path = (node: string, more: Partial<PathResult> = {}): PathResult => ({
  ...{ node, small: "passed", large: "passed", tcp: "passed" },
  ...more,
});
const broken = (node: string) => path(node, { tcp: "lost" });
const crawling = (node: string) => path(node, { tcp: "crawling", loss: { tcp: 31, datagrams: 0 } });
const unknown = (node: string) => path(node, { tcp: "unknown" });
const gone = (node: string) => path(node, { small: "lost", large: "lost", tcp: "unknown" });
const START: OffloadState = { failures: 0 };
const DEVICE = { name: "vxlan.x", mtu: 1450, headerLength: 50, port: 4789 };

/** One round after the other; what was wanted in each. */
function play(
  rounds: readonly (readonly PathResult[])[],
  more: { readonly setting?: OffloadSetting; readonly needsOwnChecksums?: boolean; readonly from?: OffloadState } = {},
) {
  const { setting = "Auto", needsOwnChecksums = false } = more;
  let state = more.from ?? START;
  const wanted = rounds.map((round) => {
    const { wanted: now, ...next } = decideOffload(state, { setting, needsOwnChecksums, round });
    state = next;
    return now;
  });
  return { wanted, state };
}

describe("choosePeers()", () => {
  test("takes the next ones by name, around the end, and not the node itself", () => {
    expect(choosePeers("c", ["d", "a", "c", "b", "e"])).toEqual(["d", "e", "a"]);
    expect(choosePeers("z", ["a", "b"])).toEqual(["a", "b"]);
    expect(choosePeers("a", ["a"])).toEqual([]);
  });

  test("lets every node be probed by as many as it probes", () => {
    const nodes = Array.from({ length: 50 }, (_, index) => `node-${index}`);
    const probed = nodes.flatMap((own) => choosePeers(own, nodes));
    for (const node of nodes) expect(probed.filter((each) => each === node)).toHaveLength(3);
  });
});

describe("judgeTcp()", () => {
  const turn = (repeated: number, lostDatagrams: number, arrived: ComparedTurn["arrived"] = "all") => ({
    ...{ arrived, segments: 47, repeated, datagrams: 46, lostDatagrams },
  });

  test.each([
    ["nothing is lost", [turn(0, 0)], "passed"],
    ["one packet was lost", [turn(1, 0), turn(0, 0), turn(0, 0), turn(0, 0)], "passed"],
    ["a third of TCP is lost, and no datagram", Array(4).fill(turn(23, 0)), "crawling"],
    ["a third of TCP is lost, and some datagrams", Array(4).fill(turn(23, 3)), "crawling"],
    ["most is lost in the time that it has", Array(4).fill(turn(47, 0, "some")), "crawling"],
    ["a third of both is lost: the path", Array(4).fill(turn(23, 15)), "passed"],
    ["more datagrams are lost: a limit of the rate", Array(4).fill(turn(10, 30)), "passed"],
    ["it is slow, and nothing is lost", Array(4).fill(turn(0, 0, "some")), "passed"],
    ["nothing arrives, and datagrams do", Array(2).fill(turn(3, 1, "nothing")), "lost"],
    ["nothing arrives, and half of the datagrams: the path", Array(2).fill(turn(3, 23, "nothing")), "unknown"],
    [
      "one connection did not begin, and others lose nothing",
      [turn(2, 1, "nothing"), ...Array(3).fill(turn(0, 1))],
      "passed",
    ],
    ["few large packets are lost", Array(4).fill({ ...turn(2, 0), segments: 8 }), "passed"],
    ["many of few large packets are lost", Array(4).fill({ ...turn(4, 0), segments: 8 }), "crawling"],
  ] as const)("if %s", (_, turns, tcp) => {
    expect(judgeTcp(turns).tcp).toBe(tcp);
  });

  /** `packets`: of TCP in a turn. With the handshake, whose packets are sent twice in the time of a turn. */
  test.each([
    { packets: 46, directions: 1 },
    { packets: 46, directions: 2 },
    { packets: 8, directions: 1 },
    { packets: 8, directions: 2 },
  ])("a path that loses packets at random is hardly ever a broken card: %j", ({ packets, directions }) => {
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const lostOf = (count: number, share: number) =>
      Array.from({ length: count }).filter(() => random() < share).length;
    const turnOf = (share: number): ComparedTurn => {
      const both = 1 - (1 - share) ** directions;
      const datagrams = { datagrams: 46, lostDatagrams: lostOf(46, both) };
      if (lostOf(2, both) === 2) return { arrived: "nothing", segments: 0, repeated: 1, ...datagrams };
      const repeated = lostOf(Math.round(packets / (1 - share)), share);
      return { arrived: "all", segments: packets, repeated, ...datagrams };
    };
    for (const share of [0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.6]) {
      const found = Array.from({ length: 2_000 }, () => {
        const turns: ComparedTurn[] = [];
        while (turns.length < 4 && !isNothingArriving(turns)) turns.push(turnOf(share));
        return judgeTcp(turns).tcp;
      }).filter((tcp) => tcp === "crawling" || tcp === "lost");
      expect([share, found.length <= 10]).toEqual([share, true]);
    }
  });
});

describe("decideOffload()", () => {
  test("turns offload off after three rounds in which only TCP failed, to every node that answers", () => {
    const { wanted, state } = play(Array(3).fill([broken("b"), broken("c"), gone("d")]));
    expect(wanted).toEqual([undefined, undefined, "off"]);
    expect(state.record).toEqual({ by: "probes", reason: expect.stringContaining('"b", "c"') });
  });

  test("does so if TCP crawls, or does not pass to some of them, and says how much is lost", () => {
    const { wanted, state } = play([
      [crawling("b"), broken("c")],
      [broken("b"), broken("c")],
      [broken("b"), crawling("c")],
    ]);
    expect(wanted).toEqual([undefined, undefined, "off"]);
    expect(state.record?.reason).toContain(
      'TCP lost all of its packets to node "b"; 31 % of its packets to node "c", of datagrams 0 %: the network card',
    );
  });

  test.each([
    ["TCP crawls to one node only", [crawling("b"), path("c")]],
    ["one node is reached by TCP: the cards of the others are broken", [broken("b"), path("c")]],
    ["an agent does not answer yet: an upgrade", [broken("b"), unknown("c")]],
    ["no agent answers: a former release", [unknown("b"), unknown("c")]],
    ["large packets are lost too", [path("b", { large: "lost", tcp: "unknown" })]],
    ["nothing passes", [path("b", { small: "lost", large: "lost", tcp: "unknown" })]],
    ["there are no other nodes", []],
  ] as const)("leaves it alone if %s", (_, round) => {
    expect(play(Array(9).fill(round)).wanted).toEqual(Array(9).fill(undefined));
  });

  test("begins to count again after a round that passed", () => {
    const rounds = [[broken("b")], [broken("b")], [path("b")], [broken("b")], [broken("b")]];
    expect(play(rounds).wanted).toEqual(Array(5).fill(undefined));
  });

  test("once off it stays off, also if it does not help, which is told", () => {
    const { state: off } = play(Array(3).fill([broken("b")]));
    const rounds = [...Array(5).fill([path("b")]), ...Array(5).fill([broken("b")])];
    const { wanted, state } = play(rounds, { from: off });
    expect([wanted, state.record]).toEqual([Array(10).fill(undefined), off.record]);
    expect(describePaths(DEVICE, state, { round: [broken("b")], isLasting: true })).toContainEqual(
      expect.stringContaining("without checksum offload of this node either"),
    );
  });

  test("if all cards are broken, all are off in the end, in whichever order their agents start", () => {
    const nodes = ["a", "b", "c", "d", "e", "f"];
    for (const order of [nodes, nodes.toReversed(), nodes.slice(0, 2)]) {
      const [states, off] = [new Map<string, OffloadState>(), new Set<string>()];
      // One more starts every fifth round. TCP passes only if both ends are off.
      for (let time = 0; time < 80; time += 1) {
        const started = order.slice(0, 1 + Math.floor(time / 5));
        for (const own of started) {
          const round = choosePeers(own, order).map((node) => {
            if (!started.includes(node)) return unknown(node);
            return off.has(own) && off.has(node) ? path(node) : broken(node);
          });
          const { wanted, ...state } = decideOffload(states.get(own) ?? START, {
            ...{ setting: "Auto", needsOwnChecksums: false, round },
          });
          states.set(own, state);
          if (wanted === "off") off.add(own);
          if (wanted === "on") off.delete(own);
        }
      }
      expect([...off].toSorted()).toEqual(order.toSorted());
    }
  });

  test("does what the setting says, whatever the probes say, and starts again after it", () => {
    expect(play([[path("b")]], { setting: "Off" }).wanted).toEqual(["off"]);
    const { state: off } = play([[path("b")]], { setting: "Off" });
    expect(play([[path("b")]], { from: off }).wanted).toEqual(["on"]);
    const { state: found } = play(Array(3).fill([broken("b")]));
    expect(play([[broken("b")]], { setting: "On", from: found })).toEqual({ wanted: ["on"], state: START });
  });

  test("keeps it off on a kernel that is known to be wrong", () => {
    expect(play([[path("b")]], { needsOwnChecksums: true }).wanted).toEqual(["off"]);
    expect(play([[path("b")]], { needsOwnChecksums: true, setting: "On" }).wanted).toEqual(["on"]);
  });
});

describe("isSuspicious()", () => {
  test("is true while TCP is lost to a single node, so that what lasts is told", () => {
    expect(
      [broken("b"), crawling("b"), path("b"), unknown("b")].map((each) => isSuspicious(START, [each, path("c")])),
    ).toEqual([true, true, false, false]);
  });
});

describe("describePaths()", () => {
  const told = (round: readonly PathResult[], isLasting = true) => describePaths(DEVICE, START, { round, isLasting });
  const there = (node: string) => ({ ...gone(node), isThere: true });

  test("names the port if nothing passes to nodes that are there, only if it lasts and there is no other way", () => {
    expect(told([there("b"), there("c"), gone("d")])).toEqual([
      expect.stringMatching(
        /^Nothing passes vxlan\.x to nodes "b", "c", .* drops UDP port 4789.* set another vxlanPort/,
      ),
    ]);
    expect([told([there("b"), there("c")], false), told([there("b"), there("c"), path("d")]), told([])]).toEqual([
      ...[[], [], []],
    ]);
  });

  test.each([
    ["a single node", [there("b")]],
    ["nodes that may be switched off", [gone("b"), gone("c")]],
    ["nodes of which one may be starting", [gone("b"), there("c")]],
  ] as const)("does not blame the network for %s", (_, round) => {
    expect(told(round)).toEqual([expect.stringMatching(/^No answer by vxlan\.x from .*may drop UDP port 4789/)]);
  });

  test("names the MTU that works, and the one to set below, with which the device has it", () => {
    expect(told([path("b", { large: "lost", tcp: "unknown", workingMtu: 1400 })])).toEqual([
      expect.stringMatching(/^Packets of more than 1400 bytes are lost in vxlan\.x to node "b".* interfaces to 1450 /),
    ]);
  });

  test("says of a single node that TCP does not pass to it", () => {
    expect(told([broken("b"), path("c")])).toEqual([
      expect.stringMatching(/^TCP does not pass vxlan\.x to node "b", .* passes to node "c": .*cards of the former$/),
    ]);
  });

  test.each([
    ["offload is on by the setting", [broken("b"), crawling("c")]],
    ["nobody knows whether it passes to the others", [broken("b"), unknown("c")]],
  ] as const)("does not say that TCP passes to other nodes if %s", (_, round) => {
    const [said, ...more] = told(round);
    expect(said).toMatch(/^TCP does not pass vxlan\.x to .* Set vxlanChecksumOffload to Auto or Off/);
    expect([said?.includes("passes to"), more]).toEqual([false, []]);
  });
});
