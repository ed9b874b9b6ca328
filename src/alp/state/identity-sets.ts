/**
 * The service accounts that selectors of rules select, as members `NAMESPACE/ACCOUNT`. A service account has the labels
 * that its pods inherit from it and from their namespace.
 *
 * The index exists only while a sidecar needs a set.
 */
import { identity } from "../../identity.ts";
import { ACCOUNT_PROFILE, NAMESPACE_PROFILE } from "../../model/orchestrator-profile.ts";
import { LabelIndex, type LabelledEntity } from "../../policy/compile/label-index.ts";
import { SetHistory } from "../../policy/compile/set-history.ts";
import type { SelectorText } from "../../policy/effective-selector.ts";

type Labels = Readonly<Record<string, string>>;

interface UsedSet {
  readonly history: SetHistory;
  uses: number;
}

export class IdentitySets {
  private readonly used = new Map<SelectorText, UsedSet>();
  private index: LabelIndex | undefined;

  /** `profiles`: all that there are now, by name. */
  constructor(private readonly profiles: () => ReadonlyMap<string, { readonly labels: Labels }>) {}

  /** `undefined`: the profile is gone. */
  putProfile(name: string, labels: Labels | undefined): void {
    const { index } = this;
    if (index === undefined) return;
    index.putParent(name, labels);
    const account = accountOf(name);
    if (account === undefined) return;
    if (labels === undefined) index.delete(account.title);
    else index.put(account.title, account);
  }

  /** The caller releases it when it no longer needs it. */
  retain(selector: SelectorText): SetHistory {
    const known = this.used.get(selector);
    if (known !== undefined) {
      known.uses += 1;
      return known.history;
    }
    this.index ??= this.newIndex();
    const { index } = this;
    index.register(selector);
    const history = new SetHistory(() => index.membersOf(selector));
    this.used.set(selector, { history, uses: 1 });
    return history;
  }

  release(selector: SelectorText): void {
    const set = this.used.get(selector);
    if (set === undefined) return;
    set.uses -= 1;
    if (set.uses > 0) return;
    this.used.delete(selector);
    this.index?.unregister(selector);
    if (this.used.size === 0) this.index = undefined;
  }

  private newIndex(): LabelIndex {
    const index = new LabelIndex({
      matched: (selector, account) => this.used.get(selector)?.history.added(account),
      unmatched: (selector, account) => this.used.get(selector)?.history.removed(account),
    });
    for (const [name, { labels }] of this.profiles()) {
      index.putParent(name, labels);
      const account = accountOf(name);
      if (account !== undefined) index.put(account.title, account);
    }
    return index;
  }
}

interface Account extends LabelledEntity {
  readonly title: string;
}

/** `undefined` if it is not the profile of a service account. */
function accountOf(profile: string): Account | undefined {
  if (!profile.startsWith(ACCOUNT_PROFILE)) return undefined;
  const rest = profile.slice(ACCOUNT_PROFILE.length);
  // The name of a namespace has no dot; that of a service account may have some.
  const dot = rest.indexOf(".");
  if (dot <= 0) return undefined;
  const [namespace, name] = [rest.slice(0, dot), rest.slice(dot + 1)];
  return {
    title: `${namespace}/${name}`,
    labels: {
      [`${identity.labelPrefix}namespace`]: namespace,
      [`${identity.labelPrefix}serviceaccount`]: name,
    },
    parents: [`${NAMESPACE_PROFILE}${namespace}`, profile],
  };
}
