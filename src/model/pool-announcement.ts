/** How routes to single addresses of a pool reach other hosts. */
interface AnnouncingFields {
  readonly vxlanMode: string;
  readonly ipipMode: string;
  readonly disableBGPExport: boolean;
}

export interface PoolAnnouncing {
  readonly tunnel: "VXLAN" | "IPIP" | undefined;
  /** Not with `disableBGPExport`. */
  readonly isExported: boolean;
}

export function poolAnnouncing({ vxlanMode, ipipMode, disableBGPExport }: AnnouncingFields): PoolAnnouncing {
  const ipip = ipipMode === "Never" ? undefined : "IPIP";
  return { tunnel: vxlanMode === "Never" ? ipip : "VXLAN", isExported: !disableBGPExport };
}
