/**
 * The process is killed before and after every change that ADD and DEL make;
 * then DEL, GC, or a second ADD and DEL must leave nothing. The executable itself
 * prints the points that it passes. The datastore commits all changes of a call at
 * once, and in other rows one object at a time: there no record may be corrupt even
 * before the recovery.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { parseKey } from "../../src/model/keys.ts";
import { problemsOf } from "../support/compare-addresses.ts";
import { buildWithCrashPoints, type CrashBuild } from "../support/crash-build.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import {
  type CallOptions,
  type Command,
  failureOf,
  type Json,
  openPluginSite,
  type PluginSite,
  type Pod,
} from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import type { AnyStoreKind } from "../support/test-store.ts";

const VARIABLE = `${identity.environmentPrefix}FAULT`;
const HOST_LOCAL = { type: "host-local", ranges: [[{ subnet: "10.88.0.0/24" }], [{ subnet: "fd88::/112" }]] };
const UPSTREAM = "/usr/lib/cni";

interface Place {
  readonly title: string;
  readonly kind: AnyStoreKind;
  readonly more: Json;
  readonly missing: string | undefined;
  /** Instead of the executable's own directory. */
  readonly path?: string;
  /** A point that must be among those of ADD. */
  readonly passes: RegExp;
  /** The datastore commits one object at a time. */
  readonly oneByOne?: true;
  /** Each ADD is the first one of its node: there is no block, claim or profile. */
  readonly first?: true;
  /** All that `make test` tries here: these points of ADD. The others are those of another place. */
  readonly everyDay?: RegExp;
  readonly recoveries: readonly Recovery[];
}

/** What the runtime may do after a plugin was killed. */
const RECOVERIES = {
  DEL: async (site: PluginSite, pod: Pod, options: CallOptions) => site.quietly("DEL", pod, options),
  GC: async (site: PluginSite, pod: Pod, options: CallOptions) =>
    site.quietly("GC", pod, { ...options, config: { ...options.config, "cni.dev/valid-attachments": [] } }),
  "a second ADD and DEL": async (site: PluginSite, pod: Pod, options: CallOptions) => {
    const result = await site.add(pod, options);
    await site.quietly("CHECK", pod, { ...options, config: { ...options.config, prevResult: result } });
    await site.quietly("DEL", pod, options);
  },
  /** Upstream's host-local refuses a container that has an address. */
  "an ADD that may be refused, and DEL": async (site: PluginSite, pod: Pod, options: CallOptions) => {
    await site.call("ADD", pod, options);
    await site.quietly("DEL", pod, options);
  },
};
type Recovery = keyof typeof RECOVERIES;

const NAMES = ["DEL", "GC", "a second ADD and DEL"] as const satisfies readonly Recovery[];

const PLACES: readonly Place[] = [
  {
    title: "embedded",
    kind: "embedded",
    more: {},
    missing: undefined,
    passes: /^after datastore commit$/,
    recoveries: NAMES,
  },
  {
    title: "embedded, one object at a time",
    kind: "embedded",
    more: {},
    missing: undefined,
    passes: /^after datastore commit: create .*\/workloadendpoints\//,
    recoveries: NAMES,
    oneByOne: true,
    everyDay: /datastore commit/,
  },
  {
    title: "embedded, one object at a time, by the first attachment of a node",
    kind: "embedded",
    more: {},
    missing: undefined,
    passes: /^after datastore commit: create .*\/ipv6\/block\//,
    recoveries: NAMES,
    oneByOne: true,
    first: true,
  },
  {
    title: "etcd",
    kind: "etcd",
    more: {},
    missing: hasEtcd ? undefined : "needs the program etcd",
    passes: /^after datastore commit$/,
    recoveries: NAMES,
  },
  {
    title: "etcd, one object at a time",
    kind: "etcd",
    more: {},
    missing: hasEtcd ? undefined : "needs the program etcd",
    passes: /^after datastore commit: create .*\/workloadendpoints\//,
    recoveries: NAMES,
    oneByOne: true,
    everyDay: /datastore commit/,
  },
  {
    title: "the orchestrator's API",
    kind: "kubernetes",
    more: {},
    missing: apiServerProblem(),
    passes: /^after datastore commit: create .*\/workloadendpoints\//,
    recoveries: NAMES,
    oneByOne: true,
    everyDay: /datastore commit/,
  },
  {
    title: "the orchestrator's API, by the first attachment of a node",
    kind: "kubernetes",
    more: {},
    missing: apiServerProblem(),
    passes: /^after datastore commit: create .*\/ipv6\/block\//,
    recoveries: NAMES,
    oneByOne: true,
    first: true,
    everyDay: /datastore commit: create .*\/block\//,
  },
  {
    title: "our own host-local and embedded",
    kind: "embedded",
    more: { ipam: HOST_LOCAL },
    missing: undefined,
    passes: /^before fill ".*\/fd88::[0-9a-f]+"$/,
    recoveries: NAMES,
  },
  {
    title: "upstream's host-local and embedded",
    kind: "embedded",
    more: { ipam: HOST_LOCAL, cniVersion: "1.0.0" },
    missing: existsSync(`${UPSTREAM}/host-local`) ? undefined : `needs ${UPSTREAM}/host-local`,
    path: UPSTREAM,
    passes: /^after IPAM plugin ADD$/,
    // Debian's predates GC.
    recoveries: ["DEL", "an ADD that may be refused, and DEL"],
  },
];

