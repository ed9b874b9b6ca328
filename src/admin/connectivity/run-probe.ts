/** Tries one probe, on a connection of its own: an earlier one might pass a policy that a new one does not. */
import { Resolver } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAddress } from "../../ip/address.ts";
import { isPassing, knownMtu, largestPassing } from "../../linux/measure-path.ts";
import { openDatagramSocket, SMALL_PACKET } from "../../linux/unchecked-datagrams.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { Probe, ProbeResult } from "./probe.ts";

export interface ProbeOptions {
  readonly timeoutMilliseconds: number;
  /** The text of the pod's resolv.conf. */
  readonly resolverConfig: string;
}

/** Larger than any packet, so that packets of full size are needed in both directions. */
export const PADDING_BYTES = 16_000;

const DATAGRAM_PATIENCE = { tries: 3, replyMilliseconds: 300 } as const;

export async function runProbe(probe: Probe, options: ProbeOptions): Promise<ProbeResult> {
  if (probe.kind === "resolve") return resolveName(probe.host, options);
  const result = await exchange(probe, options.timeoutMilliseconds);
  const isLost = result.kind === "timeout" || result.kind === "incomplete";
  const datagrams = isLost && probe.kind === "echo" ? await measure(probe) : undefined;
  return isLost && datagrams !== undefined ? { ...result, datagrams } : result;
}

/** `undefined`: this pod has no way to the place. */
async function measure({ host, port }: { readonly host: string; readonly port: number }) {
  const address = parseAddress(host);
  if (address === undefined) return undefined;
  try {
    const socket = openDatagramSocket(address, port);
    try {
      const patience = {
        ...DATAGRAM_PATIENCE,
        wait: (milliseconds: number) => sleep(milliseconds),
        signal: new AbortController().signal,
      };
      if (!(await isPassing(socket, SMALL_PACKET, patience))) return { largest: 0, mtu: socket.mtu() };
      const mtu = await knownMtu(socket, patience);
      return { largest: (await largestPassing(socket, { family: address.family, mtu }, patience)) ?? 0, mtu };
    } finally {
      socket.close();
    }
  } catch {
    return undefined;
  }
}

function exchange({ kind, host, port }: Exclude<Probe, { kind: "resolve" }>, limit: number): Promise<ProbeResult> {
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { promise, resolve } = Promise.withResolvers<ProbeResult>();
  const socket = connect({ host, port });
  let isConnected = false;
  let received = "";
  const timer = setTimeout(() => {
    const seconds = limit / 1_000;
    resolve(
      isConnected
        ? { kind: "incomplete", message: `${place} accepts connections, but no complete response within ${seconds} s` }
        : { kind: "timeout", message: `no connection to ${place} within ${seconds} s` },
    );
  }, limit);
  socket.on("connect", () => {
    isConnected = true;
    if (kind === "connect") resolve({ kind: "ok" });
    else sendRequest(socket, place);
  });
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
    const response = responseIn(received);
    if (response !== undefined) resolve(response);
  });
  socket.on("close", () =>
    resolve({ kind: "incomplete", message: `${place} closed the connection before it replied` }),
  );
  socket.on("error", (error) => resolve(failureOf(error, place)));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

function sendRequest(socket: Socket, place: string): void {
  const head = ["POST / HTTP/1.1", `Host: ${place}`, "Connection: close", `Content-Length: ${PADDING_BYTES}`];
  socket.write(`${head.join("\r\n")}\r\n\r\n${"x".repeat(PADDING_BYTES)}`);
}

/** `undefined` as long as it is not complete. */
function responseIn(text: string): ProbeResult | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  try {
    const body = parseJson(text.slice(end + 4));
    if (!isObject(body)) return undefined;
    return typeof body["seenAs"] === "string" ? { kind: "ok", seenAs: body["seenAs"] } : { kind: "ok" };
  } catch {
    return undefined;
  }
}

function failureOf(error: Error, place: string): ProbeResult {
  const code = "code" in error ? String(error.code) : "";
  // The runtime reports every connection that fails at once like this, also one without a route.
  if (code === "ECONNREFUSED")
    return { kind: "refused", message: `${place} refuses connections, or there is no route` };
  return { kind: "failed", message: `connection to ${place} failed: ${code || error.message}` };
}

async function resolveName(name: string, { timeoutMilliseconds, resolverConfig }: ProbeOptions): Promise<ProbeResult> {
  const { servers, domain } = resolverIn(resolverConfig);
  if (servers.length === 0) return { kind: "unresolved", message: "the pod's resolv.conf has no name server" };
  const resolver = new Resolver({ timeout: timeoutMilliseconds, tries: 1 });
  resolver.setServers([...servers]);
  const fullName = domain === undefined ? name : `${name}.${domain}`;
  const asked = await Promise.allSettled([resolver.resolve4(fullName), resolver.resolve6(fullName)]);
  if (asked.some((each) => each.status === "fulfilled" && each.value.length > 0)) return { kind: "ok" };
  const [first] = asked.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  const code = isObject(first) && typeof first["code"] === "string" ? first["code"] : "no address";
  return { kind: "unresolved", message: `name server ${servers.join(", ")} does not resolve "${fullName}" (${code})` };
}

/** The domain of the cluster is the one of the search domain `svc.DOMAIN`. */
function resolverIn(text: string): { readonly servers: readonly string[]; readonly domain?: string } {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+/));
  const servers = lines.flatMap(([word, server]) => (word === "nameserver" && server !== undefined ? [server] : []));
  const searched = lines.flatMap(([word, ...domains]) => (word === "search" ? domains : []));
  const domain = searched.find((each) => each.startsWith("svc."))?.slice("svc.".length);
  return domain === undefined ? { servers } : { servers, domain };
}
