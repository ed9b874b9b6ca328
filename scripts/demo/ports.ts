/** The chained plugins at work: a port of the host that leads to a pod, and a pod that may only send so fast. */
import { join } from "node:path";
import type { JsonObject } from "../../src/cni/json.ts";
import { namespaces, type Pod } from "./pods.ts";
import type { Seen } from "./screen.ts";
import type { Stage } from "./stage.ts";

const FILE_BYTES = 1024 * 1024;
const RATE = 8_000_000;
/** Of what the shaper lets through, a part is headers; the first bytes pass as a burst. */
const FASTEST = RATE * 1.25;

export async function openHostPort(stage: Stage): Promise<Seen> {
  const { host } = stage;
  // Without an address of its own the host could ask nobody.
  await host.must(["ip", "address", "replace", "192.0.2.1/32", "dev", "lo"]);
  const capabilities = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };
  const seconds = await fetchFrom(stage, "door", capabilities, 8080);
  return { seen: `127.0.0.1:8080 leads to "door": 1 MiB at ${megabits(seconds)} Mbit/s` };
}

export async function shapePod(stage: Stage): Promise<Seen> {
  const capabilities = {
    portMappings: [{ hostPort: 8081, containerPort: 80, protocol: "tcp" }],
    bandwidth: { egressRate: RATE, egressBurst: RATE / 50 },
  };
  const seconds = await fetchFrom(stage, "slow", capabilities, 8081);
  const rate = megabits(seconds);
  if (rate * 1_000_000 > FASTEST) throw new Error(`"slow" may send ${RATE / 1_000_000} Mbit/s, yet sent ${rate}`);
  return { seen: `"slow" may send ${RATE / 1_000_000} Mbit/s: 1 MiB takes ${seconds.toFixed(1)} s, ${rate} Mbit/s` };
}

/** Starts a pod that serves a file, fetches it by the port, and ends the pod; the seconds of the transfer. */
async function fetchFrom(stage: Stage, name: string, capabilities: JsonObject, port: number): Promise<number> {
  const { host } = stage;
  const maker = namespaces(stage);
  const pod = await maker.start(name, capabilities);
  const serving = await serveIn(stage, pod);
  const answer = await host.must([...TRANSFER, "fetch", `http://127.0.0.1:${port}/`]);
  serving.kill();
  await serving.exited;
  await maker.stop(pod);
  const [length, , milliseconds] = answer.trim().split(" ").map(Number);
  if (length !== FILE_BYTES || milliseconds === undefined) throw new Error(`Port ${port} gave ${answer}`);
  return milliseconds / 1000;
}

const TRANSFER = [process.execPath, join(import.meta.dir, "transfer.process.ts")];

async function serveIn({ host }: Stage, { attachment }: Pod): Promise<Bun.Subprocess> {
  const command = ["nsenter", `--net=${attachment.netns}`, ...TRANSFER, "serve", String(FILE_BYTES)];
  const serving = Bun.spawn([...host.enter, ...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  await serving.stdout.getReader().read();
  return serving;
}

function megabits(seconds: number): number {
  return Number(((FILE_BYTES * 8) / seconds / 1_000_000).toFixed(1));
}
