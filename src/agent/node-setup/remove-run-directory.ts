/**
 * Removes what our programs keep in the run directory. Its path may come from the environment, so nothing else in it is
 * touched, and it is removed only if that leaves it empty.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { flowSocketPath, RULE_NUMBERS_FILE } from "../../config/run-directory.ts";
import { DATASTORE_STATUS_FILE } from "../../datastore/replica/status-file.ts";
import { POLICY_PROBLEMS_FILE, ROUTING_PROBLEMS_FILE } from "../../health/problems-file.ts";
import { REFUSED_CLAIMS_FILE } from "../../ipam/refused-claims.ts";
import { finishedNameOf } from "../../linux/file-folder.ts";
import { removeIfEmpty } from "../../linux/place-file.ts";
import { SEEN_REVISIONS_FILE } from "../network/seen-revisions.ts";
import { PATHS_FILE } from "../node-routes/tunnel-paths.ts";

const DIRECTORIES = [
  "agent",
  "attachments",
  "bird",
  "endpoint-status",
  "flows",
  "host-ports",
  "ipam",
  "labels",
  "sidecars",
  "volumes",
] as const;

const FLOW_SOCKET = basename(flowSocketPath({}));

const OWN: ReadonlySet<string> = new Set([
  FLOW_SOCKET,
  `.${FLOW_SOCKET}.new`,
  ...DIRECTORIES,
  DATASTORE_STATUS_FILE,
  PATHS_FILE,
  POLICY_PROBLEMS_FILE,
  REFUSED_CLAIMS_FILE,
  ROUTING_PROBLEMS_FILE,
  RULE_NUMBERS_FILE,
  `${RULE_NUMBERS_FILE}.unfinished`,
  SEEN_REVISIONS_FILE,
]);

/** Returns the paths that are left, because others have made them. */
export function removeRunDirectory(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory);
  const isOwn = (name: string) => OWN.has(finishedNameOf(name) ?? name);
  for (const name of names.filter(isOwn)) rmSync(join(directory, name), { recursive: true, force: true });
  removeIfEmpty(directory);
  return names.filter((name) => !isOwn(name)).map((name) => join(directory, name));
}
