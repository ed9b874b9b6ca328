/**
 * One file for each local endpoint whose rules are in the kernel and whose interface is up. The plugin waits for it.
 *
 *   the kernel has acknowledged the endpoint's rules -> pending -> its interface is up -> file
 *   the endpoint is gone, or belongs to another container -> no file
 *
 * The interface usually appears a few milliseconds after the rules: until then it is looked for, less and less often.
 */

import type { FileFolder } from "../../linux/file-folder.ts";
import { type EndpointStatus, isStatusOf, statusFileName } from "../../model/endpoint-status.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";

const FIRST_PAUSE = 2;
const LONGEST_PAUSE = 1_000;
/** How often the folder is compared with the endpoints. */
const COMPARE_MILLISECONDS = 10_000;

export interface StatusMeans {
  readonly folder: FileFolder;
  /** Those of the interfaces that exist and are up. */
  readonly upOf: (interfaceNames: readonly string[]) => ReadonlySet<string>;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly elapsed: () => number;
  /** Called for every failure, perhaps often with the same message. */
  readonly report: (message: string) => void;
}

interface StatusFile {
  readonly name: string;
  readonly status: EndpointStatus;
  readonly text: string;
}

export class StatusFiles {
  /** By the key of the endpoint. */
  private readonly files = new Map<string, StatusFile>();
  /** The keys of endpoints whose file is not written yet. */
  private readonly pending = new Set<string>();
  private isFirst = true;
  private isCleared = false;
  /** When the folder was changed last, at the last comparison. */
  private seenChange: bigint | undefined;
  /** The files of a folder that was changed last at this time are right. */
  private rightSince: bigint | undefined;
  private nap = new AbortController();

  constructor(private readonly means: StatusMeans) {}

  /** The kernel has acknowledged the rules of the local endpoints, of which these have changed. */
  update(changed: Iterable<string>, local: ReadonlyMap<string, LocalEndpoint>): void {
    for (const key of this.isFirst ? local.keys() : changed) {
      const endpoint = local.get(key);
      if (endpoint !== undefined) this.put(key, endpoint);
      else this.remove(key);
    }
    if (this.isFirst) this.compare();
    this.isFirst = false;
    this.isCleared = false;
    if (this.pending.size > 0) this.nap.abort();
  }

  /** All endpoints lose their file, also those that an earlier agent wrote: there are no rules. */
  clear(): void {
    for (const key of [...this.files.keys()]) this.remove(key);
    if (!this.isCleared && this.changeOfFolder() !== undefined) this.compare();
    this.isFirst = true;
    this.isCleared = true;
  }

  /** Writes the files of pending endpoints until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { wait, elapsed } = this.means;
    let pause = FIRST_PAUSE;
    let comparedAt = elapsed();
    while (!signal.aborted) {
      this.nap = new AbortController();
      this.writePending();
      const isPending = this.pending.size > 0;
      await wait(isPending ? pause : COMPARE_MILLISECONDS, AbortSignal.any([signal, this.nap.signal]));
      if (signal.aborted) return;
      pause = this.nap.signal.aborted || !isPending ? FIRST_PAUSE : Math.min(pause * 2, LONGEST_PAUSE);
      if (this.isFirst || elapsed() - comparedAt < COMPARE_MILLISECONDS) continue;
      comparedAt = elapsed();
      this.compare();
    }
  }

  private put(key: string, { endpoint, interfaceName }: LocalEndpoint): void {
    const file = statusFileOf(endpoint, interfaceName);
    const before = this.files.get(key);
    if (before?.text === file.text) return;
    // Who only looks whether the file exists must not take it for the new container's.
    if (before !== undefined && before.status.containerID !== file.status.containerID) this.delete(before.name);
    this.files.set(key, file);
    this.pending.add(key);
  }

  private remove(key: string): void {
    const file = this.files.get(key);
    if (file === undefined) return;
    this.files.delete(key);
    this.pending.delete(key);
    this.delete(file.name);
  }

  private writePending(): void {
    if (this.pending.size === 0) return;
    const waiting = [...this.pending].flatMap((key) => {
      const file = this.files.get(key);
      return file === undefined ? [] : [{ key, file }];
    });
    const up = this.means.upOf(waiting.map(({ file }) => file.status.ifaceName));
    for (const { key, file } of waiting)
      if (up.has(file.status.ifaceName) && this.write(file)) this.pending.delete(key);
  }

  /** Deletes files of others, and writes again what is missing or belongs to another container. */
  private compare(): void {
    const { folder } = this.means;
    const change = this.changeOfFolder();
    if (!this.isFirst && change !== undefined && change === this.rightSince) return;
    // Two changes within one tick of the clock have the same time: the files count as right when they are compared later.
    this.rightSince = change === this.seenChange ? change : undefined;
    this.seenChange = change;
    const wanted = new Map(Array.from(this.files, ([key, file]) => [file.name, { key, file }]));
    let names: readonly string[] = [];
    this.attempt(`list "${folder.path}"`, () => {
      names = folder.list();
    });
    for (const name of names) if (!wanted.has(name)) this.delete(name);
    const present = new Set(names);
    for (const [name, { key, file }] of wanted) {
      if (present.has(name) && this.isWritten(file)) this.pending.delete(key);
      else this.pending.add(key);
    }
  }

  private changeOfFolder(): bigint | undefined {
    const { folder } = this.means;
    let change: bigint | undefined;
    this.attempt(`inspect "${folder.path}"`, () => {
      change = folder.changedAt();
    });
    return change;
  }

  private isWritten({ name, status }: StatusFile): boolean {
    let text = "";
    this.attempt(`read "${name}"`, () => {
      text = this.means.folder.read(name);
    });
    return isStatusOf(text, status.containerID);
  }

  private write({ name, text }: StatusFile): boolean {
    const { folder } = this.means;
    return this.attempt(`write "${folder.path}/${name}"`, () => folder.write(name, text));
  }

  private delete(name: string): void {
    const { folder } = this.means;
    this.attempt(`remove "${folder.path}/${name}"`, () => folder.remove(name));
  }

  private attempt(action: string, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (failure) {
      this.means.report(`Cannot ${action}: ${failure instanceof Error ? failure.message : failure}`);
      this.rightSince = undefined;
      this.seenChange = undefined;
      return false;
    }
  }
}

function statusFileOf({ metadata, spec }: WorkloadEndpoint, interfaceName: string): StatusFile {
  const { orchestrator = "", pod, containerID = "", endpoint = "", mac, ipNetworks = [] } = spec;
  const status: EndpointStatus = {
    containerID,
    ifaceName: interfaceName,
    ...(mac === undefined ? {} : { mac }),
    ipv4Nets: ipNetworks.filter((network) => !network.includes(":")),
    ipv6Nets: ipNetworks.filter((network) => network.includes(":")),
  };
  const owner = { orchestrator, namespace: metadata.namespace ?? "", pod, containerId: containerID, endpoint };
  return { name: statusFileName(owner), status, text: `${JSON.stringify(status)}\n` };
}
