/**
 * Whoever reaches a port may try tokens there. A token that was refused is not asked about again for a minute, and an address from
 * which many were refused, or several are being asked about, has to wait: so it takes neither the places of others, nor the time of
 * the API server. What is remembered is bounded, and contains no token.
 */
import { createHash } from "node:crypto";

export interface RefusedToken {
  readonly kind: "refused";
  /** Without the token. */
  readonly why: string;
}

export interface AttemptLimits {
  readonly mostAtOnce: number;
  /** In a minute. */
  readonly mostRefused: number;
}

const REFUSED_MILLISECONDS = 60_000;
const OF_ADDRESS: AttemptLimits = { mostAtOnce: 4, mostRefused: 20 };
const UNLIMITED: AttemptLimits = { mostAtOnce: Number.POSITIVE_INFINITY, mostRefused: Number.POSITIVE_INFINITY };
const MOST_REMEMBERED = 10_000;
const EVERYBODY = "";

interface Refusals {
  /** When the first one was. */
  readonly since: number;
  readonly count: number;
  readonly why: string;
}

export class TokenAttempts<Verified extends { readonly kind: string }> {
  private readonly tokens = new Map<string, Refusals>();
  private readonly addresses = new Map<string, Refusals>();
  private readonly all = new Map<typeof EVERYBODY, Refusals>();
  private readonly asking = new Map<string, number>();
  private askingAll = 0;

  /** `ofAll`: of all addresses together. */
  constructor(
    private readonly verify: (token: string) => Promise<Verified | RefusedToken>,
    private readonly elapsed: () => number,
    private readonly ofAll: AttemptLimits = UNLIMITED,
  ) {}

  /** `undefined`: later. Throws if `verify` does. */
  async verifyFrom(address: string, token: string): Promise<Verified | RefusedToken | undefined> {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.recent(this.tokens, hash);
    if (known !== undefined) return { kind: "refused", why: known.why };
    const atOnce = this.asking.get(address) ?? 0;
    if (atOnce >= OF_ADDRESS.mostAtOnce || this.askingAll >= this.ofAll.mostAtOnce) return undefined;
    if (this.hasMany(this.addresses, address, OF_ADDRESS) || this.hasMany(this.all, EVERYBODY, this.ofAll))
      return undefined;
    this.asking.set(address, atOnce + 1);
    this.askingAll += 1;
    try {
      const verified = await this.verify(token);
      if (isRefused(verified)) {
        this.note(this.tokens, hash, verified.why);
        this.note(this.addresses, address, verified.why);
        this.note(this.all, EVERYBODY, verified.why);
      }
      return verified;
    } finally {
      this.askingAll -= 1;
      const left = (this.asking.get(address) ?? 1) - 1;
      if (left > 0) this.asking.set(address, left);
      else this.asking.delete(address);
    }
  }

  private hasMany(from: Map<string, Refusals>, key: string, { mostRefused }: AttemptLimits): boolean {
    return (this.recent(from, key)?.count ?? 0) >= mostRefused;
  }

  private recent(from: Map<string, Refusals>, key: string): Refusals | undefined {
    const known = from.get(key);
    return known !== undefined && this.elapsed() - known.since < REFUSED_MILLISECONDS ? known : undefined;
  }

  private note(into: Map<string, Refusals>, key: string, why: string): void {
    const { since = this.elapsed(), count = 0 } = this.recent(into, key) ?? {};
    into.delete(key);
    into.set(key, { since, count: count + 1, why });
    // The oldest one is first.
    for (const oldest of into.keys()) {
      if (into.size <= MOST_REMEMBERED) break;
      into.delete(oldest);
    }
  }
}

function isRefused(verified: { readonly kind: string }): verified is RefusedToken {
  return verified.kind === "refused";
}
