/** Writes a script: knows what exists at the moment it writes of, so that most operations meet what they are about. */
import type { Random } from "../schedule/random.ts";
import type { Action, Labels, Operation, PolicySpec, PoolPlan, Script } from "./operation.ts";

export const NAMESPACES = ["red", "blue"];
export const APPS = ["web", "db", "cache"];
/** The label of pods that no policy mentions. */
const STRANGER = "stranger";
export const CONTROLLERS = ["controllers-1", "controllers-2"];

export interface ScriptPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Addresses are kept for its name. */
  readonly keeps?: true;
}

const ENCAPSULATIONS = ["none", "IPIP", "IPIP between subnets", "VXLAN", "VXLAN between subnets"] as const;

const SECOND = 1_000;
const LEAST_NODES = 2;
const LEAST_PODS = 4;

export class ScriptWriter {
  readonly operations: Operation[] = [];
  readonly pods: ScriptPod[] = [];
  readonly nodes: Set<string>;
  readonly pools: Map<string, PoolPlan>;
  readonly policies: { readonly namespace: string; readonly name: string }[] = [];
  now = 0;
  private names = 0;
  /** Pods to which nobody promises anything: their users claim what is not theirs, or ask for what others may have. */
  private readonly demanding: ScriptPod[] = [];
  /** Of pools that were deleted. */
  private readonly freeRanges: string[] = [];

  constructor(
    readonly random: Random,
    private readonly given: Pick<Script, "nodes" | "pools" | "subnets">,
  ) {
    this.nodes = new Set(given.nodes);
    this.pools = new Map(given.pools.map((pool) => [pool.name, pool]));
  }

  /** Time passes. */
  pass(least: number, most: number): void {
    this.now += least + this.random.below(most - least);
  }

  write(action: Action): void {
    this.operations.push({ at: this.now, ...action });
  }

  createPod(
    more: {
      readonly namespace?: string;
      readonly name?: string;
      readonly app?: string;
      readonly on?: string;
      readonly asksFor?: string;
      readonly keeps?: true | undefined;
    } = {},
  ): ScriptPod | undefined {
    const { random } = this;
    if (this.nodes.size === 0) return undefined;
    const { namespace = random.pick(NAMESPACES), app = random.pick(APPS) } = more;
    this.names += 1;
    const { asksFor } = more;
    const name = more.name ?? `${app}-${this.names}`;
    const isNewAndKept = more.name === undefined && asksFor === undefined && random.fork(`keeps ${name}`).chance(0.4);
    const keeps = more.keeps === true || isNewAndKept ? ({ keeps: true } as const) : {};
    const pod = { namespace, name, node: more.on ?? random.pick([...this.nodes]), ...keeps };
    this.pods.push(pod);
    if (asksFor !== undefined) this.demanding.push(pod);
    this.write({ kind: "create pod", ...pod, labels: { app }, ...(asksFor === undefined ? {} : { asksFor }) });
    return pod;
  }

  /** `grace`: how long its containers run on. */
  deletePod(pod: ScriptPod, how: "gracefully" | "by force" | "without DEL" = "gracefully", grace = 0): void {
    this.forget(pod);
    const { namespace, name } = pod;
    this.write({ kind: "delete pod", namespace, name, how, ...(grace === 0 ? {} : { grace }) });
  }

  /** It runs on, but nobody creates it again. */
  loseMirror(pod: ScriptPod): void {
    this.forget(pod);
    this.write({ kind: "lose mirror", namespace: pod.namespace, name: pod.name });
  }

  /** Its user writes what the plugin would: addresses of a machine or of another pod, floating ones, or nonsense. */
  annotatePod(pod: ScriptPod): void {
    const { random } = this;
    const { namespace, name } = pod;
    // Of one that has an address by now.
    const other = this.pods.find((each) => each !== pod) ?? pod;
    const machine = `172.18.0.1${1 + random.below(3)}`;
    const claim = random.pick([
      () => ({ annotations: { podIP: `${machine}/32`, podIPs: `${machine}/32` } }),
      () => ({ annotations: { podIP: "garbage", podIPs: "garbage" } }),
      () => ({ annotations: { ipNATs: JSON.stringify([{ externalIP: machine, internalIP: "10.10.0.1" }]) } }),
      () => ({ annotations: { containerID: "0123456789" } }),
      () => ({ annotations: {}, withAddressOf: { namespace: other.namespace, name: other.name } }),
      () => ({ annotations: {}, withAddressOf: { namespace: other.namespace, name: other.name } }),
    ])();
    this.demanding.push(pod);
    this.write({ kind: "annotate pod", namespace, name, ...claim });
  }

