/** What the demo of a cluster requires: installed or built if possible, reported as missing otherwise. */
import { part, partIfBuilt } from "../../../test/parts/build.ts";
import { bareClusterProblem } from "../../../test/support/bare-cluster.ts";
import type { Program } from "../../programs/table.ts";
import { missingOnHost } from "../requirements.ts";

const PROGRAMS: readonly Program[] = [
  ...(["ip", "nft", "busybox", "containerd", "ctr", "runc", "openssl", "curl", "kill", "setpriv", "go"] as const),
];

/** Messages for the user; empty if the demo can start. */
export async function missingForCluster(): Promise<readonly string[]> {
  const missing = await missingOnHost(PROGRAMS);
  if (missing.length > 0) return missing;
  if ("missing" in partIfBuilt("kubernetes")) {
    console.log("Kubernetes is built from source first, once: about 10 minutes with 2 cores (test/parts/README.md)");
  }
  // The programs of Kubernetes, and the plugin `loopback` that container runtimes call.
  for (const name of ["kubernetes", "cni-plugins"] as const) {
    const built = await part(name);
    if ("missing" in built) return [built.missing];
  }
  const problem = bareClusterProblem();
  return problem === undefined ? [] : [problem];
}
