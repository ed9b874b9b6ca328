import { describe, expect, test } from "bun:test";
import { bgpPlan, bgpSession, prefixes } from "../../../test/support/bgp-plan.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { readBirdState } from "../../routing/bird/state.ts";
import { NO_PROGRAM } from "./bird-daemon.ts";
import { BirdKeeper, type WantedBgp } from "./bird-keeper.ts";
import type { BirdProgram } from "./bird-program.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const settings = { logFile: "/bird.log", ownInterfaces: [], agentProtocol: 86 };

/** BIRD in memory: what happens to it is in `events`. */
class ImitatedBird implements BirdProgram {
  readonly events: string[] = [];
  isThere = true;
  isKilled = false;
  refusal: string | undefined;
  file: string | undefined;
  state = "";
  protocols: readonly string[] = [];
  running: PromiseWithResolvers<void> | undefined;

  isInstalled = () => this.isThere;
  wasKilled = () => this.isKilled;
  configuration = () => this.file;
  async install(text: string): Promise<string | undefined> {
    this.events.push("check");
    if (this.refusal === undefined) this.file = text;
    return this.refusal;
  }
  async start(how: string): Promise<void> {
    this.events.push(`start ${how}`);
    this.running = Promise.withResolvers();
  }
  async connect() {
    const { running } = this;
    if (running === undefined) throw new Error("ECONNREFUSED");
    return {
      ask: async (command: string) => {
        this.events.push(command);
        if (command === "down") this.end();
        return { code: 0, lines: command === "show protocols" ? this.protocols : [] };
      },
      closed: running.promise,
      close() {},
    };
  }
  writeState(text: string): void {
    this.state = text;
  }
  end(): void {
    this.running?.resolve();
    this.running = undefined;
  }
  kill(): void {
    this.isKilled = true;
    this.end();
  }
}

interface Running extends AsyncDisposable {
  readonly keeper: BirdKeeper;
  readonly reports: string[];
}

