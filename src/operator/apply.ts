/**
 * Applies rendered objects: server-side apply with the operator's field manager, by force, so that a field changed by hand
 * is put back; fields that are not rendered are left to others.
 *
 * An object that is as the operator left it is not sent again: what was applied last, and what the API made of it, is
 * remembered. After a restart each object is sent once, which changes nothing if it is the same.
 */
import { effectOf } from "../effect.ts";
import type { KubeClient, KubeRequest, KubeResponse } from "../kube/api.ts";
import { takeOverPatch } from "../kube/field-owners.ts";
import { isForbidden, requireOk } from "../kube/require-ok.ts";
import { parseJson } from "../parse-json.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { isApplied, isBeingDeleted, isIgnored, type LiveObject, memberAt, textsAt } from "../release/live-object.ts";
import { describeObject, objectPath } from "../release/object-kinds.ts";
import { FIELD_MANAGER } from "../release/operator-names.ts";

/** Others write the same object at the same time. */
const ATTEMPTS = 5;
/** Objects that are not followed are sent again after this time. */
const UNFOLLOWED_MILLISECONDS = 60_000;

const WORKLOADS: ReadonlySet<string> = new Set(["DaemonSet", "Deployment"]);

export type Applied = "unchanged" | "ignored" | "applied" | "recreated";

export interface ApplierOptions {
  readonly client: Pick<KubeClient, "request">;
  /** Throws if this process may not write any more. */
  readonly requireLeading: () => void;
  readonly elapsed: () => number;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

interface Remembered {
  readonly rendered: string;
  /** Digest of the object. */
  readonly live: string;
  readonly object: LiveObject;
  readonly at: number;
}

export class Applier {
  private readonly remembered = new Map<string, Remembered>();
  /** Paths of objects that a person was asked to delete. */
  private readonly unpruned = new Set<string>();

  constructor(private readonly options: ApplierOptions) {}

  /** `live`: the object as the replica has it; "not followed" if it has none of this kind. */
  async apply(object: KubeObject, live: LiveObject | undefined | "not followed"): Promise<Applied> {
    const path = objectPath(object);
    const rendered = JSON.stringify(object);
    if (this.isUnchanged(path, rendered, live)) return "unchanged";
    // The replica does not have an object without our label, and may be behind.
    const found = live === undefined || live === "not followed" ? await this.read(path) : live;
    if (found !== undefined && isIgnored(found)) return "ignored";
    await this.takeOver(path, found);
    const applied = await this.send(path, JSON.stringify(withLiveSelector(object, found)), found);
    this.remember(path, rendered, applied.object);
    const hasChanged = found === undefined || digestOf(found) !== digestOf(applied.object);
    if (hasChanged) this.options.log(`Applied ${describeObject(object)}`, "INFO");
    return applied.isNew ? "recreated" : hasChanged ? "applied" : "unchanged";
  }

  /** The object as it was applied last, if that is newer: what the replica has may be older than our own write. */
  latest(live: LiveObject): LiveObject {
    const applied = this.remembered.get(objectPath(live))?.object;
    return applied !== undefined && isNewer(applied, live) ? applied : live;
  }

  /** Deletes it unless it has been replaced meanwhile; its dependents are deleted by the garbage collector. */
  async remove(object: LiveObject, why: string): Promise<void> {
    const { client, requireLeading, log } = this.options;
    requireLeading();
    const path = objectPath(object);
    const request: KubeRequest = {
      method: "DELETE",
      path,
      attempt: "retry",
      body: JSON.stringify({
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: "Background",
        preconditions: { uid: object.metadata.uid },
      }),
    };
    const response = await effectOf(`delete ${describeObject(object)}`, () => client.request(request));
    this.remembered.delete(path);
    // 409: another object of the same name.
    if (response.status === 404 || response.status === 409) return;
    requireOk(response, request);
    log(`Deleted ${describeObject(object)}: ${why}`, "INFO");
  }

  /** As `remove`, of an object that the replica does not have, if there is one. */
  async removeUnfollowed(named: KubeObject, why: string): Promise<void> {
    const found = await this.read(objectPath(named));
    if (found !== undefined && !isBeingDeleted(found)) await this.remove(found, why);
  }

  /** As `remove`; an object that the role does not permit to delete stays, for a person. */
  async prune(object: LiveObject, why: string): Promise<void> {
    try {
      await this.remove(object, why);
    } catch (failure) {
      if (!isForbidden(failure)) throw failure;
      const path = objectPath(object);
      if (this.unpruned.has(path)) return;
      this.unpruned.add(path);
      this.options.log(
        `${describeObject(object)} stays, which this release does not need: ${failure.message}; delete it with ` +
          `"${deleteCommand(object)}"`,
        "WARNING",
      );
    }
  }

