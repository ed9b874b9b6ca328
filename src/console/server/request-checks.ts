/**
 * Where a request may come from. A browser sends whatever a foreign page wants to any address, with the reader's cookie; so every
 * request shows that it is meant for this console and comes from its own page:
 *
 *   Host            one of the names that the console has: a foreign name may lead to its address (DNS rebinding)
 *   Origin          its own, if there is one
 *   Sec-Fetch-Site  its own page; the document itself may be opened from anywhere, but in no frame
 *
 * Pure.
 */
import { quoted } from "../../quote.ts";
import { Refusal } from "./refusal.ts";

export interface RequestHead {
  readonly method: string;
  /** As it was sent. */
  readonly target: string;
  /** Names and values, one after another. */
  readonly rawHeaders: readonly string[];
}

export interface Site {
  readonly scheme: "http" | "https";
  /** `name`: in lower case, an IPv6 address in brackets. `port`: absent if it is that of the scheme. */
  readonly isOwnHost: (name: string, port: number | undefined) => boolean;
}

/** Nobody can make these names lead elsewhere. */
export const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

export interface CheckedRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly parameters: URLSearchParams;
  /** The only header of the name. Throws if there are several. */
  readonly header: (name: string) => string | undefined;
}

/** Throws `Refusal`. */
export function checkRequest({ method, target, rawHeaders }: RequestHead, site: Site): CheckedRequest {
  const header = (name: string) => onlyHeader(rawHeaders, name);
  const host = header("host")?.toLowerCase() ?? "";
  if (!isOwn(host, site))
    throw new Refusal(
      421,
      `This console is not called ${quoted(host)}`,
      "Use a name of its Service or of its certificate; more names: spec.console.hosts of the Installation",
    );
  if (header("upgrade") !== undefined) throw new Refusal(400, "The console has no WebSockets");
  if (method !== "GET" && method !== "POST")
    throw new Refusal(405, `The method ${quoted(method)} is not supported; use GET or POST`);
  // Not `//name/`, which is another host for some readers of addresses.
  if (!/^\/(?!\/)/.test(target)) throw new Refusal(400, "The target of the request is not a path");
  const origin = header("origin")?.toLowerCase();
  if (origin !== undefined && origin !== `${site.scheme}://${host}`)
    throw new Refusal(403, `Requests of pages of ${quoted(origin)} are not answered`);
  const { pathname, searchParams } = new URL(target, "http://localhost");
  checkFetch(pathname, header);
  return { method, path: pathname, parameters: searchParams, header };
}

function isOwn(host: string, { isOwnHost }: Site): boolean {
  const [, name, port] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/.exec(host) ?? [];
  return name !== undefined && isOwnHost(name, port === undefined ? undefined : Number(port));
}

function checkFetch(path: string, header: CheckedRequest["header"]): void {
  const [site, mode, destination] = ["site", "mode", "dest"].map((what) => header(`sec-fetch-${what}`));
  if (destination !== undefined && FRAMES.has(destination))
    throw new Refusal(403, "The console is not shown in other pages", "Open it in a window of its own");
  if (site === undefined || site === "same-origin") return;
  const isOpened = mode === "navigate" && destination === "document";
  if (!path.startsWith("/api/") && (site === "none" || isOpened)) return;
  throw new Refusal(403, "Only the page of the console itself is answered");
}

const FRAMES: ReadonlySet<string> = new Set(["iframe", "frame", "fencedframe", "object", "embed"]);

function onlyHeader(rawHeaders: readonly string[], name: string): string | undefined {
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
  if (values.length > 1) throw new Refusal(400, `The header "${name}" is there more than once`);
  return values[0];
}
