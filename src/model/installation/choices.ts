/** Values of an Installation that commands offer too. */
import { identity } from "../../identity.ts";

export const OWN_TYPE = identity.title;

export const HOST_LOCAL = "HostLocal";

export const ENCAPSULATIONS = ["VXLANCrossSubnet", "VXLAN", "IPIPCrossSubnet", "IPIP", "None"] as const;