  /**
   * A workload of an earlier operator, which has not applied it but updated it: its init containers, volumes and variables
   * would stay beside ours. Whatever is rendered no more goes with the next apply; labels and annotations stay.
   */
  private async takeOver(path: string, found: LiveObject | undefined): Promise<void> {
    let live = found;
    for (let attempt = 1; live !== undefined && WORKLOADS.has(live.kind) && !isApplied(live); attempt++) {
      const patch = takeOverPatch(live, { manager: FIELD_MANAGER, isTaken: () => true, metadata: "left" });
      if (patch.length === 0) return;
      this.options.requireLeading();
      const contentType = "application/json-patch+json";
      const request: KubeRequest = { method: "PATCH", path, contentType, body: JSON.stringify(patch) };
      const response = await effectOf(`take over ${path}`, () => this.options.client.request(request));
      if (response.status === 404) return;
      // Somebody has changed it meanwhile.
      const isOutdated = response.status === 422 && attempt < ATTEMPTS;
      if (!isOutdated) {
        requireOk(response, request);
        this.options.log(`Took over ${describeObject(live)} of an earlier release`, "INFO");
        return;
      }
      live = await this.read(path);
    }
  }

  private isUnchanged(path: string, rendered: string, live: LiveObject | undefined | "not followed"): boolean {
    const last = this.remembered.get(path);
    if (last === undefined || last.rendered !== rendered || live === undefined) return false;
    if (live === "not followed") return this.options.elapsed() - last.at < UNFOLLOWED_MILLISECONDS;
    // The watch may be behind our own write.
    return !isNewer(live, last.object) || digestOf(live) === last.live;
  }

  private remember(path: string, rendered: string, object: LiveObject): void {
    this.remembered.set(path, { rendered, live: digestOf(object), object, at: this.options.elapsed() });
  }

  private async read(path: string): Promise<LiveObject | undefined> {
    const request: KubeRequest = { method: "GET", path };
    const response = await this.options.client.request(request);
    return response.status === 404 ? undefined : (parseJson(requireOk(response, request)) as LiveObject);
  }

  private async send(path: string, rendered: string, found: LiveObject | undefined) {
    const request: KubeRequest = {
      method: "PATCH",
      path,
      query: { fieldManager: FIELD_MANAGER, force: "true" },
      contentType: "application/apply-patch+yaml",
      body: rendered,
      attempt: "retry",
    };
    let isNew = false;
    for (let attempt = 1; ; attempt++) {
      this.options.requireLeading();
      const response = await effectOf(`apply ${path}`, () => this.options.client.request(request));
      if (response.status === 409 && attempt < ATTEMPTS) continue;
      if (found !== undefined && !isNew && isImmutable(response)) {
        await this.remove(found, "a field that must change is immutable; it is created again");
        isNew = true;
        continue;
      }
      return { object: parseJson(requireOk(response, request)) as LiveObject, isNew };
    }
  }
}

function deleteCommand({ kind, metadata: { name, namespace } }: LiveObject): string {
  return `kubectl delete ${kind.toLowerCase()} ${name}${namespace === undefined ? "" : ` --namespace=${namespace}`}`;
}

function isNewer(one: LiveObject, other: LiveObject): boolean {
  return BigInt(one.metadata.resourceVersion) > BigInt(other.metadata.resourceVersion);
}

/** A selector, the role of a binding, the type of a Secret. */
function isImmutable({ status, text }: KubeResponse): boolean {
  return status === 422 && /immutable|cannot change roleRef/.test(text);
}

/** Everything that somebody could have edited: not what controllers report. */
function digestOf({ status: _, metadata, ...object }: LiveObject): string {
  const { resourceVersion: _version, managedFields: _fields, generation: _generation, ...edited } = metadata;
  return Bun.hash(JSON.stringify({ ...object, metadata: edited })).toString(36);
}

/**
 * The selector of a workload cannot be changed. One that an earlier release created keeps its own: the new pods also get the
 * labels that it selects, and so replace the former ones one after another. Pure.
 */
export function withLiveSelector(object: KubeObject, live: LiveObject | undefined): KubeObject {
  const selector = memberAt(live, "spec", "selector");
  const wanted = memberAt(object, "spec", "selector");
  const template = memberAt(object, "spec", "template");
  if (selector === undefined || template === undefined || Bun.deepEquals(selector, wanted)) return object;
  const labels = { ...textsAt(template, "metadata", "labels"), ...textsAt(selector, "matchLabels") };
  const metadata = { ...Object(memberAt(template, "metadata")), labels };
  return { ...object, spec: { ...Object(object["spec"]), selector, template: { ...Object(template), metadata } } };
}
