/** Installs the product's CRDs (`deploy/crds/`) in a cluster, and waits until their kinds are served. */
import { join } from "node:path";
import type { Kubectl } from "./kubectl.ts";

const DIRECTORY = join(import.meta.dir, "../../deploy/crds");

export async function installCrds({ kubectl }: Pick<Kubectl, "kubectl">): Promise<void> {
  const files = `--filename=${DIRECTORY}`;
  await kubectl(["apply", files]);
  await kubectl(["wait", files, "--recursive=false", "--for=condition=Established", "--timeout=60s"]);
}
