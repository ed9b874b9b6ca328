/** The links of local endpoints for the benchmark of policy: real veths whose other ends are in one namespace. */
import { interfaceOf } from "../../test/support/policy-load.ts";

const PODS = "vt-pods";

export async function makePolicyLinks(count: number): Promise<void> {
  await run(["ip", "netns", "add", PODS]);
  const indices = Array.from({ length: count }, (_, index) => index);
  await batch(indices.map((index) => `link add ${interfaceOf(index)} up type veth peer name p${index} netns ${PODS}`));
  await batch(
    indices.map((index) => `link set p${index} up`),
    ["-n", PODS],
  );
}

async function batch(lines: readonly string[], place: readonly string[] = []): Promise<void> {
  await run(["ip", ...place, "-batch", "-"], `${lines.join("\n")}\n`);
}

async function run(command: readonly string[], stdin = ""): Promise<void> {
  const child = Bun.spawn([...command], { stdin: new Blob([stdin]), stdout: "ignore", stderr: "pipe" });
  const [code, complaints] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`"${command.join(" ")}" failed: ${complaints}`);
}