function keep(program: BirdProgram, wanted: WantedBgp): Running {
  const reports: string[] = [];
  const stop = new AbortController();
  const keeper = new BirdKeeper({
    ...{ program, settings, elapsed: () => performance.now(), now: () => NOW, wait: SYSTEM_CLOCK.wait },
    report: (message) => reports.push(message),
  });
  keeper.update(() => wanted);
  const running = keeper.run(stop.signal);
  return {
    keeper,
    reports,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

const announcing = (...announced: readonly string[]): WantedBgp => ({
  plan: bgpPlan("10.0.0.1", { announced: prefixes(...announced), sessions: [bgpSession("10.0.0.2")] }),
});

describe("BirdKeeper", () => {
  test("checks the configuration before it starts BIRD, and configures a running one", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing("10.1.0.0/26"));
    await pollUntil(() => bird.running !== undefined, "BIRD");
    running.keeper.update(() => announcing("10.1.0.0/26", "10.1.1.0/26"));
    await pollUntil(() => bird.events.includes("configure"), "the new configuration");

    expect(bird.events).toEqual(["check", "start fresh", "check", "configure"]);
    expect(bird.file).toContain("route 10.1.1.0/26 blackhole;");
    expect(readBirdState(bird.state)).toEqual({ kind: "running", families: [4], problems: [] });
  });

  test("does nothing if the configuration stays the same", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing("10.1.0.0/26"));
    await pollUntil(() => bird.state !== "", "BIRD");
    running.keeper.update(() => announcing("10.1.0.0/26"));
    await Bun.sleep(150);

    expect(bird.events).toEqual(["check", "start fresh"]);
  });

  test("applies many changes at once as one", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing());
    await pollUntil(() => bird.state !== "", "BIRD");
    for (let third = 0; third < 100; third++) running.keeper.update(() => announcing(`10.1.${third}.0/26`));
    await pollUntil(() => bird.file?.includes("10.1.99.0/26") === true, "the last change");

    expect(bird.events.filter((event) => event === "configure").length).toBeLessThanOrEqual(1);
  });

  test("adopts a BIRD that runs already", async () => {
    const bird = new ImitatedBird();
    bird.running = Promise.withResolvers();
    await using _ = keep(bird, announcing());
    await pollUntil(() => bird.state !== "", "the state");

    expect(bird.events).toEqual(["check", "configure"]);
  });

  test("starts a killed BIRD at once, to recover", async () => {
    const bird = new ImitatedBird();
    await using _ = keep(bird, announcing());
    await pollUntil(() => bird.running !== undefined, "BIRD");
    bird.kill();
    await pollUntil(() => bird.running !== undefined, "BIRD again");

    expect(bird.events).toEqual(["check", "start fresh", "check", "start recovering"]);
  });

  test("keeps the old configuration if BIRD refuses the new one, and says why", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing("10.1.0.0/26"));
    await pollUntil(() => bird.running !== undefined, "BIRD");
    bird.refusal = "bird.conf.new:7:1 syntax error";
    running.keeper.update(() => announcing("10.2.0.0/26"));
    await pollUntil(() => readBirdState(bird.state)?.kind === "failed", "the failure");

    expect(bird.file).toContain("10.1.0.0/26");
    expect(bird.events).not.toContain("configure");
    expect(readBirdState(bird.state)?.reason).toContain("syntax error");
    expect(running.reports.join()).toContain("syntax error");
  });

  test("says how to get the program if it is not installed", async () => {
    const bird = new ImitatedBird();
    bird.isThere = false;
    await using running = keep(bird, announcing());
    await pollUntil(() => bird.state !== "", "the state");

    expect(bird.events).toEqual([]);
    expect(readBirdState(bird.state)).toEqual({ kind: "failed", reason: NO_PROGRAM, problems: [] });
    expect(running.reports).toEqual([expect.stringContaining('install the package "bird2"')]);
  });

  test("ends the sessions, then BIRD, if BGP is not needed any more", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing("10.1.0.0/26"));
    await pollUntil(() => bird.running !== undefined, "BIRD");
    running.keeper.update(() => ({ reason: "no BGP peer is configured", problems: [] }));
    await pollUntil(() => readBirdState(bird.state)?.kind === "not needed", "the end");

    expect(bird.events.slice(2)).toEqual(["check", "configure", "show protocols", "down"]);
    expect(bird.file).not.toContain("protocol bgp");
    expect(readBirdState(bird.state)?.reason).toBe("no BGP peer is configured");
  });

  test("never starts BIRD on a node without BGP", async () => {
    const bird = new ImitatedBird();
    await using _ = keep(bird, { reason: "no other node has an address", problems: [] });
    await pollUntil(() => bird.state !== "", "the state");

    expect(bird.events).toEqual([]);
  });

  test("removes the routes of a killed BIRD if BGP is not needed any more", async () => {
    const bird = new ImitatedBird();
    bird.isKilled = true;
    await using _ = keep(bird, { reason: "BGP is disabled", problems: [] });
    await pollUntil(() => bird.state !== "", "the state");

    expect(bird.events).toEqual(["check", "start fresh", "configure", "show protocols", "down"]);
  });

  test("reports a session that cannot be held, once", async () => {
    const bird = new ImitatedBird();
    const plan = bgpPlan("10.0.0.1", {
      sessions: [bgpSession("10.0.0.2", { password: 'a"' })],
      problems: ["a peer has no address"],
    });
    await using running = keep(bird, { plan });
    await pollUntil(() => bird.state !== "", "BIRD");
    running.keeper.update(() => ({ plan: { ...plan, announced: prefixes("10.1.0.0/26") } }));
    await pollUntil(() => bird.events.includes("configure"), "the change");

    expect(running.reports.filter((message) => !message.startsWith("BIRD has"))).toEqual([
      "a peer has no address",
      expect.stringContaining("password"),
    ]);
  });

  test("knows which sessions are established, and that BIRD does not work", async () => {
    const bird = new ImitatedBird();
    await using running = keep(bird, announcing());
    expect(await running.keeper.known()).toBeUndefined();
    await pollUntil(() => bird.state !== "", "BIRD");
    bird.protocols = ["Mesh_10_0_0_2 BGP --- start 2026-01-02 03:00:00  Active  Socket: Connection refused"];
    expect(await running.keeper.known()).toMatchObject({
      sessions: { wanted: 1, established: 0 },
      down: [{ address: "10.0.0.2", state: "Active", lastError: "Socket: Connection refused" }],
      problems: [],
    });
    bird.protocols = ["Mesh_10_0_0_2 BGP --- up 2026-01-02 03:00:00  Established"];
    expect(await running.keeper.known()).toEqual({ sessions: { wanted: 1, established: 1 }, down: [], problems: [] });

    running.keeper.update(() => ({ reason: "no peer", problems: ["router: no password"] }));
    bird.protocols = [];
    await pollUntil(() => bird.running === undefined, "the end of BIRD");
    await pollUntil(async () => (await running.keeper.known())?.problems.length === 1, "no BGP");
    const problem = { state: "warning", message: "BGP: router: no password" } as const;
    expect(await running.keeper.known()).toEqual({ down: [], problems: [problem] });
  });

  test("says that BGP does not work without the program", async () => {
    const bird = new ImitatedBird();
    bird.isThere = false;
    await using running = keep(bird, announcing());
    await pollUntil(() => bird.state !== "", "the failure");

    expect(await running.keeper.known()).toMatchObject({
      sessions: { wanted: 1, established: 0 },
      problems: [{ state: "failed", message: `BGP does not work: ${NO_PROGRAM}` }],
    });
  });
});
