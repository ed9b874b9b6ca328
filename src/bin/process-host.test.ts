import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { means } from "../../test/support/ipam.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { agentHost } from "../agent/calls/agent-host.ts";
import type { IpamHost } from "../ipam/ipam-host.ts";
import type { Host } from "../plugin/host.ts";
import { processHost } from "./process-host.ts";

const folder = temporaryDirectory("agent-host");
afterAll(() => folder.remove());

let files = 0;
function newPath(): string {
  files += 1;
  return join(folder.path, String(files));
}

/** How many descriptors of this process have the file open. */
function timesOpen(path: string): number {
  return readdirSync("/proc/self/fd").filter((descriptor) => targetOf(descriptor) === path).length;
}

/** "" if the descriptor was closed meanwhile. */
function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return "";
  }
}

/** How many descriptors have the file open after each host in turn has opened it. */
async function opensBy(hosts: readonly Host[]): Promise<readonly number[]> {
  const path = newPath();
  const stores = [];
  const opens: number[] = [];
  for (const host of hosts) {
    stores.push(await (await host.ipam()).openDatastore({ kind: "embedded", path }));
    opens.push(timesOpen(path));
  }
  for (const store of stores) await store.close();
  return opens;
}

/** The turns that start before the first has ended, in a directory where no lock file can be made. */
async function turnsBeside(first: IpamHost, others: Readonly<Record<string, IpamHost>>): Promise<readonly string[]> {
  const path = "/proc/nowhere/lock";
  const never = { ...means(), wait: () => new Promise<never>(() => {}) };
  const begun: string[] = [];
  const over = Promise.withResolvers<void>();
  const all = [first.openTurn(path, never)(() => over.promise)];
  for (const [name, host] of Object.entries(others)) {
    all.push(host.openTurn(path, never)(async () => void begun.push(name)));
  }
  await new Promise((resolve) => setImmediate(resolve));
  const seen = [...begun];
  over.resolve();
  await Promise.all(all);
  return seen;
}

const decodeToObject = () => ({});

describe("agentHost({})", () => {
  const [one, other] = [agentHost({}), agentHost({})];

  test("shares an open store among the calls of one agent, but not with another agent", async () => {
    const [alone = 0, again = 0, both = 0] = await opensBy([one, one, other]);

    expect(alone).toBeGreaterThan(0);
    expect([again, both]).toEqual([alone, 2 * alone]);
  });

  test("makes the calls of one agent wait for each other's turns, but not for those of another agent", async () => {
    const [first, second] = [await one.ipam(), await other.ipam()];

    expect(await turnsBeside(first, { same: first, other: second })).toEqual(["other"]);
  });

  test("decodes hints and entries once for each agent", async () => {
    const path = newPath();
    const entry = { key: "/k", value: "text", revision: "1" };
    const hosts = [await one.ipam(), await other.ipam()] as const;
    await hosts[0].openHints(path).save({ blocks: [{ cidr: "10.0.0.0/26", full: false }], warnedUnregistered: false });
    const ways: readonly ((host: IpamHost) => unknown)[] = [
      (host) => host.openHints(path).load(),
      (host) => host.decodedEntries().decode(entry, decodeToObject),
    ];
    for (const decode of ways) {
      const [first, again, others] = [await decode(hosts[0]), await decode(hosts[0]), await decode(hosts[1])];
      expect(again).toBe(first);
      expect(others).toEqual(first);
      expect(others).not.toBe(first);
    }
  });

  test("keeps one netfilter socket for each agent, and opens another one after a failure", async () => {
    const [first, second] = [await one.netfilter(), await other.netfilter()];
    const own = await first.withSocket((socket) => socket);

    expect(await first.withSocket((socket) => socket)).toBe(own);
    expect((await second.withSocket((socket) => socket)).channel).not.toBe(own.channel);
    const failing = first.withSocket(() => {
      throw new RangeError("on the way");
    });
    await expect(failing).rejects.toThrow(RangeError);
    expect(await first.withSocket((socket) => socket)).not.toBe(own);
  });

  test("removes links of one agent's calls together, but separately from those of another agent", async () => {
    const [first, second] = [await one.links(), await other.links()];

    expect(await first.removal()).toBe(await first.removal());
    expect(await second.removal()).not.toBe(await first.removal());
  });
});

describe("processHost", () => {
  test("keeps nothing for another call", async () => {
    const host = await processHost.ipam();
    const [alone = 0, both = 0] = await opensBy([processHost, processHost]);

    expect(both).toBe(2 * alone);
    expect(await turnsBeside(host, { same: host })).toEqual(["same"]);
    expect(host.decodedEntries()).not.toBe(host.decodedEntries());
  });
});
