/** Whether single addresses of a pool are announced by BGP: routes of tunnels lead to blocks only. */
interface AnnouncingFields {
  readonly vxlanMode: string;
  readonly ipipMode: string;
  readonly disableBGPExport: boolean;
}

/** Why a single address of the pool is not announced: `is in VXLAN mode`; `undefined` if it is. */
export function whyUnannounced({ vxlanMode, ipipMode, disableBGPExport }: AnnouncingFields): string | undefined {
  if (vxlanMode !== "Never") return "is in VXLAN mode";
  if (ipipMode !== "Never") return "is in IPIP mode";
  return disableBGPExport ? "has disableBGPExport" : undefined;
}
