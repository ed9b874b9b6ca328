/**
 * Keeps the plugin's access to the orchestrator's API valid: renews its token long before it ends, follows the CA and the
 * credentials for etcd. A file is replaced as a whole; if something fails, it stays as it is, and is tried again.
 */
import { readText } from "../../linux/files.ts";
import { placeFile } from "../../linux/place-file.ts";
import { boundNodeUid, pluginKubeconfig, readPluginKubeconfig, tokenExpiry } from "./kubeconfig.ts";
import { type InstalledEntry, secretEntry } from "./layout.ts";
import type { PluginToken } from "./plugin-token.ts";

export interface AccessMeans {
  /** Of the kubeconfig, on this host. */
  readonly path: string;
  readonly server: string;
  /** Whether an installation has written the kubeconfig, and it has not been uninstalled. */
  readonly isInstalled: () => boolean;
  /** The current CA of the API. */
  readonly readAuthority: () => string;
  readonly requestToken: (signal: AbortSignal) => Promise<PluginToken>;
  /** Of the Node that tokens are bound to; `undefined` while there is none. */
  readonly readNodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  /** Files that are copies of others. */
  readonly copies: () => readonly InstalledEntry[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string) => void;
  /** Problems are reported once. */
  readonly problems: { report(message: string): void; forget(): void };
}

/** How often CA and copies are compared. */
const CHECK_MILLISECONDS = 60_000;
const RETRY_MILLISECONDS = 30_000;
const SHORTEST_MILLISECONDS = 5_000;

export async function keepPluginAccess(means: AccessMeans, signal: AbortSignal): Promise<void> {
  const { now, random, wait, problems } = means;
  let due = firstRenewal(means);
  while (!signal.aborted) {
    let pause = CHECK_MILLISECONDS;
    try {
      if (means.isInstalled()) {
        for (const copy of means.copies()) writeIfChanged(copy);
        const renewed = await renewIfNeeded(means, due, signal);
        if (renewed !== undefined) due = nextRenewal(now(), renewed, random());
        pause = Math.min(CHECK_MILLISECONDS, due - now());
      }
      problems.forget();
    } catch (failure) {
      if (signal.aborted) return;
      problems.report(`Cannot renew the plugin's access: ${failure instanceof Error ? failure.message : failure}`);
      pause = RETRY_MILLISECONDS;
    }
    await wait(Math.max(pause, SHORTEST_MILLISECONDS), signal);
  }
}

/** After a quarter to a half of what is left, so that the nodes of a cluster do not all ask at the same time. */
export function nextRenewal(now: number, expires: number, random: number): number {
  return now + Math.max((expires - now) / 4, 0) * (1 + random);
}

function firstRenewal({ path, now, random }: AccessMeans): number {
  const current = readPluginKubeconfig(readText(path) ?? "");
  const expires = current && tokenExpiry(current.token);
  return expires === undefined ? now() : nextRenewal(now(), expires, random());
}

/** Returns when the new token ends; `undefined` if the current one is kept. */
async function renewIfNeeded(means: AccessMeans, due: number, signal: AbortSignal): Promise<number | undefined> {
  const { path, server } = means;
  const authority = means.readAuthority();
  const current = readPluginKubeconfig(readText(path) ?? "");
  const isRight = current !== undefined && current.server === server && current.authority === authority;
  if (isRight && means.now() < due && (await isOfCurrentNode(means, current.token, signal))) return undefined;
  const { token, expires } = await means.requestToken(signal);
  placeFile(path, secretEntry(path, pluginKubeconfig({ server, authority, token })).placed);
  means.log(`Renewed the plugin's access to the orchestrator's API, until ${new Date(expires).toISOString()}`);
  return expires;
}

/** A token is not accepted any more when its Node is deleted, also if a Node of the same name is created. */
async function isOfCurrentNode({ readNodeUid }: AccessMeans, token: string, signal: AbortSignal): Promise<boolean> {
  const bound = boundNodeUid(token);
  if (bound === undefined) return true;
  const current = await readNodeUid(signal).catch(() => undefined);
  return current === undefined || current === bound;
}

function writeIfChanged({ path, placed }: InstalledEntry): void {
  if (placed.kind === "text" && readText(path) !== placed.text) placeFile(path, placed);
}
