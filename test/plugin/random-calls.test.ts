/**
 * Random calls of the real executable, one process each, on a private host with
 * both datastores and existing namespaces, so that some of them succeed. Each must
 * end with one JSON error or a result, and together they must leave nothing.
 *
 * The host's root is read-only for them: with random paths nothing outside of the
 * private host is written.
 */
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { hasEtcd } from "../support/etcd.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, installNetwork } from "../support/network-under-test.ts";
import { productNetwork } from "../support/product-network.ts";
import { proofSize } from "../support/proof-size.ts";
import type { Rightness } from "../support/random-calls.ts";
import { tracesOf } from "../support/traces.ts";

const COUNT = proofSize({ everyDay: 1_500, soak: 100_000 });
const SEED = proofSize({ everyDay: 1, soak: 1_000_000 });
const LIMIT = proofSize({ everyDay: 300_000, soak: 7_200_000 });

interface Report {
  readonly outcomes: { readonly calls: number; readonly results: number; readonly codes: Record<string, number> };
}

describe("random calls", () => {
  testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd")(
    `${COUNT} of them end with one error or a result, and leave nothing`,
    async () => {
      await using host = await openHost();
      const network = await productNetwork("embedded");
      await installNetwork(host, network);
      // The default datastore of a config without one.
      await startEtcdOnHost(host);
      const netns = await makeNamespaces(host);
      const before = await tracesOf(host, network);
      const { outcomes, troubles } = await makeCalls(host, { netns, ...RIGHT });

      console.log(JSON.stringify(outcomes));
      expect(troubles).toEqual([]);
      expect(outcomes.calls).toBe(COUNT);
      // Some calls must succeed, and there must be more than one kind of error.
      expect(outcomes.results).toBeGreaterThan(COUNT / 20);
      expect(Object.keys(outcomes.codes).length).toBeGreaterThan(7);
      expect(await tracesOf(host, network)).toEqual(before);
      expect(await host.must(["sh", "-c", HELD_ADDRESSES])).toBe("");
    },
    LIMIT,
  );
});

/** Files of host-local that stay: its lock, its last address and its index. */
const HELD_ADDRESSES =
  "find /var/lib/cni -type f ! -name lock ! -name 'last_reserved_ip.*' ! -path '*/.index/*' 2>/dev/null || true";

const RIGHT = { pluginDirectory: BIN_DIRECTORY, datastore: { datastore_type: "embedded" } };

async function makeNamespaces(host: Host): Promise<readonly string[]> {
  const names = Array.from({ length: 8 }, (_, index) => `vt-fuzz${index}`);
  for (const name of names) await host.must(["ip", "netns", "add", name]);
  return names.map((name) => `/run/netns/${name}`);
}

async function makeCalls(host: Host, right: Rightness): Promise<Report & { readonly troubles: readonly unknown[] }> {
  const script = 'mkdir -p /run/vt/calls && cd /run/vt/calls && mount -o remount,bind,ro / && exec "$@"';
  const program = [process.execPath, join(import.meta.dir, "random-calls.process.ts")];
  const lines = await host.must(
    [
      ...["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "calls"],
      ...[...program, String(SEED), String(COUNT), JSON.stringify(right), BIN_DIRECTORY],
    ],
    { limitMilliseconds: LIMIT },
  );
  const said: readonly object[] = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { outcomes } = said.at(-1) as Report;
  return { outcomes, troubles: said.slice(0, -1) };
}