/** SIGTERM is tried at one of this many points: an odd number, so that points before and after a change alternate. */
const STOP_STEP = proofSize({ everyDay: 3, soak: 1 });

/** In `make test` each point is followed by one of them in turn, in `make soak` by all. */
function recoveriesAt(point: number, all: readonly Recovery[]): readonly Recovery[] {
  return proofSize<readonly Recovery[]>({
    everyDay: all.filter((_, index) => index === point % all.length),
    soak: all,
  });
}

setDefaultTimeout(proofSize({ everyDay: 120_000, soak: 600_000 }));

let build: CrashBuild;
beforeAll(() => {
  if (hostProblem() === undefined) build = buildWithCrashPoints();
});
afterAll(() => build?.remove());

for (const { title, kind, more, missing, path, passes, recoveries, oneByOne, first, everyDay } of PLACES) {
  describe(`killed on ${title}`, () => {
    const test = testNeeding(hostProblem(), missing);
    const tried = proofSize({ everyDay, soak: undefined });
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined && missing === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const options = (fault?: string): CallOptions => ({
      program: build.program,
      config: site.config({ ...more, log_level: "ERROR" }),
      environment: {
        CNI_PATH: path ?? build.directory,
        ...(oneByOne && { [`${VARIABLE}_ATOMICITY`]: "one object" }),
        ...(fault === undefined ? {} : { [VARIABLE]: fault }),
      },
    });
    const prepare = async () => {
      if (first) await forgetBlocks(site);
    };
    /** If objects are committed one by one, a kill may leave unfinished records; else it leaves nothing or everything. */
    const expectUncorrupted = async (point: string) => {
      const found = (await problemsOf(site)).filter(({ severity }) => !oneByOne || severity === "corrupt");
      expect({ point, found }).toEqual({ point, found: [] });
    };
    /** As on a host that has been used before: everything that is created once exists. */
    const serveOne = async () => {
      const pod = await site.makePod();
      await site.add(pod, options());
      await site.quietly("DEL", pod, options());
    };
    const pointsOf = async (command: Command, pod: Pod) => {
      const { code, stderr } = await site.call(command, pod, options("list"));
      expect(code).toBe(0);
      return [...stderr.matchAll(/^crash point \d+ (.*)$/gm)].map(([, point = ""]) => point);
    };

    test("ADD loses nothing", async () => {
      await serveOne();
      await prepare();
      const sample = await site.makePod();
      const points = await pointsOf("ADD", sample);
      await site.quietly("DEL", sample, options());
      expect(points.length).toBeGreaterThanOrEqual(16);
      expect(points.filter((point) => passes.test(point))).not.toEqual([]);

      for (const [index, point] of points.entries()) {
        if (tried?.test(point) === false) continue;
        for (const recovery of recoveriesAt(index, recoveries)) {
          await prepare();
          const pod = await site.makePod();
          const killed = await site.call("ADD", pod, options(String(index + 1)));
          expect([point, killed.code, killed.stdout]).toEqual([point, KILLED, ""]);
          await expectUncorrupted(point);
          await RECOVERIES[recovery](site, pod, options());
          expect({ point, recovery, left: await site.left() }).toEqual({ point, recovery, left: [] });
        }
      }
    });

    if (tried !== undefined) return;

    test("ADD that is stopped by SIGTERM has undone everything, or is complete", async () => {
      await serveOne();
      await prepare();
      const sample = await site.makePod();
      const points = await pointsOf("ADD", sample);
      await site.quietly("DEL", sample, options());

      const codes: number[] = [];
      for (const [index, point] of points.entries()) {
        if (index % STOP_STEP !== 0) continue;
        await prepare();
        const pod = await site.makePod();
        const stopped = await site.call("ADD", pod, options(`stop ${index + 1}`));
        codes.push(stopped.code);
        if (stopped.code === 0) {
          const config = { ...options().config, prevResult: JSON.parse(stopped.stdout) };
          await site.quietly("CHECK", pod, { ...options(), config });
          await site.quietly("DEL", pod, options());
        } else expect([point, JSON.parse(stopped.stdout).code]).toEqual([point, INTERRUPTED]);
        expect({ point, left: await site.left() }).toEqual({ point, left: [] });
      }
      // Without a server there is nothing to wait for: the signal is handled after the work is done.
      if (kind !== "embedded") expect(codes).toContain(1);
    });

    test("DEL loses nothing", async () => {
      const sample = await site.makePod();
      await site.add(sample, options());
      const points = await pointsOf("DEL", sample);
      expect(points.length).toBeGreaterThanOrEqual(4);

      for (const [index, point] of points.entries()) {
        for (const recovery of recoveriesAt(index, recoveries)) {
          const pod = await site.makePod();
          await site.add(pod, options());
          const killed = await site.call("DEL", pod, options(String(index + 1)));
          expect([point, killed.code]).toEqual([point, KILLED]);
          await expectUncorrupted(point);
          await RECOVERIES[recovery](site, pod, options());
          expect({ point, recovery, left: await site.left() }).toEqual({ point, recovery, left: [] });
        }
      }
    });
  });
}

