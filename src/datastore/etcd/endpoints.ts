/**
 * The members of etcd this process may talk to, and which of them it talks to
 * now. It stays with one while that one answers; one that failed is remembered
 * and not tried again before all others have failed, too.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { redact } from "../../redaction.ts";
import type { User } from "./transport.ts";

export interface Endpoint {
  /** Scheme, host and port alone: what may be shown, and what requests go to. */
  readonly url: string;
  readonly user: User | undefined;
}

/** Takes an address apart; user and password leave it, so that no message shows them. */
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

  /** How many attempts have failed so far, at whatever endpoint. */
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

  /** Moves on from an endpoint that failed. "round over": all have failed, and the round begins anew. */
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
