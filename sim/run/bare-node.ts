/** A node without a kernel: its runtime calls the allocator as the plugin does, each call in a process of its own. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { PluginError } from "../../src/errors.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { podRequest } from "../../test/support/ipam.ts";
import type { WorldAttachment } from "../judge/invariant.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import type { AddResult, KubeletPod } from "./kubelet.ts";

export interface BareNodeMeans {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly openStore: (process: SimulatedProcess) => Datastore;
}

/** A runtime waits that long for its plugin. */
const CALL_MILLISECONDS = 120_000;

export class BareNode {
  readonly attachments = new Map<string, WorldAttachment>();
  private calls = 0;
  private nextKill: number | undefined;
  private readonly running = new Set<SimulatedProcess>();

  constructor(private readonly means: BareNodeMeans) {}

  /** The next call dies after that many effects. */
  killNextCall(afterEffects: number): void {
    this.nextKill = afterEffects;
  }

  killCalls(): void {
    for (const process of this.running) process.kill();
  }

  async add(pod: KubeletPod, containerId: string): Promise<AddResult> {
    const { name: node } = this.means;
    const { namespace, name, uid } = pod;
    const attachment = { pod: { namespace, name, uid }, containerId, addresses: [] };
    this.attachments.set(containerId, { ...attachment, state: "adding" });
    const texts = await this.call(async (process) => {
      const request = podRequest(containerId, { pod: name, node });
      const wishes = [{ kind: "automatic", family: 4 } as const];
      const attributes = { pod: name, namespace };
      const { addresses } = await this.allocator(process).assign({ ...request, attributes, wishes });
      return addresses.map(({ address }) => formatAddress(address));
    });
    const isKnown = this.attachments.get(containerId)?.state === "adding";
    if (texts !== undefined && isKnown) {
      this.attachments.set(containerId, { ...attachment, addresses: texts, state: "attached" });
      return { ok: true, addresses: texts };
    }
    if (isKnown) this.attachments.set(containerId, { ...attachment, state: "failed" });
    return { ok: false, reason: "ADD failed" };
  }

  async del(containerId: string): Promise<boolean> {
    const { name: node } = this.means;
    const attachment = this.attachments.get(containerId);
    if (attachment !== undefined) this.attachments.set(containerId, { ...attachment, state: "deleting" });
    const released = await this.call((process) =>
      this.allocator(process).releaseHandle({
        ...{ handle: `net.${containerId}`, network: "net", interface: "eth0", node },
      }),
    );
    if (released === undefined) return false;
    this.attachments.delete(containerId);
    return true;
  }

  private allocator(process: SimulatedProcess) {
    const { now, wait, random } = process;
    return openAllocator(this.means.openStore(process), { now, wait, random: () => random.next() });
  }

  /** `undefined` if the call fails, or dies. */
  private async call<Answer>(work: (process: SimulatedProcess) => Promise<Answer>): Promise<Answer | undefined> {
    const { name, scheduler, random } = this.means;
    this.calls += 1;
    const title = `call ${this.calls} on ${name}`;
    const process = new SimulatedProcess(title, scheduler, random.fork(title));
    if (this.nextKill !== undefined) process.killAfter(this.nextKill);
    this.nextKill = undefined;
    this.running.add(process);
    const died = Promise.withResolvers<undefined>();
    process.onKill(() => died.resolve(undefined));
    const cancel = scheduler.after(CALL_MILLISECONDS, () => process.kill());
    const outcome = work(process).catch((failure: unknown) => {
      if (!(failure instanceof PluginError) && process.isAlive) throw failure;
      return undefined;
    });
    try {
      return await Promise.race([outcome, died.promise]);
    } finally {
      cancel();
      this.running.delete(process);
    }
  }
}
