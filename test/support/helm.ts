/** The real Helm, of both major versions. */
import { type Built, partIfBuilt } from "../parts/build.ts";

export const HELM_VERSIONS = ["helm3", "helm4"] as const;
export type HelmVersion = (typeof HELM_VERSIONS)[number];

/** Runs Helm; returns what it printed, or throws with what it complained about. */
export type Helm = (...args: readonly string[]) => Promise<string>;

/** Why there is no such Helm here; undefined if there is. */
export function helmProblem(version: HelmVersion): string | undefined {
  const built: Built = partIfBuilt(version);
  return "missing" in built ? built.missing : undefined;
}

/** `directory`: for its caches and settings. */
export function makeHelm(version: HelmVersion, directory: string, kubeconfig?: string): Helm {
  const built = partIfBuilt(version);
  if ("missing" in built) throw new Error(built.missing);
  return async (...args) => {
    const child = Bun.spawn([built.path, ...args], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        HOME: directory,
        HELM_CACHE_HOME: directory,
        HELM_CONFIG_HOME: directory,
        HELM_DATA_HOME: directory,
        ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }),
      },
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`${version} ${args.join(" ")}: ${stderr.trim()}`);
    return stdout;
  };
}
