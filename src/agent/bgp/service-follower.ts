/**
 * Follows the Services with `externalTrafficPolicy: Local` of the cluster, and which of them have a ready endpoint on this
 * node. Nothing is followed that nobody needs: Services only while BGP announces networks of Services, EndpointSlices, of
 * which a large cluster has many changes, only while such a Service has an address in these networks.
 *
 *   networks of BGPConfiguration ─▶ Services ─▶ is one of them Local? ─▶ EndpointSlices ─▶ services of this node
 *
 * Both begin on all nodes at the same moment, the second whenever a tenant likes: the nodes spread their lists.
 */

import type { Datastore } from "../../datastore/datastore.ts";
import { spreadOver } from "../../datastore/replica/clock.ts";
import type { KindSource } from "../../datastore/replica/kinds.ts";
import { type ReplicaOptions, startReplica } from "../../datastore/replica.ts";
import type { PluginError } from "../../errors.ts";
import { type Address, type Family, parseAddress } from "../../ip/address.ts";
import {
  LOCAL_SERVICES_PREFIX,
  readLocalService,
  readServiceNodes,
  SERVICE_NODES_PREFIX,
  type ServiceNodes,
} from "../../model/local-service.ts";
import { addressesIn, type ServiceNetworks } from "../../routing/bgp/announcements.ts";
import type { LocalServices, PlacedService } from "../../routing/bgp/facts.ts";
import { LONGEST_MILLISECONDS } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";

export interface ServiceFollowerOptions {
  /** The name of this node in EndpointSlices. */
  readonly node: string;
  /** The orchestrator's Services and EndpointSlices; `undefined` if there is no access to its API. */
  readonly open: (() => Promise<FollowedServiceStore>) | undefined;
  readonly replica: Omit<ReplicaOptions, "signal" | "watches">;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

type FollowedServiceStore = Pick<Datastore, "read" | "watch" | "close">;

/** A list that takes longer is a problem that people should know. */
const LATE_MILLISECONDS = 20_000;
const RETRY_MILLISECONDS = 10_000;
/** EndpointSlices are followed for so long after the last Local Service has gone: otherwise its return makes all nodes list them. */
const LINGER_MILLISECONDS = 5 * 60_000;
const NO_FAMILIES: ReadonlySet<Family> = new Set();

interface FollowedService {
  /** As slices name it. */
  readonly name: string;
  readonly addresses: Omit<PlacedService, "families">;
}

const SERVICES: KindSource<FollowedService> = {
  prefix: LOCAL_SERVICES_PREFIX,
  decode({ key, value }) {
    const service = readLocalService(value, key);
    return {
      name: `${service.namespace}/${service.name}`,
      addresses: {
        clusterIPs: parsed(service.clusterIPs),
        externalIPs: parsed(service.externalIPs),
        loadBalancerIPs: parsed(service.loadBalancerIPs),
      },
    };
  },
};

/** Most slices have no endpoint here: nothing of them is kept. */
function slicesOn(node: string): KindSource<Omit<ServiceNodes, "nodes">> {
  return {
    prefix: SERVICE_NODES_PREFIX,
    decode({ key, value }) {
      const { nodes, ...slice } = readServiceNodes(value, key);
      return nodes.includes(node) ? slice : undefined;
    },
  };
}

export class ServiceFollower {
  #networks: ServiceNetworks | undefined;
  #all: readonly FollowedService[] | undefined;
  /** Those with an address in the networks. */
  #local: readonly FollowedService[] | undefined;
  /** By name of the Service, the families in which this node has a ready endpoint. */
  #families: ReadonlyMap<string, ReadonlySet<Family>> | undefined;
  #services: LocalServices = [];
  /** Of the last list that failed. */
  #problem: string | undefined;
  #told: { readonly services: LocalServices; readonly problem: string | undefined } | undefined;
  #changed = () => {};
  readonly #wakeup = new Wakeup();

  constructor(private readonly options: ServiceFollowerOptions) {}

  get services(): LocalServices {
    return this.#services;
  }