  /** An address by its name, and soon again, often for a pod that the policy of the former one's peer does not let in. */
  useAddressAgain(namespace: string): void {
    const { random } = this;
    const asksFor = `10.10.0.${random.below(8)}`;
    const peer = this.pods.find((each) => each.namespace === namespace);
    const app = random.pick(APPS);
    // DEL itself forgets the connections of its node.
    const others = [...this.nodes].filter((node) => node !== peer?.node);
    const pod = this.createPod({
      asksFor,
      namespace,
      app,
      ...(others.length === 0 ? {} : { on: random.pick(others) }),
    });
    const isOpener = random.chance(0.5);
    if (random.chance(0.7)) this.allowPeers(namespace, app, isOpener ? "Ingress" : "Egress");
    this.pass(5 * SECOND, 20 * SECOND);
    if (pod !== undefined && peer !== undefined) this.openConnection(isOpener ? pod : peer, isOpener ? peer : pod);
    this.pass(0, 2 * SECOND);
    if (pod !== undefined) this.deletePod(pod);
    this.pass(0, 5 * SECOND);
    this.createPod({ asksFor, app: STRANGER, namespace: random.chance(0.7) ? namespace : random.pick(NAMESPACES) });
    this.pass(15 * SECOND, 20 * SECOND);
  }

  private allowPeers(namespace: string, app: string, direction: "Ingress" | "Egress"): void {
    const peers = [{ podSelector: { matchLabels: { app } } }];
    const rules = direction === "Ingress" ? { ingress: [{ from: peers }] } : { egress: [{ to: peers }] };
    this.policies.push({ namespace, name: "peers" });
    this.write({
      ...{ kind: "apply policy", namespace, name: "peers" },
      spec: { podSelector: {}, policyTypes: [direction], ...rules },
    });
  }

  /** Packets are sent for longer than the kernel remembers those of UDP. */
  openConnection(from = this.anyPod(), to = this.anyPod()): void {
    if (from === undefined || to === undefined || from === to) return;
    const { random } = this;
    this.write({
      ...{ kind: "open connection", from: titleOf(from), to: titleOf(to) },
      ...{
        protocol: random.pick(["UDP", "UDP", "TCP"]),
        port: random.pick([80, 9]),
        lasts: random.pick([60, 240]) * SECOND,
      },
    });
  }

  private anyPod(): ScriptPod | undefined {
    return this.pods.length === 0 ? undefined : this.random.pick(this.pods);
  }

  applyPolicy(): void {
    const { random } = this;
    const known = random.chance(0.4) && this.policies.length > 0 ? random.pick(this.policies) : undefined;
    const policy = known ?? { namespace: random.pick(NAMESPACES), name: `policy-${this.policies.length}` };
    if (known === undefined) this.policies.push(policy);
    this.write({ kind: "apply policy", ...policy, spec: randomPolicy(random) });
  }

  /** Policies that last, so that there are sets of addresses which pods enter and leave: other ones soon go again. */
  applyLastingPolicies(): void {
    const random = this.random.fork("lasting policies");
    for (const namespace of NAMESPACES) {
      if (!random.chance(0.7)) continue;
      const namespaces = random.pick([{}, { namespaceSelector: {} }]);
      const peer = { ...namespaces, podSelector: random.chance(0.7) ? { matchLabels: appOf(random) } : {} };
      const spec: PolicySpec = { podSelector: {}, policyTypes: ["Ingress"], ingress: [{ from: [peer] }] };
      this.write({ kind: "apply policy", namespace, name: "lasting", spec });
    }
  }

  deletePolicy(): void {
    if (this.policies.length === 0) return;
    const policy = this.random.pick(this.policies);
    this.policies.splice(this.policies.indexOf(policy), 1);
    this.write({ kind: "delete policy", ...policy });
  }

  /** Whatever changes, outgoing NAT may too. */
  applyPool(changed: PoolPlan): void {
    const natOutgoing = this.random.fork(`NAT ${this.operations.length}`).chance(0.5);
    const pool = { ...changed, natOutgoing };
    this.pools.set(pool.name, pool);
    this.write({ kind: "apply pool", pool });
  }

  /** One more. */
  addPool(index: number): void {
    const { random } = this;
    const encapsulation = randomEncapsulation(random, this.given.subnets);
    const blockSize = random.pick([28, 29, 30]);
    // The range of a pool that was deleted is soon used again, often with blocks of another size.
    const cidr = this.freeRanges.pop() ?? `10.${30 + index}.0.0/26`;
    this.applyPool({ name: `pool-${3 + index}`, cidr, blockSize, encapsulation });
  }

  deletePool(name: string): void {
    const { cidr } = this.pools.get(name) ?? {};
    if (cidr !== undefined) this.freeRanges.push(cidr);
    this.pools.delete(name);
    this.write({ kind: "delete pool", name, ...(this.random.chance(0.5) ? { by: "kubectl" } : {}) });
  }

