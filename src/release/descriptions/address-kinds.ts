import type { KindDescriptions } from "./fields.ts";

export const ADDRESS_KINDS: KindDescriptions = {
  IPPool: {
    "": "A range of addresses for workloads and tunnels, cut into blocks that nodes claim",
    spec: "The pool's range and how it is used",
    "spec.cidr": "Range of addresses; cannot change, and must not overlap another pool",
    "spec.ipipMode": "When packets to other nodes are encapsulated with IPIP; IPv4 only",
    "spec.vxlanMode": "When packets to other nodes are encapsulated with VXLAN",
    "spec.natOutgoing": "Masquerade packets from the pool to destinations outside all pools",
    "spec.nodeSelector": "Selector of the nodes that use the pool",
    "spec.blockSize":
      "Prefix length of a block (default: 26 for IPv4, 122 for IPv6, or the whole pool if it is smaller); cannot change",
    "spec.disabled": "Assign no new addresses from the pool",
    "spec.disableBGPExport": "Do not announce the pool's blocks with BGP",
    "spec.allowedUses": "What the addresses may be used for",
  },
  IPReservation: {
    "": "Addresses that are never assigned automatically",
    spec: "The reserved addresses",
    "spec.reservedCIDRs": "Addresses or CIDRs that are not assigned automatically",
  },
  IPAMConfiguration: {
    "": "How blocks are allocated to nodes, for the whole cluster",
    spec: "The configuration",
    "spec.strictAffinity": "Forbid borrowing addresses from other nodes' blocks",
    "spec.autoAllocateBlocks": "Allocate new blocks to nodes automatically",
    "spec.maxBlocksPerHost": "Maximum number of blocks of one pool per node; 0 for the default",
  },
};
