/** The mean time of a sandbox on each node: what its kubelet measured around the runtime's RunPodSandbox, which includes the network. */
import type { Kubectl } from "../../test/support/kubectl.ts";

export interface SandboxTimes {
  readonly seconds: number;
  readonly count: number;
}

type TimesByName = ReadonlyMap<string, SandboxTimes>;

interface NamedNode {
  readonly name: string;
  readonly node: { readonly name: string };
}

export async function sandboxTimes(
  { kubectl }: Pick<Kubectl, "kubectl">,
  nodes: readonly NamedNode[],
): Promise<TimesByName> {
  const times = new Map<string, SandboxTimes>();
  for (const { name, node } of nodes) {
    times.set(name, timesIn(await kubectl(["get", "--raw", `/api/v1/nodes/${node.name}/proxy/metrics`])));
  }
  return times;
}

export function timesIn(metrics: string): SandboxTimes {
  const value = (suffix: string) =>
    [...metrics.matchAll(new RegExp(`^kubelet_run_podsandbox_duration_seconds_${suffix}(?:{.*})? (\\S+)$`, "gm"))]
      .map(([, number]) => Number(number))
      .reduce((sum, number) => sum + number, 0);
  return { seconds: value("sum"), count: value("count") };
}

/** A Markdown table of the means between two readings; the ratio is to the first node. */
export function sandboxTable(title: string, before: TimesByName, after: TimesByName): string {
  const means = [...after].map(([name, { seconds, count }]) => {
    const earlier = before.get(name) ?? { seconds: 0, count: 0 };
    const sandboxes = count - earlier.count;
    return { name, sandboxes, mean: (1_000 * (seconds - earlier.seconds)) / sandboxes };
  });
  const baseline = means[0]?.mean ?? Number.NaN;
  const rows = means.map(
    ({ name, sandboxes, mean }) =>
      `| ${name} | ${sandboxes} | ${mean.toFixed(1)} | ${(mean / baseline).toFixed(2)} x |`,
  );
  return [
    `\nSandbox, ${title} (mean of the kubelet)`,
    "",
    "| candidate | sandboxes | mean ms | ratio |",
    "|---|---:|---:|---:|",
    ...rows,
    "",
  ].join("\n");
}
