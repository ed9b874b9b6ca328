/** The temporary policy that logs and allows the traffic of hosts while the default of their host endpoints changes. */
export const UPGRADE_POLICY = "allow-all-upgrade";
