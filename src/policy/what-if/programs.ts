/**
 * What decides in one direction of an endpoint: its policies tier by tier, then its profiles. Endpoints with the same have one program, which
 * says what it asks of addresses and which packets it tells apart. Pure.
 */
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import { protocolNumber, TCP } from "../../model/protocols.ts";
import type { Direction } from "../effective-rule.ts";
import { profileRules } from "../judge/enforced-policy.ts";
import { sidecarOf } from "../judge/http-criteria.ts";
import type { IndexedJudge } from "../judge/indexed-judge.ts";
import { isBeforeRouting, profileNamed, scopeOf, tiersOf } from "../judge/judge.ts";
import type { LabelCriteria } from "../judge/members.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "../judge/resources.ts";
import { BreaksBuilder, type PacketBreaks } from "./packet-cells.ts";
import { type PeerTest, testsOf } from "./peer-tests.ts";

export interface Program {
  /** The same for programs that say the same, also in another state of the resources. */
  readonly id: number;
  readonly ownTests: readonly PeerTest[];
  readonly peerTests: readonly PeerTest[];
  readonly breaks: PacketBreaks;
}

/** One state of the resources. */
export interface ProgramSource {
  readonly resources: PolicyResources;
  readonly judge: IndexedJudge;
  readonly settingsOf: (node: string) => NodeAgentSettings;
  /** Nothing is enforced there, not even profiles. */
  readonly isUnenforcedAt: (node: string) => boolean;
}

interface OwnedRule {
  readonly rule: PolicyRule;
  readonly namespace: string | undefined;
  readonly own: LabelCriteria;
}

/** Of both states: what says the same in both has the same number. */
export class Programs {
  private readonly byText = new Map<string, Program>();
  private readonly ids = new Map<string, number>();
  private readonly known = new WeakMap<object, number>();
  private readonly tests = new Map<string, PeerTest>();

  /** `ports`: those that any endpoint of any state declares, by name. */
  constructor(
    private readonly ports: ReadonlyMap<string, ReadonlySet<number>>,
    private readonly servicePorts: ReadonlyMap<string, readonly { readonly protocol: number; readonly port: number }[]>,
  ) {}

  /** `undefined`: it allows everything. */
  of(endpoint: AnyEndpoint, direction: Direction, source: ProgramSource): Program | undefined {
    const node = endpoint.spec.node ?? "";
    if (endpoint.kind === "WorkloadEndpoint" && source.isUnenforcedAt(node)) return undefined;
    const type = direction === "ingress" ? "Ingress" : "Egress";
    const { networkPolicies, globalNetworkPolicies } = source.judge.policiesOf(endpoint);
    const isHost = endpoint.kind === "HostEndpoint";
    const applying = [...networkPolicies, ...globalNetworkPolicies].filter(
      (policy) => typesOf(policy.spec).includes(type) && (isHost || !isBeforeRouting(policy)),
    );
    const profiles = (endpoint.spec.profiles ?? []).flatMap((name) => profileNamed(name, source.resources) ?? []);
    const ofProfiles = profiles.map((profile) => profileRules(profile, endpoint, direction, source.resources));
    const tiers = tiersOf(applying, source.resources);
    const failsafe = isHost ? failsafePorts(source.settingsOf(node), direction) : undefined;
    const text = JSON.stringify([
      ...[direction, isHost, sidecarOf(endpoint) !== undefined, failsafe],
      tiers.map(({ name, order, defaultAction, policies }) => [
        ...[name, order, defaultAction],
        policies.map((policy) => this.numberOf(policy)).sort((left, right) => left - right),
      ]),
      ofProfiles,
    ]);
    const known = this.byText.get(text);
    if (known !== undefined) return known;
    const rules: readonly OwnedRule[] = [
      ...applying.flatMap((policy) => ownedRules(policy, direction)),
      ...ofProfiles.flat().map((rule) => ({ rule, namespace: undefined, own: {} })),
    ];
    const made = this.made(rules, direction, failsafe);
    this.byText.set(text, made);
    return made;
  }

