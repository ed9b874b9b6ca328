/**
 * The whole list of a pod with a host port and two rates: our plugin, portmap and
 * bandwidth, with the node agent and without, against ptp + host-local, portmap
 * and bandwidth of upstream, each plugin a process and one after another, as
 * every runtime calls them.
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
import { type Contender, runContest } from "./support/contest.ts";
import { countProcesses } from "./support/counted-processes.ts";
import { type Served, startNodeAgent } from "./support/node-agent.ts";
import { makePods, podName } from "./support/plugin-contender.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 20;
const NODE = "here";

interface Rival extends Served {
  readonly name: string;
  readonly folder: string;
  readonly conflist: JsonObject;
}

interface Prepared {
  readonly alone: readonly Rival[];
  readonly served: Rival;
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Prepared> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`left out: ${newest.missing}`);
    const folder = await buildProduct();
    const ranges = [[{ subnet: "10.77.0.0/16" }]];
    const ptp = { type: "ptp", ipam: { type: "host-local", ranges, routes: [{ dst: "0.0.0.0/0" }] } };
    const rivals = [
      ...("path" in newest ? [{ name: "upstream 1.9.1", folder: newest.path, conflist: listOf("newest", ptp) }] : []),
      { name: "Debian 1.1.1", folder: "/usr/lib/cni", conflist: listOf("debian", ptp) },
      { name: "ours", folder, conflist: listOf("ours", await ours()) },
    ];
    return {
      alone: rivals.filter((rival) => existsSync(`${rival.folder}/bandwidth`)),
      served: { name: "ours, node agent", folder, conflist: listOf("served", await ours()) },
    };
  },
  async measure({ alone, served }) {
    await using agent = await startNodeAgent(served.folder);
    const rivals = [...alone, { ...served, agent }];
    await makePods(AT_ONCE);
    const baseline = rivals[0]?.name ?? "";
    const once = { baseline, rounds: 20 };
    const many = { baseline, rounds: 3, warmUpRounds: 1, concurrency: AT_ONCE };
    const contenders = (command: "add" | "del", count: number) =>
      rivals.map((rival) => contender(rival, command, count));
    await report("chain", [
      await runContest({ ...once, title: "ADD of the whole list", contenders: contenders("add", 1) }),
      await runContest({ ...once, title: "DEL of the whole list", contenders: contenders("del", 1) }),
      await runContest({ ...many, title: "ADD of the whole list", contenders: contenders("add", AT_ONCE) }),
      await runContest({ ...many, title: "DEL of the whole list", contenders: contenders("del", AT_ONCE) }),
    ]);
  },
});

async function ours(): Promise<JsonObject> {
  return { type: identity.product, nodename: NODE, ...(await fillStore()), ipam: { type: identity.ipamType } };
}

/** The embedded datastore with one pool; the fields of the network config that name it. */
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

/** Every turn ends as it began: what is not measured is done untimed, by the same plugins. */
function contender({ name, folder, conflist, ...served }: Rival, command: "add" | "del", count: number): Contender {
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
