/**
 * The container runtime of a simulated machine. It makes and removes the namespaces of sandboxes, calls the plugin as CNI
 * says, and remembers results, on its disk, until their DEL has succeeded.
 */
import { encodeValidAttachments } from "../../src/cni/attachments.ts";
import type { JsonObject } from "../../src/cni/json.ts";
import type { WorldAttachment } from "../judge/invariant.ts";
import { GcTurns } from "./gc-turns.ts";
import type { GivenCall } from "./plugin-call.ts";

export interface RuntimePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export type AddOutcome =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/** "died": the process that was called ended without a reply. */
export type CallOutcome =
  | { readonly kind: "done"; readonly stdout: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "died" };

export interface RuntimeMeans {
  /** The network list that is installed. */
  readonly network: () => string;
  readonly call: (call: GivenCall) => Promise<CallOutcome>;
  readonly hasNamespace: (path: string) => boolean;
  readonly makeNamespace: (path: string) => void;
  readonly removeNamespace: (path: string) => void;
}

interface Sandbox {
  readonly pod: RuntimePod;
  readonly netns: string;
  /** Of its ADD. */
  result?: JsonObject;
}

const INTERFACE = "eth0";
/** Why a call failed that did not reply. */
export const PLUGIN_DIED = "the plugin died";

export class SimulatedRuntime {
  /** What the runtime believes, by container. */
  readonly attachments = new Map<string, WorldAttachment>();
  /** On its disk. */
  private readonly sandboxes = new Map<string, Sandbox>();
  /** The reasons of calls that failed, the latest last. */
  readonly failures: string[] = [];
  private readonly turns = new GcTurns();

  constructor(private readonly means: RuntimeMeans) {}

  /** Also a second time, for a sandbox that exists. */
  add(pod: RuntimePod, containerId: string): Promise<AddOutcome> {
    return this.turns.beside(() => this.addNow(pod, containerId));
  }

  private async addNow(pod: RuntimePod, containerId: string): Promise<AddOutcome> {
    const netns = netnsOf(containerId);
    if (!this.means.hasNamespace(netns)) this.means.makeNamespace(netns);
    const { namespace, name, uid } = pod;
    const sandbox = this.sandboxes.get(containerId) ?? { pod, netns };
    this.sandboxes.set(containerId, sandbox);
    const before = this.attachments.get(containerId);
    const attachment = { pod: { namespace, name, uid }, containerId, netnsPath: netns, addresses: [] };
    if (before === undefined) this.attachments.set(containerId, { ...attachment, state: "adding" });
    const outcome = await this.call("ADD", containerId, sandbox);
    const isKnown = this.sandboxes.get(containerId) === sandbox && this.attachments.has(containerId);
    if (outcome.kind !== "done") {
      if (isKnown && before === undefined) this.attachments.set(containerId, { ...attachment, state: "failed" });
      return { ok: false, reason: reasonOf(outcome) ?? "" };
    }
    const result = JSON.parse(outcome.stdout) as JsonObject;
    const addresses = addressesIn(result);
    if (isKnown) {
      sandbox.result = result;
      const isWanted = this.attachments.get(containerId)?.state !== "deleting";
      if (isWanted) this.attachments.set(containerId, { ...attachment, addresses, state: "attached" });
    }
    return { ok: true, addresses };
  }

  /** `false`: to be tried again. A container that is unknown, or was deleted already, is nothing to do. */
  del(containerId: string): Promise<boolean> {
    return this.turns.beside(() => this.delNow(containerId));
  }

  private async delNow(containerId: string): Promise<boolean> {
    const sandbox = this.sandboxes.get(containerId);
    if (sandbox === undefined) return true;
    const attachment = this.attachments.get(containerId);
    if (attachment !== undefined) this.attachments.set(containerId, { ...attachment, state: "deleting" });
    const outcome = await this.call("DEL", containerId, sandbox);
    if (outcome.kind !== "done") return false;
    this.forget(containerId);
    return true;
  }

  /** DEL once more, of a container that is gone: nothing happens to others. */
  async repeatDel(pod: RuntimePod, containerId: string): Promise<boolean> {
    const sandbox = { pod, netns: netnsOf(containerId) };
    const outcome = await this.turns.beside(() => this.call("DEL", containerId, sandbox));
    return outcome.kind === "done";
  }

  /** Returns why it failed. */
  async check(containerId: string): Promise<string | undefined> {
    const sandbox = this.sandboxes.get(containerId);
    if (sandbox?.result === undefined) return undefined;
    return reasonOf(await this.call("CHECK", containerId, sandbox));
  }

  /** With all sandboxes that it knows of as those to keep. Returns why it failed. */
  gc(): Promise<string | undefined> {
    return this.turns.alone(() => this.gcNow());
  }

  private async gcNow(): Promise<string | undefined> {
    const valid = Array.from(this.sandboxes.keys(), (containerId) => ({ containerId, ifname: INTERFACE }));
    return reasonOf(await this.finished({ CNI_COMMAND: "GC" }, this.config({ ...encodeValidAttachments(valid) })));
  }

  /** The sandbox vanishes without a DEL. */
  forget(containerId: string): void {
    const sandbox = this.sandboxes.get(containerId);
    this.sandboxes.delete(containerId);
    this.attachments.delete(containerId);
    if (sandbox !== undefined && this.means.hasNamespace(sandbox.netns)) this.means.removeNamespace(sandbox.netns);
  }

  private call(command: "ADD" | "DEL" | "CHECK", containerId: string, { pod, netns, result }: Sandbox) {
    const { namespace, name, uid } = pod;
    const args = [
      ...["IgnoreUnknown=1", `K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`],
      ...[`K8S_POD_INFRA_CONTAINER_ID=${containerId}`, `K8S_POD_UID=${uid}`],
    ];
    const environment = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: this.means.hasNamespace(netns) ? netns : "",
      CNI_IFNAME: INTERFACE,
      CNI_ARGS: args.join(";"),
    };
    const previous = command === "ADD" || result === undefined ? {} : { prevResult: result };
    return this.finished(environment, this.config(previous));
  }

  private async finished(environment: Readonly<Record<string, string>>, stdin: string): Promise<CallOutcome> {
    const outcome = await this.means.call({ environment, stdin });
    if (outcome.kind === "failed") this.failures.push(`${environment["CNI_COMMAND"]}: ${outcome.reason}`);
    return outcome;
  }

  /** What a runtime gives to the only plugin of a list. */
  private config(more: JsonObject): string {
    const { name, cniVersion, plugins } = JSON.parse(this.means.network());
    return JSON.stringify({ ...plugins[0], name, cniVersion, ...more });
  }
}

/** Why it failed. */
function reasonOf(outcome: CallOutcome): string | undefined {
  if (outcome.kind === "done") return undefined;
  return outcome.kind === "failed" ? outcome.reason : PLUGIN_DIED;
}

function netnsOf(containerId: string): string {
  return `/run/netns/${containerId}`;
}

function addressesIn({ ips }: JsonObject): readonly string[] {
  const list = Array.isArray(ips) ? (ips as readonly { readonly address: string }[]) : [];
  return list.map(({ address }) => address.split("/")[0] ?? "");
}
