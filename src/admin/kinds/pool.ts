import type { IPPool } from "../../model/ip-pool.ts";
import { POOL } from "../../model/kinds.ts";
import { deletePool } from "../delete/delete-pool.ts";
import { describePool } from "../ipam/describe.ts";
import { hostOverlaps } from "../resources/host-overlaps.ts";
import { noteOfPool } from "../resources/written-note.ts";
import { checkPoolBlocks } from "./former-blocks.ts";
import type { AdminKind } from "./kind.ts";

export const POOL_ROW: AdminKind<IPPool> = {
  ...POOL,
  columns: [
    { header: "CIDR", cell: ({ spec }) => spec.cidr },
    { header: "BLOCK SIZE", cell: ({ spec }) => `/${spec.blockSize}`, isWide: true },
    { header: "NAT", cell: ({ spec }) => `${spec.natOutgoing}`, isWide: true },
    { header: "IPIP", alias: "IPIPMODE", cell: ({ spec }) => spec.ipipMode, isWide: true },
    { header: "VXLAN", alias: "VXLANMODE", cell: ({ spec }) => spec.vxlanMode, isWide: true },
    { header: "BGP EXPORT", cell: ({ spec }) => `${!spec.disableBGPExport}`, isWide: true },
    { header: "USES", cell: ({ spec }) => spec.allowedUses.join(","), isWide: true },
    { header: "COOLDOWN", cell: ({ spec }) => `${spec.cooldownSeconds ?? "default"}`, isWide: true },
    { header: "DISABLED", cell: ({ spec }) => `${spec.disabled}` },
    { header: "SELECTOR", cell: ({ spec }) => spec.nodeSelector },
    { header: "NAMESPACES", cell: ({ spec }) => spec.namespaceSelector ?? "", isWide: true },
  ],
  describe: describePool,
  warnings: hostOverlaps,
  checkCreate: checkPoolBlocks,
  noteOnceWritten: noteOfPool,
  deleteResource: deletePool,
  deletedUnreadNote:
    "it was unreadable: whether its addresses are in use was not checked, and those in use are now outside all pools",
  remedyIfUnreadable: (remove) =>
    `whether its addresses are in use is unknown; ${remove}, then apply it again with the same CIDR`,
  uncertainIfUnreadable: ["allocation-outside-pools", "list-outside-pools"],
};
