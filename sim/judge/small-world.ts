/** A world of one or two nodes, for tests of invariants: everything in it can be put wrong by hand. */
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import { means, nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import type { World, WorldAttachment, WorldNode, WorldPod } from "./invariant.ts";
import { HandMadeNamespace } from "./packets/hand-made-network.ts";
import { type Records, recordsOfTable } from "./records.ts";

interface SmallNode extends WorldNode {
  isRegistered: boolean;
  readonly attachments: Map<string, WorldAttachment>;
}

/** A host on which nothing happened yet. */
export function emptyHost() {
  const root = new HandMadeNamespace();
  const statusFiles = new Map<string, string>();
  return { root, segment: "one", statusFiles, namespaceAt: () => root };
}

export class SmallWorld implements World {
  now = 0;
  readonly table = new MemoryTable();
  readonly store = openMemory(this.table);
  readonly allocator = openAllocator(this.store, means());
  records: Records = recordsOfTable(this.table);
  readonly pods = new Map<string, WorldPod>();
  readonly nodes = new Map<string, SmallNode>();

  static async make(...names: readonly string[]): Promise<SmallWorld> {
    const world = new SmallWorld();
    await seed(
      world.store,
      poolChange("blue", "10.0.0.0/24", { blockSize: 29 }),
      ...names.map((name) => nodeChange(name)),
    );
    for (const name of names) world.nodes.set(name, { name, isRegistered: true, attachments: new Map() });
    return world;
  }

  /** A pod that lives, with an address from the allocator. */
  async addPod(name: string, node: string): Promise<WorldAttachment> {
    const containerId = `container-of-${name}`;
    const { addresses } = await this.allocator.assign(request(`network.${containerId}`, { node }));
    const pod = { namespace: "default", name, uid: `uid-of-${name}` };
    this.pods.set(`default/${name}`, { ...pod, node, isEnding: false });
    return this.attach(node, {
      pod,
      containerId,
      state: "attached",
      addresses: addresses.map(({ address }) => formatAddress(address)),
    });
  }

  /** The endpoint of the container, as the plugin records it. */
  putEndpoint({ pod: { namespace, name: pod }, containerId, addresses }: WorldAttachment, node: string): void {
    const made = workloadEndpointName({ node, orchestrator: "k8s", workload: pod, endpoint: "eth0" });
    const name = { namespace, name: made.ok ? made.name : "" };
    const endpoint = workloadEndpoint.make(name, {
      ...{ node, pod, orchestrator: "k8s", endpoint: "eth0", containerID: containerId },
      ipNetworks: addresses.map((text) => `${text}/${text.includes(":") ? 128 : 32}`),
    });
    this.table.commit([{ kind: "put", key: ENDPOINT.key(name), value: ENDPOINT.codec.write(endpoint) }]);
  }

  attach(node: string, attachment: WorldAttachment): WorldAttachment {
    this.nodes.get(node)?.attachments.set(attachment.containerId, attachment);
    return attachment;
  }
}
