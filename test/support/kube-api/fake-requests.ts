/** What an API server in memory responds to a request: reads and writes of its objects. */

import type { KubeRequest, KubeResponse } from "../../../src/kube/api.ts";
import { quoteSequenceNumbers } from "../../../src/model/sequence-numbers.ts";
import type { FakeObjects, Query, Stored } from "./fake-objects.ts";
import { applyPatch, type FakeObject, mergePatch } from "./fake-patches.ts";
import { isRefusal, type ServerRules } from "./fake-rules.ts";

/** What a request is about. */
interface Target {
  /** Without name and subresource. */
  readonly collection: string;
  readonly name?: string;
  /** Without the subresource. */
  readonly path: string;
}

export interface FakeServerOptions {
  readonly now: () => Date;
  readonly rules: ServerRules | undefined;
  /** By how many changes the copy of a collection is behind from which the server responds to a list that may be older. */
  readonly lag: (revision: number, collection: string) => number;
}

export class FakeRequests {
  private uids = 0;

  constructor(
    private readonly objects: FakeObjects,
    private readonly options: FakeServerOptions,
  ) {}

  respond(request: KubeRequest): KubeResponse {
    const { method, path: requested, query = {}, body, contentType } = request;
    const answer = this.options.rules?.answer?.(request);
    if (answer !== undefined) return answer;
    const target = targetOf(requested, this.objects);
    const stored = this.objects.get(target.path);
    if (method === "POST") {
      const given = bodyOf(body);
      return this.create(`${target.path}/${given.metadata["name"]}`, given, request);
    }
    if (method === "PATCH" && contentType === "application/apply-patch+yaml")
      return this.apply(target.path, stored, request);
    if (method === "GET" && stored === undefined && target.name === undefined) return this.list(target, query);
    if (stored === undefined) return status(404, "NotFound");
    if (method === "GET") return { status: 200, text: stored.text };
    if (method === "PUT") return this.replace(stored, bodyOf(body), request);
    if (method === "DELETE") return this.remove(stored, bodyOf(body));
    const isMerged = contentType === "application/merge-patch+json";
    const patched = (isMerged ? mergePatch : applyPatch)(stored.object, JSON.parse(body ?? "[]"));
    return patched === undefined
      ? status(422, "the server rejected our request due to an error in our request")
      : this.replace(stored, patched, request);
  }

  /** Later than the present one if it is not reached yet. */
  listedRevision(collection: string, { resourceVersion = "" }: Query): number {
    this.objects.open(collection);
    if (resourceVersion === "") return this.objects.revision;
    return Math.max(
      this.objects.copiedRevision(this.options.lag(this.objects.revision, collection)),
      Number(resourceVersion),
    );
  }

  private create(path: string, body: FakeObject, request: KubeRequest): KubeResponse {
    if (this.objects.get(path)) return status(409, "AlreadyExists");
    const metadata = {
      ...body.metadata,
      uid: `uid-${this.uids + 1}`,
      creationTimestamp: this.options.now().toISOString(),
    };
    const given = { ...body, metadata };
    const after = this.options.rules?.admit({ request, path, before: undefined, after: given }) ?? given;
    if (isRefusal(after)) return after;
    if (isDryRun(request)) return ok(after, 201);
    this.uids += 1;
    return { status: 201, text: this.objects.record("ADDED", path, after).text };
  }

  private replace(stored: Stored, body: FakeObject, request: KubeRequest): KubeResponse {
    const { object: before, path } = stored;
    const { resourceVersion, uid, creationTimestamp, deletionTimestamp } = before.metadata;
    const given = body.metadata["resourceVersion"];
    if (given !== undefined && given !== resourceVersion) return status(409, "Conflict");
    if (body.metadata["uid"] !== undefined && body.metadata["uid"] !== uid) return status(409, "Conflict");
    const fixed = { resourceVersion, uid, creationTimestamp, ...(deletionTimestamp ? { deletionTimestamp } : {}) };
    const wanted = JSON.parse(JSON.stringify({ ...body, metadata: { ...body.metadata, ...fixed } })) as FakeObject;
    const after = this.options.rules?.admit({ request, path, before, after: wanted }) ?? wanted;
    if (isRefusal(after)) return after;
    if (Bun.deepEquals(after, before)) return { status: 200, text: stored.text };
    if (isDryRun(request)) return ok(after);
    const isOver = deletionTimestamp !== undefined && isEmpty(after.metadata["finalizers"]);
    return { status: 200, text: this.objects.record(isOver ? "DELETED" : "MODIFIED", path, after).text };
  }

