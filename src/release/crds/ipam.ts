/** IPReservation and IPAMConfiguration; IPAMBlock, BlockAffinity and IPAMHandle, which only the product itself writes. */
import { sequenceField } from "../../model/internal-kinds.ts";
import { LIST_MESSAGES } from "../../model/ip-address-list.ts";
import type { CelRule } from "./crd-schema.ts";
import type { CheckedFields, ReleasedKinds } from "./kind.ts";

const FIXED: CelRule = { rule: "self == oldSelf", message: "cannot be changed: it identifies the record" };

const BLOCK_CIDR = "Addresses of the block; cannot change";
const DELETED = "Whether the record counts as deleted";

export const IPAM_KINDS: ReleasedKinds = {
  IPReservation: {
    columns: [{ name: "Reserved", path: ".spec.reservedCIDRs" }],
    descriptions: {
      "": "Addresses that are never assigned automatically",
      spec: "The reserved addresses",
      "spec.reservedCIDRs": "Addresses or CIDRs that are not assigned automatically",
    },
  },
  IPAddressList: {
    columns: [{ name: "Namespaces", path: ".spec.namespaceSelector" }],
    rules: { "spec.addresses": [{ rule: "size(self) > 0", message: LIST_MESSAGES.empty }] },
    descriptions: {
      "": "Addresses for pods that name the list in the annotation ipAddrsFrom: each gets a free one of each family",
      spec: "The addresses and who may use them",
      "spec.addresses":
        "The addresses, each in an enabled pool, in the order in which they are assigned; at most 1024. Others may get them too, unless an IPReservation covers them",
      "spec.namespaceSelector": "Selector, by labels, of the namespaces whose pods may name the list",
    },
  },
  IPAMConfiguration: {
    columns: [
      { name: "Strict Affinity", path: ".spec.strictAffinity", type: "boolean" },
      { name: "Auto Allocate", path: ".spec.autoAllocateBlocks", type: "boolean" },
      { name: "Max Blocks Per Host", path: ".spec.maxBlocksPerHost", type: "integer" },
    ],
    descriptions: {
      "": "How blocks are allocated to nodes, for the whole cluster",
      spec: "The configuration",
      "spec.strictAffinity": "Forbid borrowing addresses from other nodes' blocks",
      "spec.autoAllocateBlocks": "Allocate new blocks to nodes automatically",
      "spec.maxBlocksPerHost": "Maximum number of blocks of one pool per node; 0 for the default",
      "spec.cooldownSeconds":
        "Seconds for which a released address is given to no other owner, for pools without a setting of their own; 0 or absent for the usual rest of 3 minutes, which a full pool cuts short",
      "spec.longestKeepFor":
        "The longest keepFor that annotations of pods and namespaces may have, except for pods of StatefulSets and virtual machines; 0s for no limit (default: 168h)",
    },
  },
  IPAMBlock: {
    columns: [
      { name: "CIDR", path: ".spec.cidr" },
      { name: "Affinity", path: ".spec.affinity" },
    ],
    rules: { "spec.cidr": [FIXED] },
    descriptions: {
      "": "The owners of the addresses of a block; written by the product alone, do not edit",
      spec: "The block",
      "spec.cidr": BLOCK_CIDR,
      "spec.affinity": "Node that the block belongs to, as host:NAME; null if it does not belong to a node",
      "spec.allocations": "For each address of the block the index of its owner in attributes, or null if it is free",
      "spec.unallocated":
        "Free addresses by their place in the block; the one that has been free for the longest time is first",
      "spec.attributes": "The owners",
      "spec.attributes[].handle_id": "Handle of the attachment that has the address",
      "spec.attributes[].secondary": "Node, pod, namespace and time of the assignment",
      "spec.sequenceNumber": "Increases with every write of the block",
      "spec.sequenceNumberForAllocation": "For each assigned address the sequence number of its assignment",
      "spec.released":
        "Addresses that were released not long ago, by their place in the block: another owner does not get them yet",
      "spec.released{}.at": "Time of the release, in seconds since 1970",
      "spec.released{}.namespace": "Namespace of the pod that had the address",
      "spec.released{}.network": "Network of the container that had the address, if it was not one of a pod",
      "spec.cooldownSeconds":
        "Seconds for which released addresses of the block rest, by the setting that the last assignment knew; absent without one",
      "spec.deleted": DELETED,
    },
  },
  BlockAffinity: {
    columns: [
      { name: "Node", path: ".spec.node" },
      { name: "CIDR", path: ".spec.cidr" },
      { name: "State", path: ".spec.state" },
    ],
    rules: { "spec.node": [FIXED], "spec.cidr": [FIXED] },
    descriptions: {
      "": "Which node a block belongs to; written by the product alone, do not edit",
      spec: "The affinity",
      "spec.state": "State of the affinity; borrowed: the node only has addresses in a block of another node",
      "spec.node": "Node that the block belongs to; cannot change",
      "spec.cidr": BLOCK_CIDR,
      "spec.deleted": DELETED,
    },
  },
  IPAMHandle: {
    columns: [{ name: "Handle", path: ".spec.handleID" }],
    rules: { "spec.handleID": [FIXED] },
    descriptions: {
      "": "How many addresses of which blocks an attachment has; written by the product alone, do not edit",
      spec: "The handle",
      "spec.handleID": "Identifier of the attachment; cannot change",
      "spec.block": "Number of addresses, by the CIDR of the block",
      "spec.deleted": DELETED,
    },
  },
};

export const IPAM_FIELDS: CheckedFields = [[sequenceField, { type: "integer", format: "int64" }]];
