/** The built admin tool, as an administrator of a cluster runs it: in a directory of its own, and killed if the test wants. */
import { identity } from "../../../src/identity.ts";
import { builtProgram } from "../run-plugin.ts";
import { temporaryDirectory } from "../temporary-directory.ts";
import type { OlderCluster } from "./older-cluster.ts";

export interface ToolOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface UpgradeTool extends Disposable {
  /** `vendorctl upgrade …` */
  run(...args: readonly string[]): Promise<ToolOutput>;
  /** Throws with all output unless it succeeds; returns what it printed. */
  succeed(...args: readonly string[]): Promise<string>;
  /**
   * Applies, and kills it as soon as it has completed this step, or without a name any further step: returns the step.
   * `undefined`: it has completed all.
   */
  applyUntil(step?: string): Promise<string | undefined>;
}

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${identity.product}-upgrade`;

export function openUpgradeTool(cluster: OlderCluster, variables: Readonly<Record<string, string>> = {}): UpgradeTool {
  const directory = temporaryDirectory("upgrade-tool");
  const start = (args: readonly string[]) =>
    Bun.spawn([builtProgram(identity.adminTool), "upgrade", ...args], {
      cwd: directory.path,
      env: { PATH: process.env["PATH"] ?? "", HOME: directory.path, KUBECONFIG: cluster.adminKubeconfig, ...variables },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  const run = async (...args: readonly string[]) => {
    const child = start(args);
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  };
  return {
    run,
    async succeed(...args) {
      const { code, stdout, stderr } = await run(...args);
      if (code !== 0) throw new Error(`upgrade ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
      return stdout;
    },
    async applyUntil(wanted) {
      const child = start(["apply", "-o", "json"]);
      const complaint = new Response(child.stderr).text();
      for await (const { kind, step, outcome } of eventsOf(child.stdout)) {
        if (kind !== "done" || outcome === "already done" || (wanted !== undefined && step !== wanted)) continue;
        child.kill("SIGKILL");
        await child.exited;
        // As if the time of the lease had passed.
        await cluster.objects.remove(LEASE);
        return step;
      }
      if ((await child.exited) !== 0)
        throw new Error(`upgrade apply ended with ${child.exitCode}:\n${await complaint}`);
      return undefined;
    },
    [Symbol.dispose]: () => directory.remove(),
  };
}

interface ToolEvent {
  readonly kind: string;
  readonly step?: string;
  readonly outcome?: string;
}

async function* eventsOf(output: ReadableStream<Uint8Array>): AsyncGenerator<ToolEvent> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of output) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}