  private remove(stored: Stored, options: Readonly<Record<string, unknown>>): KubeResponse {
    const { object, path } = stored;
    const wanted = (options["preconditions"] ?? {}) as Readonly<Record<string, unknown>>;
    for (const field of ["uid", "resourceVersion"]) {
      if (wanted[field] !== undefined && wanted[field] !== object.metadata[field]) return status(409, "Conflict");
    }
    // Containers of a pod may run on for a while.
    const isSlow = options["gracePeriodSeconds"] !== undefined && options["gracePeriodSeconds"] !== 0;
    if (isEmpty(object.metadata["finalizers"]) && !isSlow) {
      this.objects.record("DELETED", path, object);
      return ok({ kind: "Status", status: "Success" });
    }
    if (object.metadata["deletionTimestamp"] !== undefined) return { status: 200, text: stored.text };
    const metadata = { ...object.metadata, deletionTimestamp: this.options.now().toISOString() };
    return { status: 200, text: this.objects.record("MODIFIED", path, { ...object, metadata }).text };
  }

  private list({ collection }: Target, query: Query): KubeResponse {
    const { limit, continue: token } = query;
    const revision = this.listedRevision(collection, query);
    if (token === undefined && revision > this.objects.revision) return status(504, "Timeout");
    const at =
      token === undefined ? { revision, after: "" } : (JSON.parse(token) as { revision: number; after: string });
    if (token !== undefined && at.revision < this.objects.forgottenUntil) return status(410, "Expired");
    const all = this.objects.list(collection, query, at.revision).filter(({ path }) => path > at.after);
    const page = limit === undefined ? all : all.slice(0, Number(limit));
    const after = page.length < all.length ? page.at(-1)?.path : undefined;
    const next = after === undefined ? {} : { continue: JSON.stringify({ revision: at.revision, after }) };
    const metadata = JSON.stringify({ resourceVersion: String(at.revision), ...next });
    return { status: 200, text: `{"metadata":${metadata},"items":[${page.map(({ text }) => text).join(",")}]}` };
  }

  /** Creates or changes the object, or says with whom it is in conflict. */
  private apply(path: string, stored: Stored | undefined, request: KubeRequest): KubeResponse {
    if (this.options.rules === undefined) return status(415, "UnsupportedMediaType");
    const after = this.options.rules.apply({ request, path, before: stored?.object, after: bodyOf(request.body) });
    if (isRefusal(after)) return after;
    return stored === undefined ? this.create(path, after, request) : this.replace(stored, after, request);
  }
}

/** Nothing is stored. */
function isDryRun({ query }: KubeRequest): boolean {
  return query?.["dryRun"] !== undefined;
}

/** Numbers beyond 2^53 become strings, which every reader accepts too. */
function bodyOf(text = "{}"): FakeObject {
  return JSON.parse(quoteSequenceNumbers(text));
}

/** An object has a path of an even number of steps below its API; a subresource is only known below an object. */
function targetOf(path: string, objects: FakeObjects): Target {
  const parent = path.slice(0, path.lastIndexOf("/"));
  const whole = path.endsWith("/status") && objects.get(parent) !== undefined ? parent : path;
  if (isCollection(whole)) return { collection: whole, path: whole };
  const at = whole.lastIndexOf("/");
  return { collection: whole.slice(0, at), name: whole.slice(at + 1), path: whole };
}

/** `/api/v1/pods`, `/apis/group/version/plural`, or the same below `namespaces/NAME`. */
function isCollection(path: string): boolean {
  const steps = path.split("/").slice(path.startsWith("/apis/") ? 4 : 3);
  return steps.length === 1 || steps.length === 3;
}

function isEmpty(list: unknown): boolean {
  return !Array.isArray(list) || list.length === 0;
}

function ok(value: unknown, code = 200): KubeResponse {
  return { status: code, text: JSON.stringify(value) };
}

export function status(code: number, reason: string): KubeResponse {
  return { status: code, text: JSON.stringify({ kind: "Status", status: "Failure", message: reason, reason, code }) };
}
