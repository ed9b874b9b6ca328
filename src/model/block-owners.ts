/**
 * Which pod each address of a block belongs to, as one number per address: an agent keeps this for all blocks of the
 * cluster. Only the plugins write blocks, so a block proves what the annotations of a pod say.
 */
import { affineNode, INTERFACE_ATTRIBUTE, type IPAMBlock, NODE_ATTRIBUTE } from "./ipam-block.ts";
import { isWaiting } from "./kept-address.ts";

/** A pod has one endpoint with the orchestrator's API: that of the interface that every runtime gives it. */
export const POD_INTERFACE = "eth0";

export interface PodOnNode {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
}

/** For each ordinal the number of its pod; `NaN` if it is free, or not a pod's. */
export type BlockOwners = Float64Array;

/** Numbers of pods. The seed is secret: nobody can choose the name of a pod so that it gets the number of another one. */
export class OwnerNumbers {
  constructor(private readonly seed: bigint) {}

  of({ namespace, pod, node }: PodOnNode): number {
    return Number(Bun.hash(`${namespace}/${pod}/${node}`, this.seed));
  }

  in(block: IPAMBlock): BlockOwners {
    const numbers = block.attributes.map((_, index) => {
      const owner = podOfAttribute(block, index);
      return owner === undefined ? Number.NaN : this.of(owner);
    });
    return Float64Array.from(block.allocations, (index) => (index === undefined ? NaN : (numbers[index] ?? NaN)));
  }
}

/**
 * Which pod's endpoint an attribute of a block names; an address without a recorded node belongs to the node of the block.
 * One of another interface, by a plugin that uses our IPAM, is not the endpoint's, nor is one that waits for its pod.
 */
export function podOfAttribute(block: IPAMBlock, index: number): PodOnNode | undefined {
  if (isWaiting(block.attributes[index])) return undefined;
  const { secondary = {} } = block.attributes[index] ?? {};
  const { namespace, pod, [NODE_ATTRIBUTE]: node = affineNode(block) } = secondary;
  const { [INTERFACE_ATTRIBUTE]: ifname = POD_INTERFACE } = secondary;
  if (namespace === undefined || pod === undefined || node === undefined || ifname !== POD_INTERFACE) return undefined;
  return { namespace, pod, node };
}