  /** For people: why they are not known; `undefined` if they are, or will be soon. */
  get problem(): string | undefined {
    const isUnknown = this.#services === "unknown" || this.#services.some(({ families }) => families === "unknown");
    return isUnknown ? this.#problem : undefined;
  }

  /** From now on. Returns at once. */
  follow(networks: ServiceNetworks): void {
    if (Bun.deepEquals(networks, this.#networks)) return;
    this.#networks = networks;
    this.#compute();
    this.#wakeup.notify();
  }

  /** Until the signal is aborted. `changed`: `services` or `problem` is another. */
  async run(signal: AbortSignal, changed: () => void): Promise<void> {
    const { open } = this.options;
    if (open === undefined) return;
    this.#changed = changed;
    await this.#until(() => this.#networks !== undefined, signal);
    // Agents that start do so one after the other.
    let isAtOnce = this.#isNeeded;
    while (!signal.aborted) {
      await this.#until(() => this.#isNeeded, signal);
      if (signal.aborted) return;
      const work = (stop: AbortSignal) => this.#followServices(open, { isAtOnce, stop });
      try {
        await this.#during({ claim: () => this.#isNeeded, linger: 0, signal, work });
        isAtOnce = false;
      } catch (failure) {
        const reason = failure instanceof Error ? failure.message : String(failure);
        this.options.report(`Cannot read Services: ${reason}`);
        this.#fail("Services", reason);
        await this.options.wait(RETRY_MILLISECONDS, signal);
      }
    }
  }

  get #isNeeded(): boolean {
    return (this.#networks?.all.length ?? 0) > 0;
  }

  async #followServices(
    open: NonNullable<ServiceFollowerOptions["open"]>,
    { isAtOnce, stop }: { readonly isAtOnce: boolean; readonly stop: AbortSignal },
  ): Promise<void> {
    if (!isAtOnce) await this.#waitForTurn(stop);
    if (stop.aborted) return;
    const store = await open();
    const ending = new AbortController();
    const until = AbortSignal.any([stop, ending.signal]);
    const take = (services: readonly FollowedService[]) => {
      this.#all = services;
    };
    const parts = [
      this.#replicate(store, { what: "Services", source: SERVICES, take }, until),
      this.#followSlices(store, until),
    ];
    try {
      await Promise.all(parts);
    } finally {
      // One of them may have failed: the other must not stay.
      ending.abort();
      await Promise.allSettled(parts);
      await store.close();
      this.#all = undefined;
      this.#compute();
    }
  }

  async #followSlices(store: FollowedServiceStore, stop: AbortSignal): Promise<void> {
    await this.#until(() => this.#all !== undefined, stop);
    // Then the list of Services was this node's turn.
    let isAtOnce = this.#hasLocal;
    while (!stop.aborted) {
      await this.#until(() => this.#hasLocal, stop);
      const work = (until: AbortSignal) => this.#followNodes(store, { isAtOnce, stop: until });
      await this.#during({ claim: () => this.#hasLocal, linger: LINGER_MILLISECONDS, signal: stop, work });
      isAtOnce = false;
    }
  }

  async #followNodes(
    store: FollowedServiceStore,
    { isAtOnce, stop }: { readonly isAtOnce: boolean; readonly stop: AbortSignal },
  ): Promise<void> {
    if (!isAtOnce) await this.#waitForTurn(stop);
    const take = (slices: readonly Omit<ServiceNodes, "nodes">[]) => {
      this.#families = familiesByService(slices);
    };
    try {
      await this.#replicate(store, { what: "EndpointSlices", source: slicesOn(this.options.node), take }, stop);
    } finally {
      this.#families = undefined;
      this.#compute();
    }
  }