  joinNode(): void {
    const node = ["node-1", "node-2", "node-3", "node-4", "node-5"].find((name) => !this.nodes.has(name));
    if (node === undefined) return;
    this.nodes.add(node);
    this.write({ kind: "join node", node });
  }

  /** Its pods are gone with it. `runsOn`: how long its machine is not. */
  deleteNode(node: string, runsOn = 0): void {
    this.nodes.delete(node);
    for (const pod of this.pods.filter((each) => each.node === node)) this.forget(pod);
    this.write({ kind: "delete node", node, ...(runsOn === 0 ? {} : { runsOn }) });
  }

  /** So that at rest there is something to reach, from elsewhere too, and every pod can run. */
  endWithEnough(): void {
    // What happens at one time happens in any order.
    this.now += 1_000;
    for (const pod of this.demanding) if (this.pods.includes(pod)) this.deletePod(pod);
    this.now += 1_000;
    const [pool] = this.pools.values();
    const isEnabled = [...this.pools.values()].some(({ disabled }) => disabled !== true);
    if (pool !== undefined && !isEnabled) this.applyPool({ ...pool, disabled: false });
    while (this.nodes.size < LEAST_NODES) this.joinNode();
    this.now += 1_000;
    for (const node of [...this.nodes].slice(0, LEAST_NODES)) {
      const present = this.pods.filter((pod) => pod.node === node && !this.isCreatedAgain(pod)).length;
      for (let count = present; count < LEAST_PODS / LEAST_NODES; count++) this.createPod({ on: node });
    }
  }

  /** While the former pod of this name still ends, there is no other: it may never come. */
  private isCreatedAgain({ namespace, name }: ScriptPod): boolean {
    const isOf = (each: Operation) => each.kind === "create pod" && each.namespace === namespace && each.name === name;
    return this.operations.filter(isOf).length > 1;
  }

  private forget(pod: ScriptPod): void {
    const at = this.pods.indexOf(pod);
    if (at >= 0) this.pods.splice(at, 1);
  }
}

function titleOf({ namespace, name }: ScriptPod): { readonly namespace: string; readonly name: string } {
  return { namespace, name };
}

/** Small, so that blocks run out, are borrowed from, and addresses are soon used again. */
export function randomPools(random: Random, subnets: Script["subnets"]): readonly PoolPlan[] {
  const encapsulation = randomEncapsulation(random, subnets);
  const natOutgoing = random.fork("NAT").chance(0.7);
  const blockSize = random.pick([28, 29, 30]);
  const first: PoolPlan = { name: "pool-1", cidr: "10.10.0.0/25", blockSize, encapsulation, natOutgoing };
  if (random.chance(0.6)) return [first];
  const other = randomEncapsulation(random, subnets);
  return [first, { name: "pool-2", cidr: "10.20.0.0/26", blockSize: 29, encapsulation: other }];
}

/** Without a tunnel, pods of another subnet could not be reached. */
function randomEncapsulation(random: Random, subnets: Script["subnets"]): PoolPlan["encapsulation"] {
  return random.pick(subnets === 1 ? ENCAPSULATIONS : ENCAPSULATIONS.filter((each) => each !== "none"));
}

function randomPolicy(random: Random): PolicySpec {
  const podSelector = random.chance(0.3) ? {} : { matchLabels: appOf(random) };
  const ports = random.chance(0.5) ? [{ protocol: random.pick(["TCP", "UDP"] as const), port: 80 }] : undefined;
  const peers = () =>
    random.pick([
      () => [{ podSelector: { matchLabels: appOf(random) } }],
      () => [{ namespaceSelector: { matchLabels: { team: random.pick(["one", "two"]) } } }],
      () => [{ namespaceSelector: {}, podSelector: { matchLabels: appOf(random) } }],
      () => [{ ipBlock: { cidr: random.pick(["10.10.0.0/26", "10.0.0.0/8", "172.18.0.0/16"]) } }],
    ])();
  const rule = () => (ports === undefined ? {} : { ports });
  const isIngress = random.chance(0.7);
  const isEgress = !isIngress || random.chance(0.3);
  const rules = () => (random.chance(0.25) ? 0 : 1 + random.below(2));
  return {
    podSelector,
    policyTypes: [...(isIngress ? (["Ingress"] as const) : []), ...(isEgress ? (["Egress"] as const) : [])],
    ...(isIngress ? { ingress: Array.from({ length: rules() }, () => ({ ...rule(), from: peers() })) } : {}),
    ...(isEgress ? { egress: Array.from({ length: rules() }, () => ({ ...rule(), to: peers() })) } : {}),
  };
}

function appOf(random: Random): Labels {
  return { app: random.pick(APPS) };
}
