/**
 * What the collector has not been told yet. Of everything only that it must be told is kept, once, not the message: a collector
 * that reads slowly gets fewer messages with the latest state, and costs no memory.
 *
 *   changes ──▶ feed ── take(): one message of bounded size ──▶ collector
 */
import type { CollectorSettings, EndName, ToCollector } from "../../flows/collector-messages.ts";
import type { LinkAccess } from "../../flows/link-messages.ts";
import { STORED_KINDS, STORED_STAGED_KINDS, type StoredKind } from "../../flows/stored-resources.ts";
import type { NumberedRule } from "../policy/flow-rules.ts";

export interface FeedSources {
  readonly nameOf: (key: string) => EndName;
  /** As it is stored; `undefined`: it is gone. */
  readonly resource: (kind: StoredKind, key: string) => string | undefined;
  /** There is something to take. */
  readonly changed: () => void;
}

/** Of each message, so that no message takes the agent long. */
const MOST_NAMES = 200;
const MOST_RULES = 1_000;
const MOST_RESOURCES = 200;
const MOST_CHARACTERS = 256 * 1024;
/** More names that are asked for while the collector does not read are not answered. */
const MOST_WAITING_NAMES = 100_000;

export class CollectorFeed {
  private settings: CollectorSettings | undefined;
  private since: number | undefined;
  private link: { readonly access?: LinkAccess } | undefined;
  private requestRules: readonly number[] | undefined;
  private readonly rules = new Map<number, string>();
  private readonly changedRules = new Set<number>();
  private readonly goneRules = new Set<number>();
  private readonly names = new Set<string>();
  /** By comment: what the rules had counted the last time, and what came to it since the collector was told. */
  private counted: ReadonlyMap<string, number> | undefined;
  private readonly denied = new Map<string, number>();
  private readonly resources = new Map<StoredKind, Set<string>>(
    [...STORED_KINDS, ...STORED_STAGED_KINDS].map((kind) => [kind, new Set()]),
  );
  private unansweredCount = 0;
  /** With its settings the collector begins: by then it must know the workloads of this node, to see what is theirs. */
  private hasBegun = false;

  constructor(private readonly sources: FeedSources) {}

  /** Names that were not answered, because too many waited. */
  get unanswered(): number {
    return this.unansweredCount;
  }

  setSettings(settings: CollectorSettings): void {
    this.settings = settings;
    this.sources.changed();
  }

  setLabelsWritten(since: number): void {
    this.since = since;
    this.sources.changed();
  }

  setLink(access: LinkAccess | undefined): void {
    this.link = access === undefined ? {} : { access };
    this.sources.changed();
  }

  /** All of them. */
  setRequestRules(numbers: readonly number[]): void {
    this.requestRules = numbers;
    this.sources.changed();
  }

  addRules(rules: readonly NumberedRule[]): void {
    for (const [number, comment] of rules) {
      this.goneRules.delete(number);
      if (this.rules.get(number) === comment) continue;
      this.rules.set(number, comment);
      this.changedRules.add(number);
    }
    this.sources.changed();
  }

  removeRules(numbers: readonly number[]): void {
    for (const number of numbers) {
      this.changedRules.delete(number);
      if (this.rules.delete(number)) this.goneRules.add(number);
    }
    this.sources.changed();
  }

  /** These, and no others. */
  setRules(rules: readonly NumberedRule[]): void {
    const numbers = new Set(rules.map(([number]) => number));
    this.removeRules([...this.rules.keys()].filter((number) => !numbers.has(number)));
    this.addRules(rules);
  }

  /**
   * What the rules of each comment have counted in all; what they had at the first call is not told. A sum that has fallen says
   * nothing about what came to it: the table was replaced, counters were reset, or those of one of several rules are gone.
   */
  setDenied(counts: readonly (readonly [comment: string, packets: number])[]): void {
    const { counted } = this;
    this.counted = new Map(counts);
    if (counted === undefined) return;
    for (const [comment, packets] of counts) {
      const added = packets - (counted.get(comment) ?? 0);
      if (added > 0) this.denied.set(comment, (this.denied.get(comment) ?? 0) + added);
    }
    if (this.denied.size > 0) this.sources.changed();
  }

  /** The next counts are those of another enforcement. */
  forgetDenied(): void {
    this.counted = undefined;
  }

  /** The name of the key must be told, perhaps again. */
  addName(key: string): void {
    if (this.names.size >= MOST_WAITING_NAMES && !this.names.has(key)) this.unansweredCount += 1;
    else this.names.add(key);
    this.sources.changed();
  }

  /** The resource must be told, perhaps again. */
  addResource(kind: StoredKind, key: string): void {
    this.resources.get(kind)?.add(key);
    this.sources.changed();
  }

  /** `undefined`: the collector has been told everything. */
  take(): ToCollector | undefined {
    const first = this.hasBegun ? undefined : this.takeNames();
    this.hasBegun = first === undefined;
    return (
      first ??
      this.takeSettings() ??
      this.takeRules() ??
      this.takeNames() ??
      this.takeDenied() ??
      this.takeLink() ??
      this.takeResources()
    );
  }

  private takeSettings(): ToCollector | undefined {
    const { settings, since } = this;
    if (settings !== undefined) {
      this.settings = undefined;
      return { kind: "settings", settings };
    }
    if (since === undefined) return undefined;
    this.since = undefined;
    return { kind: "labels written", since };
  }

  private takeRules(): ToCollector | undefined {
    const numbers = takeSome(this.goneRules, MOST_RULES);
    if (numbers.length > 0) return { kind: "rules gone", numbers };
    const changed = takeSome(this.changedRules, MOST_RULES);
    if (changed.length > 0) {
      return { kind: "rules", rules: changed.map((number) => [number, this.rules.get(number) ?? ""] as const) };
    }
    const { requestRules } = this;
    this.requestRules = undefined;
    return requestRules === undefined ? undefined : { kind: "rules with requests", numbers: requestRules };
  }

  private takeNames(): ToCollector | undefined {
    const names: (readonly [string, EndName])[] = [];
    let characters = 0;
    for (const key of this.names) {
      if (names.length >= MOST_NAMES || characters >= MOST_CHARACTERS) break;
      this.names.delete(key);
      const name = this.sources.nameOf(key);
      names.push([key, name]);
      characters += name.endpoint?.length ?? 0;
    }
    return names.length === 0 ? undefined : { kind: "names", names };
  }

  private takeDenied(): ToCollector | undefined {
    if (this.denied.size === 0) return undefined;
    const counts = [...this.denied];
    this.denied.clear();
    return { kind: "denied", counts };
  }

  private takeLink(): ToCollector | undefined {
    const { link } = this;
    this.link = undefined;
    return link === undefined ? undefined : { kind: "link", ...link };
  }

  private takeResources(): ToCollector | undefined {
    const resources: { readonly kind: string; readonly key: string; readonly value?: string }[] = [];
    let characters = 0;
    for (const [kind, waiting] of this.resources) {
      for (const key of waiting) {
        if (resources.length >= MOST_RESOURCES || characters >= MOST_CHARACTERS) break;
        waiting.delete(key);
        const value = this.sources.resource(kind, key);
        resources.push({ kind, key, ...(value === undefined ? {} : { value }) });
        characters += value?.length ?? 0;
      }
    }
    return resources.length === 0 ? undefined : { kind: "resources", resources };
  }
}

function takeSome(waiting: Set<number>, most: number): readonly number[] {
  const taken = waiting.values().take(most).toArray();
  for (const each of taken) waiting.delete(each);
  return taken;
}
