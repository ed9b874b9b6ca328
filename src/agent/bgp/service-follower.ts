/**
 * Follows the Services with `externalTrafficPolicy: Local` of the cluster, and which of them have a ready endpoint on this
 * node. Nothing is followed that nobody needs: Services only while BGP announces networks of Services, EndpointSlices, of
 * which a large cluster has many changes, only while such a Service has an address in these networks.
 *
 *   networks of BGPConfiguration ─▶ Services ─▶ is one of them Local? ─▶ EndpointSlices ─▶ services of this node
 */
import type { Datastore } from "../../datastore/datastore.ts";
import type { KindSnapshot } from "../../datastore/replica/kind-snapshot.ts";
import type { KindTable } from "../../datastore/replica/kinds.ts";
import { type ReplicaOptions, startReplica } from "../../datastore/replica.ts";
import { type Address, type Family, parseAddress } from "../../ip/address.ts";
import {
  LOCAL_SERVICES_PREFIX,
  type LocalService,
  readLocalService,
  readServiceNodes,
  SERVICE_NODES_PREFIX,
  type ServiceNodes,
} from "../../model/local-service.ts";
import { addressesIn, type ServiceNetworks } from "../../routing/bgp/announcements.ts";
import type { PlacedService } from "../../routing/bgp/facts.ts";
import { Bell, LONGEST_MILLISECONDS } from "../bell.ts";

export interface ServiceFollowerOptions {
  /** The name of this node in EndpointSlices. */
  readonly node: string;
  /** The orchestrator's Services and EndpointSlices; `undefined` if there is no access to its API. */
  readonly open: (() => Promise<Pick<Datastore, "read" | "watch" | "close">>) | undefined;
  readonly replica: Omit<ReplicaOptions, "signal" | "watches">;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** What is announced goes on without Services that cannot be read for so long. */
const LATE_MILLISECONDS = 20_000;
const RETRY_MILLISECONDS = 10_000;

const SERVICE_KINDS: KindTable<{ readonly services: LocalService }> = {
  services: { prefix: LOCAL_SERVICES_PREFIX, decode: ({ key, value }) => readLocalService(value, key) },
};

export class ServiceFollower {
  #networks: ServiceNetworks | undefined;
  #services: KindSnapshot<LocalService> | undefined;
  #nodes: KindSnapshot<ServiceNodes> | undefined;
  #isLate = false;
  #told: readonly PlacedService[] | undefined;
  #changed = () => {};
  readonly #bell = new Bell();

  constructor(private readonly options: ServiceFollowerOptions) {}

