/** What a cluster requires: installed or built if possible, reported as missing otherwise. */
import { part, partIfBuilt } from "../../test/parts/build.ts";
import { bareClusterProblem } from "../../test/support/bare-cluster.ts";
import { missingOnHost } from "../demo/requirements.ts";
import { installPrograms } from "../programs/install.ts";
import type { Program } from "../programs/table.ts";

const PROGRAMS: readonly Program[] = [
  ...(["ip", "nft", "busybox", "containerd", "ctr", "runc", "openssl", "curl", "kill", "setpriv"] as const),
];

/** Any release of Go fetches the one that builds the parts. */
const FOR_BUILDING: readonly Program[] = ["go", "/etc/ssl/certs/ca-certificates.crt"];

/** The programs of Kubernetes, and the plugin `loopback` that container runtimes call. */
const PARTS = ["kubernetes", "cni-plugins"] as const;

/** Messages for the user; empty if a cluster can be opened. `command`: what the user typed. */
export async function missingForCluster(command: string): Promise<readonly string[]> {
  const missing = await missingOnHost(PROGRAMS, command);
  if (missing.length > 0) return missing;
  if (PARTS.some((name) => "missing" in partIfBuilt(name))) await installPrograms(FOR_BUILDING);
  if ("missing" in partIfBuilt("kubernetes")) {
    console.log("Kubernetes is built from source first, once: about 10 minutes with 2 cores (test/parts/README.md)");
  }
  for (const name of PARTS) {
    const built = await part(name);
    if ("missing" in built) return [built.missing];
  }
  const problem = bareClusterProblem();
  return problem === undefined ? [] : [problem];
}