describe("frozen before it creates its links", () => {
  const test = testNeeding(hostProblem());
  const POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0";

  test("ADD of an earlier sandbox of a pod leaves the link of the next one alone, and so does its DEL", async () => {
    await using site = await openPluginSite("embedded");
    const options: CallOptions = { program: build.program, environment: { CNI_PATH: build.directory } };
    const sample = await site.makePod({ args: POD });
    const { stderr } = await site.call("ADD", sample, withFault(options, "list"));
    const [, point = ""] = /^crash point (\d+) before create links$/m.exec(stderr) ?? [];
    await site.quietly("DEL", sample, options);
    const [earlier, next] = [await site.makePod({ args: POD }), await site.makePod({ args: POD })];
    const pidFile = `${site.host.directory}/earlier.pid`;
    const under = ["sh", "-c", `echo $$ > ${pidFile}; exec "$@"`, "sh"];
    const frozen = site.call("ADD", earlier, { ...withFault(options, `freeze ${point}`), under });
    const isFrozen = `grep -q "^State:.T" /proc/$(cat ${pidFile})/status`;
    await pollUntil(async () => (await site.host.run(["sh", "-c", isFrozen])).code === 0, "ADD to be frozen");
    const prevResult = await site.add(next, options);
    await site.host.must(["sh", "-c", `kill -CONT "$(cat ${pidFile})"`]);

    expect(failureOf(await frozen).msg).toContain("EEXIST");
    await site.quietly("DEL", earlier, options);
    await site.quietly("CHECK", next, { ...options, config: site.config({ prevResult }) });
    await site.quietly("DEL", next, options);
    expect(await site.left()).toEqual([]);
  });
});

function withFault(options: CallOptions, fault: string): CallOptions {
  return { ...options, environment: { ...options.environment, [VARIABLE]: fault } };
}

/** As on a new node: removes its blocks, its claims and the profile of its network, which the API does not have. */
async function forgetBlocks({ store }: PluginSite): Promise<void> {
  for (const key of (await store.list()).keys()) {
    const parts = parseKey(key);
    const isProfile = parts?.kind === "resource" && parts.plural === "profiles" && store.kind !== "kubernetes";
    if (parts?.kind === "block" || parts?.kind === "affinity" || isProfile) await store.remove(key);
  }
}

const INTERRUPTED = 111;

/** 128 + SIGKILL, as returned by `timeout`. */
const KILLED = 137;

testNeeding(hostProblem())("what ships has no crash points", async () => {
  const holdsTrace = (program: string) => readFileSync(program, "latin1").includes("crash point");
  expect([holdsTrace(build.program), holdsTrace(builtProgram())]).toEqual([true, false]);

  await using site = await openPluginSite("embedded");
  const pod = await site.makePod();
  await site.add(pod, { environment: { [VARIABLE]: "1" } });
});
