/**
 * Keeps the access of an account to the orchestrator's API valid: renews its token long before it ends, follows the CA and
 * the credentials for etcd. A file is replaced as a whole; if something fails, it stays as it is, and is tried again.
 */
import { readText } from "../../linux/files.ts";
import { placeFile } from "../../linux/place-file.ts";
import type { AccountToken } from "./account-token.ts";
import { boundNodeUid, pluginKubeconfig, readPluginKubeconfig, tokenExpiry } from "./kubeconfig.ts";
import { type InstalledEntry, secretEntry } from "./layout.ts";

interface RenewalMeans {
  /** Whether an installation has written the token, and it has not been uninstalled. */
  readonly isInstalled: () => boolean;
  readonly requestToken: (signal: AbortSignal) => Promise<AccountToken>;
  /** Of the Node that tokens are bound to; `undefined` while there is none. */
  readonly readNodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string) => void;
  /** Problems are reported once. */
  readonly problems: { report(message: string): void; forget(): void };
}

/** Of a plugin whose kubeconfig contains everything. */
export interface AccessMeans extends RenewalMeans {
  /** Of the kubeconfig, on this host. */
  readonly path: string;
  readonly server: string;
  /** The current CA of the API. */
  readonly readAuthority: () => string;
  /** Files that are copies of others. */
  readonly copies: () => readonly InstalledEntry[];
}

export interface TokenMeans extends RenewalMeans {
  /** For messages: "the plugin's access". */
  readonly title: string;
  /** The token in use; `undefined` if there is none that can be used. */
  readonly readToken: () => string | undefined;
  readonly placeToken: (token: string) => void;
}

/** How often CA and copies are compared. */
const CHECK_MILLISECONDS = 60_000;
const RETRY_MILLISECONDS = 30_000;
const SHORTEST_MILLISECONDS = 5_000;

export function keepPluginAccess(means: AccessMeans, signal: AbortSignal): Promise<void> {
  const { path, server, readAuthority, copies } = means;
  return keepToken(
    {
      ...means,
      title: "the plugin's access",
      readToken() {
        for (const copy of copies()) writeIfChanged(copy);
        const authority = readAuthority();
        const current = readPluginKubeconfig(readText(path) ?? "");
        return current?.server === server && current.authority === authority ? current.token : undefined;
      },
      placeToken: (token) => placeSecret(path, pluginKubeconfig({ server, authority: readAuthority(), token })),
    },
    signal,
  );
}

/** A token that is alone in a file. */
export function tokenInFile(path: string): Pick<TokenMeans, "readToken" | "placeToken"> {
  return { readToken: () => readText(path)?.trim() || undefined, placeToken: (token) => placeSecret(path, token) };
}

function placeSecret(path: string, text: string): void {
  placeFile(path, secretEntry(path, text).placed);
}

export async function keepToken(means: TokenMeans, signal: AbortSignal): Promise<void> {
  const { title, now, random, wait, problems } = means;
  let [known, due]: [token: string | undefined, due: number] = [undefined, now()];
  while (!signal.aborted) {
    let pause = CHECK_MILLISECONDS;
    try {
      if (means.isInstalled()) {
        const token = means.readToken();
        if (token !== known) [known, due] = [token, firstRenewal(token, now(), random())];
        const renewed = await renewIfNeeded(means, { token, due }, signal);
        if (renewed !== undefined) [known, due] = [renewed.token, nextRenewal(now(), renewed.expires, random())];
        pause = Math.min(CHECK_MILLISECONDS, due - now());
      }
      problems.forget();
    } catch (failure) {
      if (signal.aborted) return;
      problems.report(`Cannot renew ${title}: ${failure instanceof Error ? failure.message : failure}`);
      pause = RETRY_MILLISECONDS;
    }
    await wait(Math.max(pause, SHORTEST_MILLISECONDS), signal);
  }
}

/** After a quarter to a half of what is left, so that the nodes of a cluster do not all ask at the same time. */
export function nextRenewal(now: number, expires: number, random: number): number {
  return now + Math.max((expires - now) / 4, 0) * (1 + random);
}

function firstRenewal(token: string | undefined, now: number, random: number): number {
  const expires = token === undefined ? undefined : tokenExpiry(token);
  return expires === undefined ? now : nextRenewal(now, expires, random);
}

/** Returns the new token; `undefined` if the current one is kept. */
async function renewIfNeeded(
  means: TokenMeans,
  { token, due }: { readonly token: string | undefined; readonly due: number },
  signal: AbortSignal,
): Promise<AccountToken | undefined> {
  if (token !== undefined && means.now() < due && (await isOfCurrentNode(means, token, signal))) return undefined;
  const renewed = await means.requestToken(signal);
  means.placeToken(renewed.token);
  means.log(`Renewed ${means.title} to the Kubernetes API, until ${new Date(renewed.expires).toISOString()}`);
  return renewed;
}

/** A token is not accepted any more when its Node is deleted, also if a Node of the same name is created. */
async function isOfCurrentNode({ readNodeUid }: TokenMeans, token: string, signal: AbortSignal): Promise<boolean> {
  const bound = boundNodeUid(token);
  if (bound === undefined) return true;
  const current = await readNodeUid(signal).catch(() => undefined);
  return current === undefined || current === bound;
}

function writeIfChanged({ path, placed }: InstalledEntry): void {
  if (placed.kind === "text" && readText(path) !== placed.text) placeFile(path, placed);
}
