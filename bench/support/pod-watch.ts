/**
 * Creates pods and follows them to Ready and to their end, through a watch of the
 * API: what `kubectl wait` does, without the start of a kubectl in the measured time.
 */
import type { ApiServer } from "../../test/support/kube-apiserver.ts";
import type { KubeCluster } from "../../test/support/kube-cluster.ts";

export interface PodWatch extends AsyncDisposable {
  /** Sends the manifest and waits until the API has accepted it. */
  create(pod: object): Promise<void>;
  /** Resolves when the event arrives; throws if it does not. */
  until(name: string, state: PodState): Promise<void>;
  /** The addresses of a pod that is Ready. */
  addresses(name: string): readonly string[];
}

export type PodState = "Ready" | "gone";

interface PodEvent {
  readonly type: string;
  readonly object: {
    readonly metadata?: { readonly name?: string };
    readonly status?: {
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
      readonly podIPs?: readonly { readonly ip: string }[];
    };
  };
}

const LIMIT_MILLISECONDS = 60_000;

export async function watchPods({ server, host }: KubeCluster, namespace: string): Promise<PodWatch> {
  const enter = ["nsenter", `--net=${host.netns}`, "--"];
  const url = `${server.url}/api/v1/namespaces/${namespace}/pods`;
  const watching = Bun.spawn([...enter, ...curl(server), "--no-buffer", `${url}?watch=1`], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  const states = new Map<string, PodState>();
  const addresses = new Map<string, readonly string[]>();
  const waiting = new Map<string, () => void>();
  const reading = readEvents(watching.stdout, (event) => {
    const state = stateAfter(event);
    const name = event.object.metadata?.name;
    if (name === undefined || state === undefined) return;
    states.set(name, state);
    addresses.set(
      name,
      (event.object.status?.podIPs ?? []).map(({ ip }) => ip),
    );
    waiting.get(`${name} ${state}`)?.();
  });
  return {
    async create(pod) {
      const post = ["--fail-with-body", "--header", "Content-Type: application/json", "--data", JSON.stringify(pod)];
      const child = Bun.spawn([...enter, ...curl(server), ...post, url], { stdout: "pipe", stderr: "pipe" });
      const [code, output] = await Promise.all([child.exited, new Response(child.stdout).text()]);
      if (code !== 0) throw new Error(`Cannot create a pod: ${output}`);
    },
    async until(name, state) {
      if (states.get(name) === state) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const limit = setTimeout(() => reject(new Error(`Pod ${name} is not ${state}`)), LIMIT_MILLISECONDS);
      waiting.set(`${name} ${state}`, resolve);
      await promise.finally(() => clearTimeout(limit));
      waiting.delete(`${name} ${state}`);
    },
    addresses: (name) => addresses.get(name) ?? [],
    async [Symbol.asyncDispose]() {
      watching.kill();
      await Promise.all([watching.exited, reading]);
    },
  };
}

function curl({ credentials }: ApiServer): readonly string[] {
  const { authority, admin } = credentials;
  return ["curl", "--silent", "--cacert", authority.cert, "--cert", admin.cert, "--key", admin.key];
}

async function readEvents(stream: ReadableStream<Uint8Array>, notify: (event: PodEvent) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) notify(JSON.parse(line));
  }
}

/** The state that the event tells of, if it is one that anybody waits for. */
export function stateAfter({ type, object }: PodEvent): PodState | undefined {
  if (type === "DELETED") return "gone";
  const isReady = object.status?.conditions?.some((each) => each.type === "Ready" && each.status === "True");
  return isReady ? "Ready" : undefined;
}