  async #waitForTurn(stop: AbortSignal): Promise<void> {
    const { random = Math.random, peers = () => 0 } = this.options.replica;
    await this.options.wait(random() * spreadOver(peers(), "lists"), stop);
  }

  async #replicate<Value>(
    store: FollowedServiceStore,
    { what, source, take }: FollowedKind<Value>,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const [ending, listed] = [new AbortController(), new AbortController()];
    const stop = AbortSignal.any([signal, ending.signal]);
    const report = (problem: PluginError) => {
      this.options.replica.report?.(problem);
      if (!listed.signal.aborted) this.#fail(what, problem.message);
    };
    const options: ReplicaOptions = { ...this.options.replica, report, signal: stop, watches: "per kind" };
    const replica = startReplica<{ readonly records: Value }>(store, { records: source }, options);
    const late = this.#noteLate(what, AbortSignal.any([stop, listed.signal]));
    try {
      for await (const { snapshot } of replica.updates(stop)) {
        take(Array.from(snapshot.records, ([, value]) => value));
        if (!listed.signal.aborted) this.#problem = undefined;
        listed.abort();
        this.#tell();
      }
    } finally {
      ending.abort();
      await Promise.all([replica.ended, late]);
    }
  }

  async #noteLate(what: string, stop: AbortSignal): Promise<void> {
    await this.options.wait(LATE_MILLISECONDS, stop);
    if (!stop.aborted && this.#problem === undefined)
      this.#fail(what, `no list after ${LATE_MILLISECONDS / 1000} seconds`);
  }

  #fail(what: string, reason: string): void {
    this.#problem = `Cannot read ${what}: ${reason}; single addresses of Services stay announced as they were, and no others are`;
    this.#tell();
  }

  #tell(): void {
    this.#compute();
    this.#wakeup.notify();
    const now = { services: this.#services, problem: this.problem };
    if (Bun.deepEquals(now, this.#told)) return;
    this.#told = now;
    this.#changed();
  }

  #compute(): void {
    const [all, networks] = [this.#all, this.#networks];
    const isIn = ({ addresses }: FollowedService) =>
      networks !== undefined && addressesIn(networks, addresses).length > 0;
    this.#local = all?.filter(isIn);
    this.#services = this.#known();
  }

  #known(): LocalServices {
    if (!this.#isNeeded || this.options.open === undefined) return [];
    const families = this.#families;
    return (
      this.#local?.map(({ name, addresses }) => ({
        ...addresses,
        families: families === undefined ? "unknown" : (families.get(name) ?? NO_FAMILIES),
      })) ?? "unknown"
    );
  }

  get #hasLocal(): boolean {
    return (this.#local?.length ?? 0) > 0;
  }

  /** Waits until the claim is true. */
  async #until(claim: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !claim()) {
      this.#wakeup.reset();
      await this.options.wait(LONGEST_MILLISECONDS, AbortSignal.any([signal, this.#wakeup.signal]));
    }
  }

  /** Ends the work when the claim has not been true for as long as `linger`. */
  async #during({ claim, linger, signal, work }: Temporary): Promise<void> {
    const ending = new AbortController();
    const stop = AbortSignal.any([signal, ending.signal]);
    const end = async () => {
      do {
        await this.#until(() => !claim(), stop);
        await this.#untilFor(claim, linger, stop);
      } while (!stop.aborted && claim());
      ending.abort();
    };
    await Promise.all([work(stop).finally(() => ending.abort()), end()]);
  }

  /** Waits until the claim is true, but not longer than this. */
  async #untilFor(claim: () => boolean, milliseconds: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const timer = this.options.wait(milliseconds, stop).then(() => over.abort());
    await this.#until(claim, stop);
    over.abort();
    await timer;
  }
}

interface FollowedKind<Value> {
  /** For people. */
  readonly what: string;
  readonly source: KindSource<Value>;
  readonly take: (values: readonly Value[]) => void;
}

interface Temporary {
  readonly claim: () => boolean;
  readonly linger: number;
  readonly signal: AbortSignal;
  readonly work: (stop: AbortSignal) => Promise<void>;
}

function familiesByService(slices: readonly Omit<ServiceNodes, "nodes">[]): ReadonlyMap<string, ReadonlySet<Family>> {
  const byService = Map.groupBy(slices, ({ namespace, service }) => `${namespace}/${service}`);
  return new Map(Array.from(byService, ([name, own]) => [name, new Set(own.map(({ family }) => family))]));
}

function parsed(texts: readonly string[]): readonly Address[] {
  return texts.flatMap((text) => parseAddress(text) ?? []);
}
