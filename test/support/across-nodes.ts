/** What pods of different nodes do to each other in tests and in the demo. */
import { POD_PORT } from "./kube-pods.ts";
import { NAMESPACE, type Pods } from "./pods-in-namespace.ts";
import { pollUntil } from "./poll.ts";

export type Outcome = "open" | "closed";

interface Pinged {
  readonly sent: number;
  readonly received: number;
}

/** Pings from a pod, 10 ms apart; throws if there is no reply at all. */
export async function pingFrom(pods: Pods, from: string, address: string, count: number): Promise<Pinged> {
  const program = address.includes(":") ? "ping6" : "ping";
  return pingedIn(await pods.exec(from, program, "-i", "0.01", "-c", `${count}`, "-W", "1", address));
}

/** From the summary of busybox's ping. */
function pingedIn(text: string): Pinged {
  const [, sent, received] = /(\d+) packets transmitted, (\d+) packets received/.exec(text) ?? [];
  if (sent === undefined || received === undefined) throw new Error(`No summary of ping: ${text}`);
  return { sent: Number(sent), received: Number(received) };
}

/**
 * Waits until each address has replied to one ping; returns their round trips in milliseconds.
 * Routes follow a new block soon, not at once.
 */
export async function untilPings(pods: Pods, from: string, addresses: readonly string[]): Promise<readonly number[]> {
  const ping = (address: string) => `ping${address.includes(":") ? "6" : ""} -c 1 -W 1 ${address}`;
  let times: readonly number[] = [];
  const haveReplied = async () => {
    const printed = await pods.exec(from, "sh", "-ec", addresses.map(ping).join("\n"));
    times = [...printed.matchAll(/time=([\d.]+) ms/g)].map(([, time]) => Number(time));
    return times.length === addresses.length;
  };
  await pollUntil(haveReplied, `replies to ${from} from ${addresses.join(", ")}`);
  return times;
}

/** Waits until TCP connections from the pod to each address are all open, or all closed. */
export async function untilConnects(
  pods: Pods,
  { from, to, port = POD_PORT }: { readonly from: string; readonly to: readonly string[]; readonly port?: number },
  wanted: Outcome,
): Promise<void> {
  const connect = (address: string): Promise<Outcome> =>
    pods.exec(from, "/agnhost", "connect", `${bracketed(address)}:${port}`, "--timeout=1s").then(
      () => "open",
      () => "closed",
    );
  const agree = async () => (await Promise.all(to.map(connect))).every((outcome) => outcome === wanted);
  await pollUntil(agree, `connections from ${from} to ${to.join(", ")} to be ${wanted}`);
}

/** The address that the server sees, for an HTTP request from the pod to this address. */
export async function sourceSeenAt(pods: Pods, from: string, address: string, port = POD_PORT): Promise<string> {
  const request = `printf 'GET /clientip HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} ${port}`;
  const body = (await pods.exec(from, "sh", "-c", request)).split("\r\n\r\n")[1] ?? "";
  return body.slice(0, body.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}

export interface ServicePlan {
  readonly name: string;
  /** The label `app` of its pods. */
  readonly app: string;
  readonly nodePort: number;
}

/** In both families if the cluster has both. */
export function serviceManifest({ name, app, nodePort }: ServicePlan): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: NAMESPACE },
    spec: {
      type: "NodePort",
      selector: { app },
      ipFamilyPolicy: "PreferDualStack",
      ports: [{ port: POD_PORT, nodePort }],
    },
  });
}

/** A policy for the pods with this label `app`, which then accept only what these rules allow. */
export function policyManifest(app: string, ingress: readonly object[]): string {
  return JSON.stringify({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: app, namespace: NAMESPACE },
    spec: { podSelector: { matchLabels: { app } }, policyTypes: ["Ingress"], ingress },
  });
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
