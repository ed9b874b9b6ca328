/**
 * Who has which address, as the agent has told. What is not known is asked for, in batches, and remembered; the names that were
 * not needed for the longest time are forgotten. The addresses of this node are pushed by the agent, and always known.
 *
 * So many questions are asked in a second. Half of them are kept for addresses near one that has a name, so that a scan of
 * random addresses does not hide who the pods are.
 *
 * Pure: questions are collected here, and sent by the caller.
 */
import type { EndName } from "../../../flows/collector-messages.ts";
import type { FlowEnd } from "../../../flows/flow-record.ts";
import { type Family, formatAddress } from "../../../ip/address.ts";

/** What a record says of an end, beside address and port: shared by all records with it. */
export interface NamedEnd {
  readonly shown: Omit<FlowEnd, "address" | "port">;
  /** Its record in the datastore, as JSON. */
  readonly endpoint: string | undefined;
  readonly isLocal: boolean;
}

export const OUTSIDE: NamedEnd = { shown: { kind: "outside" }, endpoint: undefined, isLocal: false };

interface KnownName {
  end: NamedEnd | undefined;
  usedAt: number;
  askedAt: number;
}

export interface NameLimits {
  /** Names of others than this node's that are remembered. */
  readonly most: number;
  /** Keys asked for in a second. */
  readonly mostAskedPerSecond: number;
}

/** `asks near`: only for addresses that probably have a name. */
export type Asking = "asks" | "asks near" | "asks not";

const ASKED_AGAIN_MILLISECONDS = 5_000;
/** Of the questions of a second, for addresses that are not near a known one. */
const FAR_SHARE = 0.5;
const MOST_NETWORKS = 10_000;
/** This part of the names is forgotten at once: looking for the oldest takes time. */
const FORGOTTEN_PART = 4;

export class EndNames {
  readonly #known = new Map<string, KnownName>();
  readonly #local = new Map<string, NamedEnd>();
  readonly #localWorkloads = new Set<string>();
  #questions = new Set<string>();
  #forgotten: string[] = [];
  /** Where pods, hosts and Services are. */
  readonly #networks = new Set<string>();
  #second = 0;
  #askedInSecond = 0;
  #farInSecond = 0;

  constructor(private readonly limits: NameLimits) {}

  /** `undefined`: nobody has answered yet; asked for if that was not done before. */
  find(key: string, now: number, asking: Asking = "asks"): NamedEnd | undefined {
    if (asking === "asks not") return this.peek(key);
    const local = this.#local.get(key);
    if (local !== undefined) return local;
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.usedAt = now;
      if (
        known.end === undefined &&
        Math.abs(now - known.askedAt) > ASKED_AGAIN_MILLISECONDS &&
        this.#mayAsk(key, asking, now)
      )
        this.#ask(key, known, now);
      return known.end;
    }
    if (!this.#mayAsk(key, asking, now)) return undefined;
    const added = { end: undefined, usedAt: now, askedAt: now };
    this.#known.set(key, added);
    this.#ask(key, added, now);
    if (this.#known.size > this.limits.most) this.#forgetOldest();
    return undefined;
  }

  /** Never asks. */
  peek(key: string): NamedEnd | undefined {
    return this.#local.get(key) ?? this.#known.get(key)?.end;
  }

  isLocalWorkload(address: string): boolean {
    return this.#localWorkloads.has(address);
  }

  /** Answers, changes, and addresses of this node that nobody has asked for. */
  learn(names: readonly (readonly [key: string, name: EndName])[]): void {
    for (const [key, name] of names) {
      const end = namedEnd(name);
      if (HAS_NEIGHBOURS.has(name.kind) && this.#networks.size < MOST_NETWORKS) this.#networks.add(networkOf(key));
      const isWorkload = end.isLocal && (name.kind === "pod" || name.kind === "container");
      if (isWorkload) this.#localWorkloads.add(key);
      else this.#localWorkloads.delete(key);
      if (end.isLocal) this.#local.set(key, end);
      else this.#local.delete(key);
      const known = this.#known.get(key);
      if (end.isLocal || known === undefined) continue;
      known.end = end;
    }
  }

  /** The keys to ask for, since the last call. */
  takeQuestions(): readonly string[] {
    const questions = [...this.#questions];
    this.#questions = new Set();
    return questions;
  }

  /** The keys whose changes are not needed any more, since the last call. */
  takeForgotten(): readonly string[] {
    const forgotten = this.#forgotten;
    this.#forgotten = [];
    return forgotten;
  }

  #mayAsk(key: string, asking: Asking, now: number): boolean {
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) [this.#second, this.#askedInSecond, this.#farInSecond] = [second, 0, 0];
    const { mostAskedPerSecond } = this.limits;
    if (this.#askedInSecond >= mostAskedPerSecond) return false;
    if (this.#networks.has(networkOf(key))) return true;
    if (asking === "asks near" || this.#farInSecond >= mostAskedPerSecond * FAR_SHARE) return false;
    this.#farInSecond += 1;
    return true;
  }

  #ask(key: string, known: KnownName, now: number): void {
    known.askedAt = now;
    this.#askedInSecond += 1;
    this.#questions.add(key);
  }

  #forgetOldest(): void {
    const byAge = [...this.#known].sort(([, one], [, other]) => one.usedAt - other.usedAt);
    for (const [key] of byAge.slice(0, Math.ceil(byAge.length / FORGOTTEN_PART))) {
      this.#known.delete(key);
      if (!this.#questions.delete(key)) this.#forgotten.push(key);
    }
  }
}

const HAS_NEIGHBOURS: ReadonlySet<EndName["kind"]> = new Set(["pod", "container", "host", "service"]);

/** The first two parts of an address: a /16 of IPv4, at most a /32 of IPv6. `key`: it, or that of a Service. */
function networkOf(key: string): string {
  const separator = key.includes(":") ? ":" : ".";
  return key.slice(0, key.indexOf(separator, key.indexOf(separator) + 1));
}

/** What a former record says of an end. */
export function endOfRecord({ address: _, port: __, ...shown }: FlowEnd): NamedEnd {
  return { shown, endpoint: undefined, isLocal: false };
}

function namedEnd({ isLocal, endpoint, ...shown }: EndName): NamedEnd {
  return { shown, endpoint, isLocal: isLocal === true };
}

/** The text of an address from its words: four for IPv6. */
export class AddressTexts {
  readonly #ipv4 = new Map<number, string>();

  constructor(private readonly most: number) {}

  of(family: Family, words: Uint32Array, at: number): string {
    if (family === 6) return formatAddress({ family, value: ipv6Value(words, at) });
    const number = words[at] ?? 0;
    const known = this.#ipv4.get(number);
    if (known !== undefined) return known;
    const text = formatAddress({ family, value: BigInt(number) });
    if (this.#ipv4.size >= this.most) this.#ipv4.clear();
    this.#ipv4.set(number, text);
    return text;
  }
}

function ipv6Value(words: Uint32Array, at: number): bigint {
  let value = 0n;
  for (let index = 0; index < 4; index++) value = (value << 32n) | BigInt(words[at + index] ?? 0);
  return value;
}
