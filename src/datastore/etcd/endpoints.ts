/**
 * The etcd members this process may use, and the one it uses now. It keeps an
 * endpoint while that one responds. A failed endpoint is not tried again until
 * all others have failed, too.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { redact } from "../../redaction.ts";
import type { User } from "./transport.ts";

export interface Endpoint {
  /** Only scheme, host and port: safe to show, and where requests are sent. */
  readonly url: string;
  readonly user: User | undefined;
}

/** Parses an address. User and password are removed from the URL, so that no message shows them. */
export function parseEndpoint(text: string): Endpoint {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    throw new PluginError(
      "config-invalid",
      `Cannot use etcd endpoint ${quoted(redact(text))}: not an http or https address`,
    );
  }
  const name = decodeURIComponent(url.username);
  const user = name === "" ? undefined : { name, password: decodeURIComponent(url.password) };
  return { url: `${url.protocol}//${url.host}`, user };
}

export class EndpointRing {
  private readonly failed = new Set<Endpoint>();
  private failedAttempts = 0;

  constructor(
    private readonly endpoints: readonly Endpoint[],
    private position = 0,
  ) {
    if (endpoints.length === 0) throw new PluginError("config-invalid", "Cannot use etcd: no endpoint is given");
  }

  /** The number of failed attempts so far, at any endpoint. */
  get failures(): number {
    return this.failedAttempts;
  }

  get size(): number {
    return this.endpoints.length;
  }

  get current(): Endpoint {
    const endpoint = this.endpoints[this.position % this.endpoints.length];
    if (!endpoint) throw new PluginError("internal", "Cannot choose an etcd endpoint: there is none");
    return endpoint;
  }

  /** Selects the next endpoint after a failure. "round over": all have failed, and a new round starts. */
  giveUp(endpoint: Endpoint): "another" | "round over" {
    this.failedAttempts += 1;
    this.failed.add(endpoint);
    const isRoundOver = this.failed.size >= this.endpoints.length;
    if (isRoundOver) this.failed.clear();
    while (this.current === endpoint || this.failed.has(this.current)) {
      this.position += 1;
      if (this.endpoints.length === 1) break;
    }
    return isRoundOver ? "round over" : "another";
  }
}
