/** Where sidecars of releases before v3.29 have the directories of their sockets, on the host. */
import { identity } from "../identity.ts";

/** The environment variable of the agent. */
export const POLICY_SYNC_DIRECTORY = `${identity.environmentPrefix}POLICY_SYNC_DIRECTORY`;

export const DEFAULT_POLICY_SYNC_DIRECTORY = "/var/run/nodeagent";
