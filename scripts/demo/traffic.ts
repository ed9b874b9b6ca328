/** Tests the network with traffic: pods ping each other and transfer a file. */
import { join } from "node:path";
import { addressFamily } from "../../src/cni/result.ts";
import type { DemoEnvironment } from "./environment.ts";
import type { StepResult } from "./output.ts";
import type { Pod } from "./pod-starters.ts";

type Family = 4 | 6;

const FILE_BYTES = 8 * 1024 * 1024;

/** Every pod pings every other one. */
export async function pingAll({ host }: DemoEnvironment, pods: readonly Pod[], family: Family): Promise<StepResult> {
  const pairs = pods.flatMap((from) => pods.filter((to) => to !== from).map((to) => ({ from, to })));
  const times: number[] = [];
  for (const { from, to } of pairs) {
    const answer = await host.must(inside(from, ["ping", "-c", "1", "-W", "2", addressOf(to, family)]));
    times.push(Number(/time=([\d.]+)/.exec(answer)?.[1]));
  }
  const slowest = Math.max(...times).toFixed(2);
  return { summary: `${times.length} of ${pairs.length} pairs responded, the slowest in ${slowest} ms` };
}

/** The first pod serves a file over HTTP; the last one fetches it, in each family. */
export async function transferFile({ host }: DemoEnvironment, pods: readonly Pod[]): Promise<StepResult> {
  const [server, client] = [pods[0], pods.at(-1)];
  if (server === undefined || client === undefined) throw new Error("Cannot transfer a file: there are no pods");
  const bun = [process.execPath, join(import.meta.dir, "transfer.process.ts")];
  const serving = Bun.spawn([...host.enter, ...inside(server, [...bun, "serve", String(FILE_BYTES)])], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  await serving.stdout.getReader().read();
  const fetched = [];
  for (const family of [4, 6] as const) {
    const address = addressOf(server, family);
    const url = `http://${family === 6 ? `[${address}]` : address}/`;
    const answer = await host.must(inside(client, [...bun, "fetch", url]));
    fetched.push(answer.split(" ").slice(0, 2).join(" "));
  }
  serving.kill();
  await serving.exited;
  const [first = "", second] = fetched;
  if (first !== second || !first.startsWith(`${FILE_BYTES} `)) throw new Error(`Files differ: ${fetched.join(", ")}`);
  return { summary: `8 MiB from "${server.name}" to "${client.name}", over IPv4 and IPv6, identical` };
}

function inside(pod: Pod, command: readonly string[]): readonly string[] {
  return ["nsenter", `--net=${pod.attachment.netns}`, ...command];
}

export function addressOf({ addresses }: Pod, family: Family): string {
  return addresses.find((address) => addressFamily(address) === family) ?? "";
}
