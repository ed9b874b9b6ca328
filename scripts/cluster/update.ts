/** `make cluster` again: puts the programs of this build onto the nodes of the kept cluster, and restarts what runs them. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { installOperator } from "../../test/support/operator-install.ts";
import { productImage } from "../../test/support/product-image.ts";
import { openOutput } from "../demo/output.ts";
import { BIN, type KeptCluster, recordCluster } from "./state.ts";

/** Returns whether there was anything to do. */
export async function updateCluster(cluster: KeptCluster): Promise<boolean> {
  const image = await productImage();
  if (image.archive === cluster.image) return false;
  const { step } = openOutput(new AbortController().signal);
  for (const name of cluster.nodes) {
    if (!/^node-\d+$/.test(name)) throw new Error("It is of another release: make cluster-down, then make cluster");
    await step(`The image on ${name}`, async () => {
      await must([join(BIN, name), "ctr", "-n", "k8s.io", "images", "import", image.archive]);
      return { summary: image.name };
    });
  }
  await step("The operator", async () => {
    await installOperator({ kubectl });
    await restart("deployment", identity.operator);
    return { summary: "its definitions are applied, and it is restarted" };
  });
  await step("The network", async () => {
    await restart("deployment", identity.systemNamespace);
    await restart("daemonset", identity.systemNamespace);
    return { summary: "controllers and node agents are restarted" };
  });
  recordCluster({ ...cluster, image: image.archive });
  return true;
}

/** All of this kind in the namespace. */
async function restart(kind: "deployment" | "daemonset", namespace: string): Promise<void> {
  await kubectl(["rollout", "restart", kind, `--namespace=${namespace}`]);
  const names = (await kubectl(["get", kind, `--namespace=${namespace}`, "--output=name"])).split("\n");
  for (const name of names.filter(Boolean)) {
    await kubectl(["rollout", "status", name, `--namespace=${namespace}`, "--timeout=120s"]);
  }
}

function kubectl(args: readonly string[], stdin?: string): Promise<string> {
  return must([join(BIN, "kubectl"), ...args], stdin);
}

async function must(command: readonly string[], stdin = ""): Promise<string> {
  // A folder that every node has.
  const child = Bun.spawn([...command], { cwd: "/", stdin: new Blob([stdin]), stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`"${command.join(" ")}" ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}
