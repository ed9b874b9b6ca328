/**
 * The whole plugin list of a pod with a host port and two rates: our plugin,
 * portmap and bandwidth, with and without the node agent, compared with
 * upstream's ptp + host-local, portmap and bandwidth. Each plugin is a process,
 * one after another, as every runtime calls them.
 */
import { existsSync } from "node:fs";
import type { JsonObject } from "../src/cni/json.ts";
import { openDatastore } from "../src/datastore/open.ts";
import { identity } from "../src/identity.ts";
import { part } from "../test/parts/build.ts";
import { nodeChange, poolChange } from "../test/support/ipam.ts";
import { readyCluster } from "../test/support/plugin-site.ts";
import { type RuntimeAttachment, startRuntime } from "../test/support/runtime-driver.ts";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import { type Candidate, runComparison } from "./support/comparison.ts";
import { countProcesses } from "./support/counted-processes.ts";
import { type Served, startNodeAgent } from "./support/node-agent.ts";
import { makePods, podName } from "./support/plugin-candidate.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 20;
const NODE = "here";

interface Implementation extends Served {
  readonly name: string;
  readonly folder: string;
  readonly conflist: JsonObject;
}

interface Prepared {
  readonly alone: readonly Implementation[];
  readonly served: Implementation;
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Prepared> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`skipped: ${newest.missing}`);
    const folder = await buildProduct();
    const ranges = [[{ subnet: "10.77.0.0/16" }]];
    const ptp = { type: "ptp", ipam: { type: "host-local", ranges, routes: [{ dst: "0.0.0.0/0" }] } };
    const implementations = [
      ...("path" in newest ? [{ name: "upstream 1.9.1", folder: newest.path, conflist: listOf("newest", ptp) }] : []),
      { name: "Debian 1.1.1", folder: "/usr/lib/cni", conflist: listOf("debian", ptp) },
      { name: "ours", folder, conflist: listOf("ours", await ours()) },
    ];
    return {
      alone: implementations.filter((implementation) => existsSync(`${implementation.folder}/bandwidth`)),
      served: { name: "ours, node agent", folder, conflist: listOf("served", await ours()) },
    };
  },
  async measure({ alone, served }) {
    await using agent = await startNodeAgent(served.folder);
    const implementations = [...alone, { ...served, agent }];
    await makePods(AT_ONCE);
    const baseline = implementations[0]?.name ?? "";
    const once = { baseline, rounds: 20 };
    const many = { baseline, rounds: 3, warmUpRounds: 1, concurrency: AT_ONCE };
    const candidates = (command: "add" | "del", count: number) =>
      implementations.map((implementation) => candidate(implementation, command, count));
    await report("chain", [
      await runComparison({ ...once, title: "ADD of the whole list", candidates: candidates("add", 1) }),
      await runComparison({ ...once, title: "DEL of the whole list", candidates: candidates("del", 1) }),
      await runComparison({ ...many, title: "ADD of the whole list", candidates: candidates("add", AT_ONCE) }),
      await runComparison({ ...many, title: "DEL of the whole list", candidates: candidates("del", AT_ONCE) }),
    ]);
  },
});

async function ours(): Promise<JsonObject> {
  return { type: identity.product, nodename: NODE, ...(await fillStore()), ipam: { type: identity.ipamType } };
}

/** Creates the embedded datastore with one pool; returns the fields of the network config that select it. */
async function fillStore(): Promise<JsonObject> {
  const folder = temporaryDirectory("bench-chain");
  process.on("exit", folder.remove);
  const path = `${folder.path}/store.db`;
  const store = await openDatastore({ kind: "embedded", path });
  await store.commit([readyCluster(), poolChange("blue", "10.50.0.0/16"), nodeChange(NODE)]);
  await store.close();
  return { datastore_type: "embedded", datastore_path: path };
}

function listOf(name: string, main: JsonObject): JsonObject {
  const portmap = { type: "portmap", snat: true, capabilities: { portMappings: true } };
  const bandwidth = { type: "bandwidth", capabilities: { bandwidth: true } };
  return { cniVersion: "1.0.0", name, plugins: [main, portmap, bandwidth] };
}

/** Every turn ends in its initial state: the same plugins do what is not measured, not timed. */
function candidate(
  { name, folder, conflist, ...served }: Implementation,
  command: "add" | "del",
  count: number,
): Candidate {
  const { run, meter } = countProcesses(served);
  const runtime = startRuntime({ conflist, pluginDirectory: folder, run });
  const each = async (round: number, effect: (attachment: RuntimeAttachment) => Promise<unknown>) => {
    for (let place = 0; place < count; place++) await effect(attachmentOf(round, place));
  };
  if (command === "add") {
    return {
      name,
      meter,
      run: async ({ round }, place) => void (await runtime.add(attachmentOf(round, place))),
      after: ({ round }) => each(round, runtime.del),
    };
  }
  return {
    name,
    meter,
    before: ({ round }) => each(round, runtime.add),
    run: ({ round }, place) => runtime.del(attachmentOf(round, place)),
  };
}

function attachmentOf(round: number, place: number): RuntimeAttachment {
  const rate = { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 10_000_000, egressBurst: 1_000_000 };
  return {
    containerId: new Bun.CryptoHasher("sha256").update(`${round}/${place}`).digest("hex"),
    netns: `/run/netns/${podName(place)}`,
    capabilities: {
      portMappings: [{ hostPort: 8000 + place, containerPort: 80, protocol: "tcp" }],
      bandwidth: rate,
    },
  };
}
