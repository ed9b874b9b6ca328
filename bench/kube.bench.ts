/**
 * ADD and DEL with the orchestrator's API as the datastore: compares the product,
 * with and without its node agent, with Calico on the same API server, one after
 * another and thirty at once, and counts their requests. Then on real nodes: the
 * time from the creation of a pod to Ready, compared with upstream's ptp.
 */

import { identity } from "../src/identity.ts";
import { apiServerProblem, startApiServer } from "../test/support/kube-apiserver.ts";
import { runComparison } from "./support/comparison.ts";
import { type KubePlugin, prepareOwn, prepareOwnResources, preparePeer } from "./support/kube-candidates.ts";
import { startNodeAgent } from "./support/node-agent.ts";
import { addCandidate, delCandidate, makePods } from "./support/plugin-candidate.ts";
import { comparePodStarts } from "./support/pod-starts.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";
import { countRequests, requestTable } from "./support/request-table.ts";

const AT_ONCE = 30;

interface Prepared {
  /** The directory of the product's programs. */
  readonly folder: string;
  readonly auditLog: string;
  readonly alone: readonly KubePlugin[];
  readonly served: KubePlugin;
}

await onPrivateHost(import.meta.path, {
  problem: apiServerProblem(),
  prepare: async (host, undo): Promise<Prepared> => {
    const folder = await buildProduct();
    const server = await startApiServer({ place: { netns: host.netns, address: "127.0.0.1" } });
    undo.defer(server.stop);
    await prepareOwnResources({ host, server, folder }, { ours: "10.98.0.0/16" });
    const own = (node: string, title: string) => prepareOwn(server, { title, node, folder, pods: AT_ONCE });
    return {
      folder,
      auditLog: server.auditLog,
      alone: [...(await preparePeer(server, AT_ONCE)), await own("alone", identity.product)],
      served: await own("served", `${identity.product}, node agent`),
    };
  },
  measure: async ({ folder, auditLog, alone, served }) => {
    await using agent = await startNodeAgent(folder);
    const plugins = [...alone, { ...served, agent }];
    const baseline = plugins[0]?.name ?? "";
    await makePods(AT_ONCE);
    console.log(requestTable(await countRequests(plugins, auditLog)));
    const once = { baseline, rounds: 40 };
    const many = { baseline, rounds: 6, warmUpRounds: 1, concurrency: AT_ONCE };
    const atOnce = (make: typeof addCandidate) => plugins.map((plugin) => make(plugin, AT_ONCE));
    await report("kube", [
      await runComparison({ ...once, title: "ADD", candidates: plugins.map((plugin) => addCandidate(plugin)) }),
      await runComparison({ ...once, title: "DEL", candidates: plugins.map((plugin) => delCandidate(plugin)) }),
      await runComparison({ ...many, title: "ADD", candidates: atOnce(addCandidate) }),
      await runComparison({ ...many, title: "DEL", candidates: atOnce(delCandidate) }),
    ]);
  },
  afterwards: comparePodStarts,
});
