import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type FakeAgent, firstUpdate, startFakeAgent, WELCOME } from "../../../test/support/fake-agent.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { RequestJudge } from "../judge/request-judge.ts";
import { AgentLink } from "./agent-link.ts";
import { SidecarLog } from "./sidecar-log.ts";

let path = "";
let directory = "";
let judge: RequestJudge;
let link: AgentLink;
let stop: AbortController;
let running: Promise<void>;
let agent: FakeAgent | undefined;
const lines: string[] = [];
const waits: number[] = [];

beforeEach(() => {
  directory = mkdtempSync("/tmp/agent-link-");
  path = join(directory, "agent.sock");
  judge = new RequestJudge("cluster.local");
  stop = new AbortController();
  lines.length = 0;
  waits.length = 0;
  const elapsed = () => performance.now();
  const log = new SidecarLog(
    "INFO",
    (level, message, { reason }) => lines.push(`${level} ${message} ${reason}`),
    elapsed,
  );
  const wait = (milliseconds: number, signal: AbortSignal) => {
    waits.push(milliseconds);
    return SYSTEM_CLOCK.wait(milliseconds / 10, signal);
  };
  link = new AgentLink({ path, version: "v9.9.9", judge, log, elapsed, wait });
  running = link.run(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await running;
  agent?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const start = (...first: Parameters<typeof startFakeAgent>[1]) => {
  agent = startFakeAgent(path, first);
  return agent;
};

describe("AgentLink", () => {
  test("says hello, applies updates and acknowledges each", async () => {
    const fake = start(WELCOME, firstUpdate());
    await fake.applied(1);
    fake.send({ type: "update", revision: 2, addresses: ["127.0.0.1", "::1"] });
    await fake.applied(2);

    expect(fake.received.map((line) => JSON.parse(line))).toEqual([
      { type: "hello", protocol: 1, version: "v9.9.9" },
      { type: "applied", revision: 1 },
      { type: "applied", revision: 2 },
    ]);
    expect([judge.revision, link.updates, link.disconnectedSince]).toEqual([2, 2, undefined]);
  });

  test("reads an update of megabytes that arrives in pieces", async () => {
    const members = Array.from({ length: 65_536 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
    const fake = start(WELCOME, firstUpdate({ sets: { large: { members } } }));

    await fake.applied(1);
  });

  test("keeps its state while the agent is away, says so once, and begins again with the next one", async () => {
    void start(WELCOME, firstUpdate()).applied(1);
    await pollUntil(() => judge.revision === 1, "the first state");
    agent?.stop();
    await pollUntil(() => link.disconnectedSince !== undefined && waits.length >= 3, "attempts to connect");
    expect(judge.revision).toBe(1);
    await start(WELCOME, firstUpdate()).applied(1);
    await pollUntil(() => link.disconnectedSince === undefined, "the next agent");

    expect(waits.every((milliseconds) => milliseconds === 100)).toBe(true);
    const lost = lines.filter((line) => line.includes("decisions continue with the policies that it sent last"));
    expect(lost).toHaveLength(1);
    expect(lines.filter((line) => line.startsWith("INFO Synchronised"))).toHaveLength(2);
  });

  test("says what is missing if there is no socket", async () => {
    await pollUntil(() => waits.length >= 2, "attempts to connect");

    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(" there is no such socket: is the volume ");
  });

  test("says once why the agent refuses it, and tries again slowly", async () => {
    start({ type: "refused", message: "upgrade the node agents first" });
    await pollUntil(() => waits.filter((milliseconds) => milliseconds === 5_000).length >= 2, "slow attempts");

    expect(lines.filter((line) => line.endsWith("upgrade the node agents first"))).toHaveLength(1);
    expect([judge.revision, link.disconnectedSince !== undefined]).toEqual([0, true]);
  });

  const UNUSABLE: readonly (readonly [string, Parameters<typeof startFakeAgent>[1], string])[] = [
    ["refuses it", [{ type: "refused", message: "upgrade the node agents first" }], "upgrade the node agents first"],
    ["speaks another protocol", [JSON.stringify({ ...WELCOME, protocol: 2 })], "the log has the details"],
    ["sends a malformed state", [WELCOME, "no JSON"], "the log has the details"],
  ];
  test.each(UNUSABLE)(
    "drops its state if the next agent %s, and takes that of the one after it",
    async (_, first, why) => {
      await start(WELCOME, firstUpdate()).applied(1);
      agent?.stop();
      start(...first);
      await pollUntil(() => waits.includes(5_000), "the end of the conversation");

      expect([judge.revision, link.droppedBecause]).toEqual([0, expect.stringContaining(why)]);
      expect(lines.at(-1)).toContain("all requests are denied");
      agent?.stop();
      await start(WELCOME, firstUpdate()).applied(1);
      await pollUntil(() => link.disconnectedSince === undefined, "the next agent");
      expect([judge.revision, link.droppedBecause]).toEqual([1, undefined]);
    },
  );

  test("drops its state after an update that it cannot use, although the agent is connected", async () => {
    const fake = start(WELCOME, firstUpdate());
    await fake.applied(1);
    await pollUntil(() => judge.revision === 1, "the first state");
    fake.send({ type: "update", revision: 7 });
    await pollUntil(() => judge.revision === 0, "no state");

    expect(link.droppedBecause).toContain("the log has the details");
    expect(lines.at(-1)).toContain("7 does not follow 1");
  });

  test("tries again soon if the agent closes connections at once", async () => {
    const listener = Bun.listen({ unix: path, socket: { open: (socket) => void socket.terminate(), data() {} } });
    await pollUntil(() => waits.length >= 5, "attempts to connect");
    listener.stop(true);

    expect(waits.every((milliseconds) => milliseconds === 100)).toBe(true);
    expect(lines.length).toBeLessThanOrEqual(2);
  });

  test.each([
    ["malformed text", [WELCOME, "no JSON"], "is not JSON"],
    ["an unknown criterion", [WELCOME, JSON.stringify({ ...firstUpdate(), unknown: 1 })], "unknown"],
    ["an update before the welcome", [firstUpdate()], "before its welcome"],
    ["another protocol", [{ ...WELCOME, protocol: 2 }], "version 2 of the protocol"],
    ["a revision that does not follow", [WELCOME, { ...firstUpdate(), revision: 7 }], "7 does not follow 0"],
  ] as const)("ends a conversation with %s, and applies nothing", async (_, first, reason) => {
    start(...first);
    await pollUntil(() => waits.includes(5_000), "the end of the conversation");

    expect(lines.at(-1)).toContain(reason);
    expect(judge.revision).toBe(0);
  });
});
