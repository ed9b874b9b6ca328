/**
 * The host endpoints of this node: their interfaces are sent to the chains of their policies, at each stage of a packet's
 * way (see host-chains.ts). A host has few interfaces, so a change computes all of them again.
 */
import { ALL_INTERFACES, type HostEndpoint } from "../../model/host-endpoint.ts";
import type { HostInterface } from "../host-interface.ts";
import type { PolicyChanges } from "../inputs.ts";
import {
  directionAt,
  type Failsafes,
  HOST_STAGES,
  type HostStage,
  mapName,
  preludeName,
  stageChainNames,
  stageChains,
  stageMap,
} from "../render/host-chains.ts";
import { verdictElement } from "../render/verdict-element.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import type { ApplicablePolicies } from "./applicable-policies.ts";
import { hostEntity } from "./entity.ts";
import type { Evaluation, Evaluations } from "./evaluations.ts";
import { interfaceOwners } from "./host-interfaces.ts";
import type { PolicyRecord } from "./policy-record.ts";
import { TunnelEnds } from "./tunnel-ends.ts";

/** Interface, or "*", -> chain. */
type ChainsOfStage = ReadonlyMap<string, string>;

const NO_CHAINS: ChainsOfStage = new Map();

export class HostEndpoints {
  readonly local = new Map<string, HostEndpoint>();
  private interfaces: readonly HostInterface[] = [];
  private prefixes: readonly string[] = [];
  private vxlanPort = 0;
  private passesResets = false;
  private failsafes: Failsafes = { inbound: [], outbound: [] };
  private chains: ReadonlyMap<HostStage, ChainsOfStage> = new Map();
  private isTouched = false;
  private readonly tunnelEnds: TunnelEnds;

  constructor(
    private readonly builder: TableBuilder,
    private readonly evaluations: Evaluations,
    private readonly policies: ApplicablePolicies,
  ) {
    this.tunnelEnds = new TunnelEnds(builder);
  }

  touch(): void {
    this.isTouched = true;
  }

  setInterfaces(interfaces: readonly HostInterface[]): void {
    this.interfaces = interfaces;
    this.touch();
  }

  /** How names of workloads' interfaces begin. */
  setPrefixes(prefixes: readonly string[]): void {
    this.prefixes = prefixes;
    this.touch();
  }

  setVxlanPort(port: number): void {
    this.vxlanPort = port;
    this.touch();
  }

  /** Whether connections that policy denies are ended. */
  setPassesResets(passesResets: boolean): void {
    this.passesResets = passesResets;
    this.touch();
  }

  setFailsafes(failsafes: Failsafes): void {
    this.failsafes = failsafes;
    this.touch();
  }

  /** Pools and nodes, for the tunnels between them. */
  updateTunnels(changes: Pick<PolicyChanges, "pools" | "nodes">): void {
    if (this.tunnelEnds.update(changes)) this.touch();
  }

  put(key: string, endpoint: HostEndpoint): void {
    this.local.set(key, endpoint);
    this.policies.putEndpoint(key, hostEntity(endpoint));
    this.touch();
  }

  delete(key: string): void {
    if (!this.local.delete(key)) return;
    this.policies.deleteEndpoint(key);
    this.touch();
  }

  evaluate(): void {
    if (!this.isTouched) return;
    this.isTouched = false;
    const owners = interfaceOwners(this.local, this.interfaces, this.prefixes);
    const before = this.chains;
    this.chains = this.retainChains(owners);
    const used = new Set(this.chains.keys());
    this.tunnelEnds.write(used.size > 0 && this.tunnelEnds.kinds.size > 0);
    for (const stage of HOST_STAGES) {
      this.writeMap(stage, before.get(stage), this.chains.get(stage));
      this.writeChains(stage, used);
    }
    for (const chains of before.values()) for (const chain of chains.values()) this.evaluations.release(chain);
  }

  /** Of each stage that is used. An interface without policies at it has a chain too: it is not one of the others. */
  private retainChains(owners: ReadonlyMap<string, string>): ReadonlyMap<HostStage, ChainsOfStage> {
    const chains = new Map<HostStage, ChainsOfStage>();
    for (const stage of HOST_STAGES) {
      const evaluations = Array.from(owners, ([name, key]) => [name, this.evaluationOf(key, stage)] as const);
      if (!evaluations.some(([, { tiers }]) => hasDefaultDrop(stage) || tiers.length > 0)) continue;
      chains.set(stage, new Map(evaluations.map(([name, each]) => [name, this.evaluations.retain(each)])));
    }
    return chains;
  }

  private evaluationOf(endpoint: string, stage: HostStage): Evaluation {
    const direction = directionAt(stage);
    const tiers = this.policies.tiersOf(endpoint, direction, (policy) => isEvaluatedAt(stage, policy));
    return {
      direction,
      prelude: preludeName(stage),
      tiers: isBeforeRouting(stage) ? tiers.map((tier) => ({ ...tier, defaultAction: "Pass" as const })) : tiers,
      profileRules: hasDefaultDrop(stage) ? this.policies.profileRulesOf(endpoint, direction, "host") : [],
      otherwise: hasDefaultDrop(stage) ? "drop" : isBeforeRouting(stage) ? "next stage" : "accept",
      of: "host",
      // Also at forwarded packets: the sidecar does not know the policies of the host.
      hasSidecars: false,
    };
  }

  private writeMap(stage: HostStage, before: ChainsOfStage | undefined, now: ChainsOfStage | undefined): void {
    const map = mapName(stage);
    if (now === undefined) {
      if (before !== undefined) this.builder.deleteSet(map);
      return;
    }
    if (before === undefined) this.builder.createSet(stageMap(stage));
    for (const name of (before ?? NO_CHAINS).keys()) if (!now.has(name)) this.builder.deleteElement(map, name);
    for (const [name, chain] of now) {
      if (name === ALL_INTERFACES || before?.get(name) === chain) continue;
      this.builder.putElement(map, name, verdictElement(name, chain));
    }
  }

  private writeChains(stage: HostStage, used: ReadonlySet<HostStage>): void {
    const chains = this.chains.get(stage);
    if (chains === undefined) {
      for (const name of stageChainNames(stage)) this.builder.deleteChain(name);
      return;
    }
    const { failsafes, prefixes, passesResets } = this;
    const tunnels = { kinds: this.tunnelEnds.kinds, vxlanPort: this.vxlanPort };
    const options = { failsafes, tunnels, prefixes, passesResets, otherInterfaces: chains.get(ALL_INTERFACES), used };
    for (const chain of stageChains(stage, options)) this.builder.putChain(chain);
  }
}

/** For packets to and from this host itself, what no policy and no profile allows is dropped. */
function hasDefaultDrop(stage: HostStage): boolean {
  return stage === "input" || stage === "output";
}

/** There a policy decides only what its rules say: the rest is left to the stages after it. */
function isBeforeRouting(stage: HostStage): boolean {
  return stage === "untracked_in" || stage === "untracked_out" || stage === "pre_dnat";
}

function isEvaluatedAt(stage: HostStage, policy: PolicyRecord): boolean {
  switch (stage) {
    case "untracked_in":
    case "untracked_out":
      return policy.stage === "untracked";
    case "pre_dnat":
      return policy.stage === "preDNAT";
    case "input":
    case "output":
      return policy.stage === "normal";
    case "forward_in":
    case "forward_out":
      return policy.stage === "normal" && policy.appliesOnForward;
  }
}
