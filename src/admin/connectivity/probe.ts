/**
 * What a test pod tries again and again, and what it reports about each attempt.
 * The test passes the probes to the pod as one argument, and reads the reports in the log of the pod.
 */
import * as v from "valibot";
import { decodeShape } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

const probe = v.variant("kind", [
  /** Sends a request to an echo server of this test and reads its whole response. */
  v.object({ kind: v.literal("echo"), host: v.string(), port: v.number() }),
  /** Opens a connection, and sends nothing. */
  v.object({ kind: v.literal("connect"), host: v.string(), port: v.number() }),
  /** Resolves a name of the cluster (without the domain of the cluster). */
  v.object({ kind: v.literal("resolve"), host: v.string() }),
]);

export type Probe = v.InferOutput<typeof probe>;

const probeResult = v.variant("kind", [
  v.object({
    kind: v.literal("ok"),
    /** The source address that the server saw. */
    seenAs: v.optional(v.string()),
  }),
  v.object({
    kind: v.picklist(["timeout", "refused", "incomplete", "unresolved", "failed"]),
    message: v.string(),
    /** If TCP is lost: of datagrams to the same place that need nothing from network cards. `largest`: 0 if all are lost. */
    datagrams: v.optional(v.object({ largest: v.number(), mtu: v.number() })),
  }),
]);

export type ProbeResult = v.InferOutput<typeof probeResult>;

const round = v.object({ round: v.number(), results: v.record(v.string(), probeResult) });

/** Every probe of a pod tried once. The results are keyed by `probeKey()`. */
export type Round = v.InferOutput<typeof round>;

export function probeKey(each: Probe): string {
  return each.kind === "resolve" ? `resolve ${each.host}` : `${each.kind} ${each.host} ${each.port}`;
}

/** `undefined` if the text is not a list of probes. */
export function decodeProbes(text: string): readonly Probe[] | undefined {
  try {
    const decoded = decodeShape(v.array(probe), parseJson(text));
    return decoded.ok ? decoded.value : undefined;
  } catch {
    return undefined;
  }
}

/** The last complete round in the log of a pod. */
export function lastRound(log: string): Round | undefined {
  return log
    .split("\n")
    .reverse()
    .map(decodeRound)
    .find((each) => each !== undefined);
}

function decodeRound(line: string): Round | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const decoded = decodeShape(round, parseJson(line));
    return decoded.ok ? decoded.value : undefined;
  } catch {
    return undefined;
  }
}
