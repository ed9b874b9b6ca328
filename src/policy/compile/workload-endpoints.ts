/**
 * The workload endpoints of this node: the interface of each is sent to the chains of its policies, by two verdict maps.
 * If several endpoints claim one interface, the one with the lowest key has it.
 */
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../effective-rule.ts";
import { FROM_WORKLOADS, TO_WORKLOADS, WORKLOAD_MAPS } from "../render/base-chains.ts";
import { verdictElement } from "../render/verdict-element.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import type { ApplicablePolicies } from "./applicable-policies.ts";
import type { Entity } from "./entity.ts";
import type { Evaluation, Evaluations } from "./evaluations.ts";
import type { PolicyRecord } from "./policy-record.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";
import { WorkloadSources } from "./workload-sources.ts";

export interface LocalEndpoint {
  readonly endpoint: WorkloadEndpoint;
  readonly interfaceName: string;
}

const DIRECTIONS = ["ingress", "egress"] as const;
const MAP_OF = { ingress: TO_WORKLOADS, egress: FROM_WORKLOADS } as const;

export class WorkloadEndpoints {
  readonly local = new Map<string, LocalEndpoint>();
  private readonly claims = new Map<string, Set<string>>();
  private readonly chainOf = { ingress: new Map<string, string>(), egress: new Map<string, string>() };
  private readonly touched = new Set<string>();
  private readonly sent = new Set<string>();
  private readonly sources: WorkloadSources;
  private changes = 0;

  constructor(
    private readonly builder: TableBuilder,
    private readonly evaluations: Evaluations,
    private readonly policies: ApplicablePolicies,
  ) {
    for (const map of WORKLOAD_MAPS) builder.createSet(map);
    this.sources = new WorkloadSources(builder);
  }

  /** Whether what IPVS sends on is judged. */
  setIpvs(hasIpvs: boolean): void {
    this.sources.setNeeded(hasIpvs);
  }

  touch(key: string): void {
    this.touched.add(key);
  }

  /** Grows whenever anything that is evaluated for endpoints of this node may have changed, except rules of policies. */
  get version(): number {
    return this.changes;
  }

  /** The endpoints that were sent to other chains since the last call of `forgetSent`. */
  get sentElsewhere(): ReadonlySet<string> {
    return this.sent;
  }

  forgetSent(): void {
    this.sent.clear();
  }

  /** What is evaluated for packets to the endpoint; `undefined` if no interface is sent to its chains. */
  evaluationOf(key: string, direction: Direction): Evaluation | undefined {
    const local = this.local.get(key);
    if (local === undefined || !this.isFirst(key, local.interfaceName)) return undefined;
    return {
      direction,
      tiers: this.policies.tiersOf(key, direction, isForWorkloads),
      profileRules: this.policies.profileRulesOf(key, direction, "workload"),
      otherwise: "drop",
      of: "workload",
      hasSidecars: true,
    };
  }

  /** The endpoints that evaluate one of these policies. */
  evaluating(policies: ReadonlySet<string | undefined>): readonly string[] {
    return Array.from(this.local.keys()).filter((key) =>
      DIRECTIONS.some((direction) =>
        this.evaluationOf(key, direction)?.tiers.some((tier) => tier.policies.some((each) => policies.has(each.key))),
      ),
    );
  }

  /** The name of its interface; `undefined` if it is not on this node, or another endpoint has the interface. */
  interfaceOf(key: string): string | undefined {
    const local = this.local.get(key);
    return local !== undefined && this.isFirst(key, local.interfaceName) ? local.interfaceName : undefined;
  }

  /** The endpoint that has the interface. */
  endpointAt(interfaceName: string): WorkloadEndpoint | undefined {
    const [first] = [...(this.claims.get(interfaceName) ?? [])].sort();
    return first === undefined ? undefined : this.local.get(first)?.endpoint;
  }

  put(key: string, { endpoint, interfaceName }: LocalEndpoint, entity: Entity): void {
    const before = this.local.get(key);
    if (before !== undefined && before.interfaceName !== interfaceName) this.unclaim(key, before.interfaceName);
    this.local.set(key, { endpoint, interfaceName });
    addTo(this.claims, interfaceName, key);
    this.policies.putEndpoint(key, entity);
    this.sources.put(key, { addresses: entity.addresses, interfaceName });
  }

  delete(key: string): void {
    const before = this.local.get(key);
    if (before === undefined) return;
    this.changes += 1;
    this.local.delete(key);
    this.policies.deleteEndpoint(key);
    this.sources.delete(key);
    this.unclaim(key, before.interfaceName);
  }

  /** Sends the interfaces of touched endpoints to the chains of their policies. */
  evaluate(): void {
    if (this.touched.size > 0) this.changes += 1;
    for (const key of this.touched) this.evaluateOne(key);
    this.touched.clear();
  }

  private unclaim(key: string, interfaceName: string): void {
    removeFrom(this.claims, interfaceName, key);
    const others = this.claims.get(interfaceName);
    for (const other of others ?? []) this.touched.add(other);
    if (others === undefined) for (const direction of DIRECTIONS) this.send(direction, interfaceName, undefined);
  }

  private evaluateOne(key: string): void {
    const local = this.local.get(key);
    if (local === undefined) return;
    for (const direction of DIRECTIONS) {
      const evaluation = this.evaluationOf(key, direction);
      if (evaluation === undefined) continue;
      const chain = this.evaluations.retain(evaluation);
      if (this.chainOf[direction].get(local.interfaceName) !== chain) this.sent.add(key);
      this.send(direction, local.interfaceName, chain);
    }
  }

  private isFirst(key: string, interfaceName: string): boolean {
    for (const other of this.claims.get(interfaceName) ?? []) if (other < key) return false;
    return true;
  }

  private send(direction: Direction, interfaceName: string, chain: string | undefined): void {
    if (direction === "egress") this.sources.send(interfaceName, chain);
    const chains = this.chainOf[direction];
    const before = chains.get(interfaceName);
    if (before !== undefined) this.evaluations.release(before);
    if (chain === undefined) {
      chains.delete(interfaceName);
      this.builder.deleteElement(MAP_OF[direction], interfaceName);
      return;
    }
    chains.set(interfaceName, chain);
    if (before !== chain)
      this.builder.putElement(MAP_OF[direction], interfaceName, verdictElement(interfaceName, chain));
  }
}

/** Policies before routing concern hosts only. */
function isForWorkloads({ stage }: PolicyRecord): boolean {
  return stage === "normal";
}