  /** `undefined`: not known yet, and it is soon. */
  get services(): readonly PlacedService[] | undefined {
    const { open } = this.options;
    if (!this.#isNeeded || open === undefined) return [];
    const local = this.#local();
    if (local === undefined || (local.length > 0 && this.#nodes === undefined)) return this.#isLate ? [] : undefined;
    return local.map((service) => this.#placed(service));
  }

  /** From now on. Returns at once. */
  follow(networks: ServiceNetworks): void {
    this.#networks = networks;
    this.#bell.ring();
  }

  /** Until the signal is aborted. `changed`: `services` is another. */
  async run(signal: AbortSignal, changed: () => void): Promise<void> {
    const { open } = this.options;
    this.#changed = changed;
    while (open !== undefined && !signal.aborted) {
      await this.#until(() => this.#isNeeded, signal);
      if (signal.aborted) return;
      try {
        await this.#during(
          () => this.#isNeeded,
          signal,
          (stop) => this.#followServices(open, stop),
        );
      } catch (failure) {
        this.options.report(`Cannot read Services: ${failure instanceof Error ? failure.message : String(failure)}`);
        this.#isLate = true;
        this.#tell();
        await this.options.wait(RETRY_MILLISECONDS, signal);
      }
      this.#services = undefined;
    }
  }

  get #isNeeded(): boolean {
    return (this.#networks?.all.length ?? 0) > 0;
  }

  async #followServices(open: NonNullable<ServiceFollowerOptions["open"]>, stop: AbortSignal): Promise<void> {
    const store = await open();
    const replica = startReplica(store, SERVICE_KINDS, this.#replicaOptions(stop));
    const lists = async () => {
      for await (const { snapshot } of replica.updates(stop)) {
        this.#services = snapshot.services;
        this.#tell();
      }
    };
    const slices = async () => {
      while (!stop.aborted) {
        await this.#until(() => this.#hasLocal, stop);
        if (stop.aborted) return;
        await this.#during(
          () => this.#hasLocal,
          stop,
          (until) => this.#followNodes(store, until),
        );
        this.#nodes = undefined;
      }
    };
    try {
      await Promise.all([lists(), slices(), this.#noteLate(stop)]);
    } finally {
      await replica.ended;
      await store.close();
    }
  }

  async #followNodes(store: Pick<Datastore, "read" | "watch">, stop: AbortSignal): Promise<void> {
    const { node } = this.options;
    const kinds: KindTable<{ readonly nodes: ServiceNodes }> = {
      nodes: {
        prefix: SERVICE_NODES_PREFIX,
        // Most slices have no endpoint here: nothing of them is kept.
        decode: ({ key, value }) => {
          const slice = readServiceNodes(value, key);
          return slice.nodes.includes(node) ? { ...slice, nodes: [node] } : undefined;
        },
      },
    };
    const replica = startReplica(store, kinds, this.#replicaOptions(stop));
    for await (const { snapshot } of replica.updates(stop)) {
      this.#nodes = snapshot.nodes;
      this.#tell();
    }
    await replica.ended;
  }

  async #noteLate(stop: AbortSignal): Promise<void> {
    this.#isLate = false;
    await this.options.wait(LATE_MILLISECONDS, stop);
    this.#isLate = true;
    this.#tell();
  }

  #replicaOptions(signal: AbortSignal): ReplicaOptions {
    return { ...this.options.replica, signal, watches: "per kind" };
  }

  #tell(): void {
    this.#bell.ring();
    const now = this.services;
    if (Bun.deepEquals(now, this.#told)) return;
    this.#told = now;
    this.#changed();
  }

  get #hasLocal(): boolean {
    return (this.#local()?.length ?? 0) > 0;
  }

  /** Those with an address in the networks. */
  #local(): readonly (LocalService & ServiceAddresses)[] | undefined {
    const [services, networks] = [this.#services, this.#networks];
    if (services === undefined || networks === undefined) return undefined;
    return Array.from(services, ([, service]) => ({ ...service, ...parsed(service) })).filter(
      (service) => addressesIn(networks, service.parsed).length > 0,
    );
  }

  #placed({ namespace, name, parsed: addresses }: LocalService & ServiceAddresses): PlacedService {
    const slices = Array.from(this.#nodes ?? [], ([, slice]) => slice);
    const own = slices.filter((slice) => slice.namespace === namespace && slice.service === name);
    return { ...addresses, families: new Set(own.map(({ family }): Family => family)) };
  }

  /** Waits until the claim is true. */
  async #until(claim: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !claim()) {
      this.#bell.reset();
      await this.options.wait(LONGEST_MILLISECONDS, AbortSignal.any([signal, this.#bell.signal]));
    }
  }

  /** Ends the work when the claim is no longer true. */
  async #during(claim: () => boolean, signal: AbortSignal, work: (stop: AbortSignal) => Promise<void>): Promise<void> {
    const ending = new AbortController();
    const stop = AbortSignal.any([signal, ending.signal]);
    const working = work(stop).finally(() => ending.abort());
    await this.#until(() => !claim(), stop);
    ending.abort();
    await working;
  }
}

interface ServiceAddresses {
  readonly parsed: Omit<PlacedService, "families">;
}

function parsed({ clusterIPs, externalIPs, loadBalancerIPs }: LocalService): ServiceAddresses {
  const addresses = (texts: readonly string[]): readonly Address[] => texts.flatMap((text) => parseAddress(text) ?? []);
  return {
    parsed: {
      clusterIPs: addresses(clusterIPs),
      externalIPs: addresses(externalIPs),
      loadBalancerIPs: addresses(loadBalancerIPs),
    },
  };
}