  private made(rules: readonly OwnedRule[], direction: Direction, failsafe: Failsafe | undefined): Program {
    const [own, peer] =
      direction === "ingress" ? (["destination", "source"] as const) : (["source", "destination"] as const);
    const tests = (side: "source" | "destination", isOwnSide: boolean) =>
      this.unique(rules.flatMap(({ rule, ...owner }) => testsOf(rule[side] ?? {}, { ...owner, isOwnSide })));
    const builder = new BreaksBuilder();
    for (const owned of rules) this.addBreaks(owned, builder);
    if (failsafe !== undefined) addFailsafe(failsafe, builder);
    return {
      ...{ id: this.byText.size, ownTests: tests(own, true), peerTests: tests(peer, false) },
      breaks: builder.breaks,
    };
  }

  /** Each test is one object, whoever asks it. */
  private unique(tests: readonly PeerTest[]): readonly PeerTest[] {
    const known = tests.map((test) => {
      const text = JSON.stringify(test);
      const same = this.tests.get(text) ?? test;
      this.tests.set(text, same);
      return same;
    });
    return [...new Set(known)];
  }

  private addBreaks({ rule, namespace }: OwnedRule, builder: BreaksBuilder): void {
    const protocol = rule.protocol ?? (rule.http === undefined ? undefined : TCP);
    for (const each of [protocol, rule.notProtocol]) {
      const number = each === undefined ? undefined : protocolNumber(each);
      if (number !== undefined) builder.protocol(number);
    }
    const number = protocol === undefined ? undefined : protocolNumber(protocol);
    for (const side of ["source", "destination"] as const) {
      const { ports = [], notPorts = [], services } = rule[side] ?? {};
      for (const port of [...ports, ...notPorts]) {
        for (const range of this.rangesOf(port)) if (number !== undefined) builder.ports(number, side, range);
      }
      const behind = services && this.servicePorts.get(`${services.namespace ?? namespace}/${services.name}`);
      if (side === "destination")
        for (const each of behind ?? []) builder.ports(each.protocol, side, { first: each.port, last: each.port });
    }
    for (const match of [rule.icmp, rule.notICMP]) {
      if (match !== undefined && number !== undefined) builder.icmp(number, match.type, match.code);
    }
  }

  private rangesOf(port: number | string): readonly { readonly first: number; readonly last: number }[] {
    const [first, last = first] = String(port).split(":").map(Number);
    if (first !== undefined && last !== undefined && /^\d+(:\d+)?$/.test(String(port))) return [{ first, last }];
    return Array.from(this.ports.get(String(port)) ?? [], (number) => ({ first: number, last: number }));
  }

  private numberOf(policy: AnyPolicy): number {
    const known = this.known.get(policy);
    if (known !== undefined) return known;
    const { kind, metadata, spec } = policy;
    const text = JSON.stringify([kind, metadata.namespace, metadata.name, spec]);
    const number = this.ids.get(text) ?? this.ids.size;
    this.ids.set(text, number);
    this.known.set(policy, number);
    return number;
  }
}

function ownedRules(policy: AnyPolicy, direction: Direction): readonly OwnedRule[] {
  const { namespace } = policy.metadata;
  return (policy.spec[direction] ?? [])
    .filter(({ action }) => action !== "Log")
    .map((rule) => ({ rule, namespace, own: scopeOf(policy) }));
}

/** Of the ports themselves, and of the replies to those of the other direction, which doNotTrack policies leave alone. */
interface Failsafe {
  readonly destination: NodeAgentSettings["failsafeInboundHostPorts"];
  readonly source: NodeAgentSettings["failsafeInboundHostPorts"];
}

function failsafePorts(settings: NodeAgentSettings, direction: Direction): Failsafe {
  const { failsafeInboundHostPorts: inbound, failsafeOutboundHostPorts: outbound } = settings;
  return direction === "ingress"
    ? { destination: inbound, source: outbound }
    : { destination: outbound, source: inbound };
}

const ICMPV6 = 58;
/** They always pass at a host. */
const NEIGHBOUR_DISCOVERY = [130, 131, 132, 133, 134, 135, 136, 143];

function addFailsafe(failsafe: Failsafe, builder: BreaksBuilder): void {
  for (const side of ["source", "destination"] as const) {
    for (const { protocol, port } of failsafe[side]) {
      const number = protocolNumber(protocol);
      if (number !== undefined) builder.ports(number, side, { first: port, last: port });
    }
  }
  for (const type of NEIGHBOUR_DISCOVERY) builder.icmp(ICMPV6, type, undefined);
}
