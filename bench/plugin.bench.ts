/**
 * Attaching and detaching a pod, one after another and many at once: compares
 * the product, with and without its node agent, with its peers on one private
 * host and one etcd.
 *
 * RELEASE=commit: only with that commit of this repository, which is built first, both with their agents. In every round both
 * do each operation, so that a loss of speed is seen whatever else the machine does.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { part } from "../test/parts/build.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import type { Host } from "../test/support/host.ts";
import { runComparison } from "./support/comparison.ts";
import { startNodeAgent } from "./support/node-agent.ts";
import { peerProgram, preparePeerCalico } from "./support/peer-calico.ts";
import { addCandidate, delCandidate, type MeasuredPlugin, makePods } from "./support/plugin-candidate.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { FOR_AGENT, prepareProducts } from "./support/product-candidates.ts";
import { buildProduct, buildRelease } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 50;
/** A ratio of two builds of the same program is near 1: it needs more rounds than that of different programs. */
const ROUNDS_OF_RELEASES = 200;
const RELEASE = process.env["RELEASE"] || undefined;

interface Prepared {
  readonly alone: readonly MeasuredPlugin[];
  /** Those that an agent serves, with the directory of its program. */
  readonly served: readonly {
    readonly title: string;
    readonly folder: string;
    readonly plugins: readonly MeasuredPlugin[];
  }[];
}

await onPrivateHost(import.meta.path, {
  prepare: async (host): Promise<Prepared> => {
    const etcdEndpoint = await startEtcdOnHost(host);
    const folder = await buildProduct();
    const served = async (title: string, of: string, addition: string) => ({
      ...{ title, folder: of },
      plugins: await prepareProducts(host, etcdEndpoint, { addition, folder: of }),
    });
    if (RELEASE !== undefined) {
      const before = await buildRelease(RELEASE);
      return {
        alone: [],
        served: [await served("before", before, `, ${RELEASE}`), await served("agent", folder, ", this release")],
      };
    }
    return {
      alone: [
        ...(await upstreamPlugins()),
        ...(await calico(host, etcdEndpoint)),
        ...(await prepareProducts(host, etcdEndpoint)),
      ],
      served: [await served("agent", folder, FOR_AGENT)],
    };
  },
  measure: async ({ alone, served }) => {
    await using agents = new AsyncDisposableStack();
    const plugins = [...alone];
    for (const { title, folder, plugins: own } of served) {
      const agent = agents.use(await startNodeAgent(folder, title));
      plugins.push(...own.map((plugin) => ({ ...plugin, agent })));
    }
    const baseline = plugins[0]?.name ?? "";
    await makePods(AT_ONCE);
    const isOfReleases = alone.length === 0;
    const once = { baseline, rounds: isOfReleases ? ROUNDS_OF_RELEASES : 40 };
    const many = { baseline, rounds: isOfReleases ? 10 : 5, warmUpRounds: 1, concurrency: AT_ONCE };
    await report(isOfReleases ? "plugin-releases" : "plugin", [
      await runComparison({ ...once, title: "ADD", candidates: plugins.map((plugin) => addCandidate(plugin)) }),
      await runComparison({ ...once, title: "DEL", candidates: plugins.map((plugin) => delCandidate(plugin)) }),
      await runComparison({
        ...many,
        title: "ADD",
        candidates: plugins.map((plugin) => addCandidate(plugin, AT_ONCE)),
      }),
      await runComparison({
        ...many,
        title: "DEL",
        candidates: plugins.map((plugin) => delCandidate(plugin, AT_ONCE)),
      }),
    ]);
  },
});

/** ptp + host-local in Debian's version, the baseline, and in upstream's newest version. */
async function upstreamPlugins(): Promise<readonly MeasuredPlugin[]> {
  const newest = await part("cni-plugins");
  if ("missing" in newest) console.log(`skipped: ${newest.missing}`);
  const folders = [
    { version: "Debian 1.1.1", path: "/usr/lib/cni" },
    ...("path" in newest ? [{ version: "1.9.1", path: newest.path }] : []),
  ];
  return folders
    .filter(({ path }) => existsSync(join(path, "ptp")))
    .map(({ version, path }) => {
      const ipam = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] };
      const config = { cniVersion: "1.0.0", name: `ptp-${version.replace(" ", "-")}`, type: "ptp", ipam };
      return { name: `ptp + host-local ${version}`, program: join(path, "ptp"), config: JSON.stringify(config), path };
    });
}

async function calico(host: Host, etcdEndpoint: string): Promise<readonly MeasuredPlugin[]> {
  const peer = await preparePeerCalico({ etcdEndpoint, cidr: "10.99.0.0/16", node: "here" }, host.must);
  if ("missing" in peer) {
    console.log(`skipped: ${peer.missing}`);
    return [];
  }
  const { config, pluginDirectory: path } = peer;
  return [{ name: "Calico 3.31.0 on etcd", program: peerProgram(peer, "calico"), config, path }];
}
