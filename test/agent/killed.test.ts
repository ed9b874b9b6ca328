/**
 * The agent is killed before and after every change that ADD and DEL make, with
 * the caller waiting: its process does the whole call again, the result is
 * correct, and nothing is left in the end. The agent itself prints the points that
 * it passes; `make test` tries some of them, `make soak` all.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { STORES } from "../plugin/stores.ts";
import { buildWithCrashPoints, type CrashBuild } from "../support/crash-build.ts";
import { hostProblem } from "../support/host.ts";
import { type CallOptions, type Json, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Agent, SERVER_ALONE, startAgent } from "./agent.ts";

const VARIABLE = `${identity.environmentPrefix}FAULT`;
const HOST_LOCAL = { type: "host-local", ranges: [[{ subnet: "10.88.0.0/24" }], [{ subnet: "fd88::/112" }]] };
/** One of this many points is tried: an odd number, so that points before and after a change alternate. */
const STEP = {
  add: proofSize({ everyDay: 5, soak: 1 }),
  del: proofSize({ everyDay: 3, soak: 1 }),
};
const KILLED = 137;
const LIMIT = 300_000;
const IPAMS: readonly { readonly title: string; readonly more: Json }[] = [
  { title: "our own IPAM", more: {} },
  { title: "host-local", more: { ipam: HOST_LOCAL } },
];

let build: CrashBuild;
beforeAll(() => {
  if (hostProblem() === undefined) build = buildWithCrashPoints();
});
afterAll(() => build?.remove());

for (const { kind, test } of STORES) {
  describe(`the node agent killed on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const optionsWith = (more: Json): CallOptions => ({
      program: build.program,
      config: site.config({ ...more, log_level: "ERROR" }),
      environment: { CNI_PATH: build.directory },
    });
    const startFaulty = (fault: string) =>
      startAgent(site.host, {
        program: join(build.directory, identity.nodeAgent),
        // Without the agent, so that no other call server replaces it.
        args: SERVER_ALONE,
        environment: { [VARIABLE]: fault },
      });
    /** The points that an agent passes in this call. */
    const pointsOf = async (call: () => Promise<unknown>) => {
      const agent = await startFaulty("list");
      await call();
      expect(await agent.hasServed(1)).toHaveLength(1);
      await agent.signal("KILL");
      await agent.ended;
      return [...agent.log().matchAll(/^crash point \d+ (.*)$/gm)].map(([, point = ""]) => point);
    };
    const addAlone = async (options: CallOptions): Promise<Pod> => {
      const pod = await site.makePod();
      await site.add(pod, options);
      return pod;
    };
    /** As on a host that has been used before: everything that is created once exists. */
    const pointsOfAdd = async (options: CallOptions) => {
      await site.quietly("DEL", await addAlone(options), options);
      const sample = await site.makePod();
      const points = await pointsOf(() => site.add(sample, options));
      await site.quietly("DEL", sample, options);
      expect(points.length).toBeGreaterThanOrEqual(16);
      return points;
    };
    const expectKilled = async (agent: Agent, point: string) =>
      expect([point, await agent.ended, agent.served()]).toEqual([point, KILLED, []]);
    const expectNothingLeft = async (point: string) =>
      expect({ point, left: await site.left() }).toEqual({ point, left: [] });

    for (const { title, more } of IPAMS) {
      test(
        `ADD with ${title}: the caller succeeds, CHECK succeeds, DEL leaves nothing`,
        async () => {
          const options = optionsWith(more);
          for (const { number, point } of every(STEP.add, await pointsOfAdd(options))) {
            const agent = await startFaulty(number);
            const pod = await site.makePod();
            const prevResult = await site.add(pod, options);
            await expectKilled(agent, point);
            await site.quietly("CHECK", pod, { ...options, config: { ...options.config, prevResult } });
            await site.quietly("DEL", pod, options);
            await expectNothingLeft(point);
          }
        },
        LIMIT,
      );

      test(
        `DEL with ${title}: the caller finishes it, and nothing is left`,
        async () => {
          const options = optionsWith(more);
          const sample = await addAlone(options);
          const points = await pointsOf(() => site.quietly("DEL", sample, options));
          expect(points.length).toBeGreaterThanOrEqual(4);

          for (const { number, point } of every(STEP.del, points)) {
            const pod = await addAlone(options);
            const agent = await startFaulty(number);
            await site.quietly("DEL", pod, options);
            await expectKilled(agent, point);
            await expectNothingLeft(point);
          }
        },
        LIMIT,
      );
    }

    test("ADD that is frozen after its last change, while its caller is killed and DEL runs, undoes itself", async () => {
      const options = optionsWith({});
      const points = await pointsOfAdd(options);
      const agent = await startFaulty(`freeze ${points.length}`);
      const pod = await site.makePod();
      const pidFile = `${site.host.directory}/caller.pid`;
      const notesPid = ["sh", "-c", `echo $$ > ${pidFile}; exec "$@"`, "sh"];
      const calling = site.call("ADD", pod, { ...options, under: notesPid });
      await pollUntil(() => agent.isFrozen(), "the agent to freeze");
      await site.host.must(["sh", "-c", `kill -KILL "$(cat ${pidFile})"`]);
      await calling;
      await site.quietly("DEL", pod, options);
      await agent.signal("CONT");
      await pollUntil(() => agent.served().length === 1, "the agent to go on");

      expect(agent.served()).toEqual(["plugin ADD: exit code 1"]);
      await expectNothingLeft(points.at(-1) ?? "");
      await agent.signal("KILL");
      await agent.ended;
    });
  });
}

function every(
  step: number,
  points: readonly string[],
): readonly { readonly number: string; readonly point: string }[] {
  return points.map((point, index) => ({ number: String(index + 1), point })).filter((_, index) => index % step === 0);
}
