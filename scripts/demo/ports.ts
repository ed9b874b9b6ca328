/** The chained plugins: a host port that is mapped to a pod, and a pod with a bandwidth limit. */
import { join } from "node:path";
import type { JsonObject } from "../../src/cni/json.ts";
import type { DemoEnvironment } from "./environment.ts";
import type { StepResult } from "./output.ts";
import { namespaces, type Pod } from "./pod-starters.ts";

const FILE_BYTES = 1024 * 1024;
const RATE = 8_000_000;
/** The limit includes headers, and the first bytes pass as a burst. */
const FASTEST = RATE * 1.25;

export async function openHostPort(demo: DemoEnvironment): Promise<StepResult> {
  const { host } = demo;
  // Without its own address the host could not connect to the pod.
  await host.must(["ip", "address", "replace", "192.0.2.1/32", "dev", "lo"]);
  const capabilities = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };
  const seconds = await fetchFrom(demo, "door", capabilities, 8080);
  return { summary: `127.0.0.1:8080 is mapped to "door": 1 MiB at ${megabits(seconds)} Mbit/s` };
}

export async function shapePod(demo: DemoEnvironment): Promise<StepResult> {
  const capabilities = {
    portMappings: [{ hostPort: 8081, containerPort: 80, protocol: "tcp" }],
    bandwidth: { egressRate: RATE, egressBurst: RATE / 50 },
  };
  const seconds = await fetchFrom(demo, "slow", capabilities, 8081);
  const rate = megabits(seconds);
  if (rate * 1_000_000 > FASTEST) throw new Error(`"slow" is limited to ${RATE / 1_000_000} Mbit/s, but sent ${rate}`);
  return {
    summary: `"slow" is limited to ${RATE / 1_000_000} Mbit/s: 1 MiB takes ${seconds.toFixed(1)} s, ${rate} Mbit/s`,
  };
}

/** Starts a pod that serves a file, fetches it through the port, and stops the pod; returns the seconds of the transfer. */
async function fetchFrom(demo: DemoEnvironment, name: string, capabilities: JsonObject, port: number): Promise<number> {
  const { host } = demo;
  const starter = namespaces(demo);
  const pod = await starter.start(name, capabilities);
  const serving = await serveIn(demo, pod);
  const answer = await host.must([...TRANSFER, "fetch", `http://127.0.0.1:${port}/`]);
  serving.kill();
  await serving.exited;
  await starter.stop(pod);
  const [length, , milliseconds] = answer.trim().split(" ").map(Number);
  if (length !== FILE_BYTES || milliseconds === undefined) throw new Error(`Port ${port} returned ${answer}`);
  return milliseconds / 1000;
}

const TRANSFER = [process.execPath, join(import.meta.dir, "transfer.process.ts")];

async function serveIn({ host }: DemoEnvironment, { attachment }: Pod): Promise<Bun.Subprocess> {
  const command = ["nsenter", `--net=${attachment.netns}`, ...TRANSFER, "serve", String(FILE_BYTES)];
  const serving = Bun.spawn([...host.enter, ...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  await serving.stdout.getReader().read();
  return serving;
}

function megabits(seconds: number): number {
  return Number(((FILE_BYTES * 8) / seconds / 1_000_000).toFixed(1));
}
