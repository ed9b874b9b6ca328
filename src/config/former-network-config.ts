import { identity } from "../identity.ts";

/** The variable by which an upgrade names the file that an earlier release had installed, if it was not `10-vendor.conflist`. */
export const FORMER_NETWORK_CONFIG = `${identity.environmentPrefix}FORMER_NETWORK_CONFIG`;
