/**
 * The records of the product's datastore that the operator keeps: pools, and the settings of the node agents. The datastore
 * is the one of the Installation, so it is opened again whenever that changes.
 */
import type { Datastore, OrderedChange } from "../datastore/datastore.ts";
import type { Clock } from "../datastore/replica/clock.ts";
import type { KindTable } from "../datastore/replica/kinds.ts";
import { type Replica, startReplica } from "../datastore/replica.ts";
import { effectOf } from "../effect.ts";
import { PluginError } from "../errors.ts";
import type { ClusterInformation } from "../model/cluster-information.ts";
import type { IPPool } from "../model/ip-pool.ts";
import { CLUSTER_INFORMATION, NODE_AGENT_CONFIGURATION, POOL } from "../model/kinds.ts";
import type { NodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import type { InstallationDatastore } from "../release/installation/effective-installation.ts";

/** A resource, and the text that it was read from. */
export interface StoredResource<Resource> {
  readonly resource: Resource;
  readonly text: string;
  readonly revision: string;
}

interface Values {
  readonly pools: StoredResource<IPPool>;
  readonly configurations: StoredResource<NodeAgentConfiguration>;
  readonly information: ClusterInformation;
}

export interface Records {
  /** An administrator or an upgrade has locked the datastore: pools have to stay as they are. */
  readonly isLocked: boolean;
  readonly pools: readonly StoredResource<IPPool>[];
  readonly configurations: readonly StoredResource<NodeAgentConfiguration>[];
  /** Throws if another wrote one of them meanwhile. */
  commit(changes: readonly OrderedChange[], what: string): Promise<void>;
}

export interface DatastorePlace {
  readonly datastore: InstallationDatastore;
  /** For etcd: `etcd-ca`, `etcd-cert`, `etcd-key`, as far as there are any. */
  readonly files: Readonly<Record<string, string>>;
}

export type OpenPlace = (place: DatastorePlace) => Promise<Datastore>;

export interface RecordsOptions {
  readonly open: OpenPlace;
  /** Called when a record has changed. */
  readonly changed: () => void;
  readonly requireLeading: () => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly warn: (message: string) => void;
}

interface Opened {
  readonly place: string;
  readonly store: Datastore;
  readonly replica: Replica<Values>;
  readonly stop: AbortController;
}

const LIST_MILLISECONDS = 10_000;

export class RecordsFollower {
  private opened: Opened | undefined;

  constructor(private readonly options: RecordsOptions) {}

  /** Throws if they cannot be read. */
  async read(place: DatastorePlace): Promise<Records> {
    const key = JSON.stringify(place);
    if (this.opened?.place !== key) {
      await this.close();
      this.opened = await this.openAt(place, key);
    }
    const { store, replica } = this.opened;
    await this.untilListed(replica);
    const { snapshot, status } = replica;
    if (snapshot === undefined) {
      const failure = status.state === "in sync" ? undefined : status.failure;
      throw failure ?? new PluginError("datastore-unavailable", "Cannot read the datastore: it does not respond");
    }
    const [unreadable] = [...snapshot.pools.unreadable, ...snapshot.configurations.unreadable];
    if (unreadable !== undefined) throw unreadable.failure;
    return {
      isLocked: Array.from(snapshot.information).some(([, { spec }]) => spec.datastoreReady === false),
      pools: Array.from(snapshot.pools, ([, pool]) => pool),
      configurations: Array.from(snapshot.configurations, ([, configuration]) => configuration),
      commit: (changes, what) => this.commit(store, changes, what),
    };
  }

  async close(): Promise<void> {
    const { opened } = this;
    this.opened = undefined;
    if (opened === undefined) return;
    opened.stop.abort();
    await opened.replica.ended;
    await opened.store.close();
  }

  private async openAt(place: DatastorePlace, key: string): Promise<Opened> {
    const { open, clock, random, warn } = this.options;
    const store = await open(place);
    const stop = new AbortController();
    const replica = startReplica(store, KINDS, {
      signal: stop.signal,
      clock,
      random,
      watches: "per kind",
      report: ({ message }) => warn(message),
    });
    void this.announce(replica);
    return { place: key, store, replica, stop };
  }

  private async announce(replica: Replica<Values>): Promise<void> {
    for await (const _ of replica.updates()) this.options.changed();
  }

  private async untilListed(replica: Replica<Values>): Promise<void> {
    if (replica.snapshot !== undefined) return;
    const limit = new AbortController();
    const updates = replica.updates(limit.signal)[Symbol.asyncIterator]();
    const first = updates.next();
    await Promise.race([first, this.options.clock.wait(LIST_MILLISECONDS, limit.signal)]);
    limit.abort();
    await first;
  }

  private async commit(store: Datastore, changes: readonly OrderedChange[], what: string): Promise<void> {
    if (changes.length === 0) return;
    this.options.requireLeading();
    const written = await effectOf(`write ${what}`, () => store.commit(changes));
    if (written.ok) return;
    throw new PluginError("try-again-later", `Cannot write ${what}: another program changed it at the same time`);
  }
}

const KINDS: KindTable<Values> = {
  pools: {
    prefix: POOL.prefix(),
    decode: ({ key, value, revision }) => ({ resource: POOL.codec.read(value, key), text: value, revision }),
  },
  information: {
    prefix: CLUSTER_INFORMATION.prefix(),
    decode: ({ key, value }) => CLUSTER_INFORMATION.codec.read(value, key),
  },
  configurations: {
    prefix: NODE_AGENT_CONFIGURATION.prefix(),
    decode: ({ key, value, revision }) => {
      return { resource: NODE_AGENT_CONFIGURATION.codec.read(value, key), text: value, revision };
    },
  },
};
