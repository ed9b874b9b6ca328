/** Writes what the operator found: one status object per component, and the status of the Installation. Nothing is written twice. */
import { effectOf } from "../effect.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../identity.ts";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import { requireOk } from "../kube/require-ok.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import { type LiveObject, listAt, memberAt } from "../release/live-object.ts";
import { type ComponentState, type Condition, conditionsOf, type Moment } from "./conditions.ts";
import { type FollowedSnapshot, objectNamed, objectsOf } from "./followed-objects.ts";

const GROUP = `/apis/${apiVersionOf(OPERATOR_API)}`;
const STATUSES = `${GROUP}/${identity.product}statuses`;
const MERGE = "application/merge-patch+json";

export interface StatusOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly requireLeading: () => void;
}

export class StatusWriter {
  /** The watch may be behind our own write: then a condition would seem to change once more. */
  private readonly written = new Map<string, LiveObject>();

  constructor(private readonly options: StatusOptions) {}

  /** Of the Installation, as far as they are known: to compare with. */
  conditionsOf(installation: LiveObject): readonly Condition[] {
    return conditionsIn(this.latest(installation));
  }

  async writeComponents(
    snapshot: FollowedSnapshot,
    components: Readonly<Record<string, ComponentState>>,
    moment: Moment,
  ): Promise<void> {
    for (const [name, state] of Object.entries(components)) {
      const found = objectNamed(snapshot, "statuses", { name });
      const existing = found === undefined ? await this.create(name) : this.latest(found);
      const conditions = conditionsOf(state, conditionsIn(existing), moment);
      await this.patch(existing, { conditions });
    }
  }

  /** `status`: everything but the conditions. */
  async writeInstallation(
    installation: LiveObject,
    status: Readonly<Record<string, unknown>>,
    conditions: readonly Condition[],
  ): Promise<void> {
    await this.patch(this.latest(installation), { ...status, conditions });
  }

  /** `names`: absent for all of them, since without an Installation there is nothing to report. */
  async removeComponents(snapshot: FollowedSnapshot, names?: readonly string[]): Promise<void> {
    for (const { metadata } of objectsOf(snapshot, "statuses")) {
      if (names !== undefined && !names.includes(metadata.name)) continue;
      this.options.requireLeading();
      const request: KubeRequest = { method: "DELETE", path: `${STATUSES}/${metadata.name}`, attempt: "retry" };
      const response = await effectOf(`delete status ${metadata.name}`, () => this.options.client.request(request));
      if (response.status !== 404) requireOk(response, request);
      this.written.delete(`${STATUSES}/${metadata.name}/status`);
    }
    if (names === undefined) this.written.clear();
  }

  private async create(name: string): Promise<LiveObject> {
    const { client, requireLeading } = this.options;
    requireLeading();
    const body = {
      apiVersion: apiVersionOf(OPERATOR_API),
      kind: `${identity.title}Status`,
      metadata: { name },
      spec: {},
    };
    const request: KubeRequest = { method: "POST", path: STATUSES, body: JSON.stringify(body) };
    const response = await effectOf(`create status ${name}`, () => client.request(request));
    const existing: KubeRequest = { method: "GET", path: `${STATUSES}/${name}` };
    const text =
      response.status === 409 ? requireOk(await client.request(existing), existing) : requireOk(response, request);
    return parseJson(text) as LiveObject;
  }

  private async patch(object: LiveObject, status: Readonly<Record<string, unknown>>): Promise<void> {
    const before = memberAt(object, "status");
    const isSame = Object.entries(status).every(([field, value]) => Bun.deepEquals(memberAt(before, field), value));
    if (isSame) return;
    const { client, requireLeading } = this.options;
    requireLeading();
    const path = `${pathOf(object)}/status`;
    const request: KubeRequest = {
      method: "PATCH",
      path,
      contentType: MERGE,
      body: mergePatch(before, status),
      attempt: "retry",
    };
    const response = await effectOf(`write status ${object.metadata.name}`, () => client.request(request));
    // It was deleted meanwhile.
    if (response.status === 404) return;
    this.written.set(path, parseJson(requireOk(response, request)) as LiveObject);
  }

  private latest(object: LiveObject): LiveObject {
    const written = this.written.get(`${pathOf(object)}/status`);
    if (written === undefined || written.metadata.uid !== object.metadata.uid) return object;
    const isNewer = BigInt(written.metadata.resourceVersion) > BigInt(object.metadata.resourceVersion);
    return isNewer ? written : object;
  }
}

function pathOf({ kind, metadata }: LiveObject): string {
  return kind === "Installation" ? `${GROUP}/installations/${metadata.name}` : `${STATUSES}/${metadata.name}`;
}

function conditionsIn(object: LiveObject): readonly Condition[] {
  return listAt(object, "status", "conditions") as readonly Condition[];
}

/** A merge patch keeps members of objects that it does not name: those that are gone are named with null. */
function mergePatch(before: unknown, status: Readonly<Record<string, unknown>>): string {
  const replaced = Object.entries(status).map(([field, value]) => [field, replacing(memberAt(before, field), value)]);
  return JSON.stringify({ status: Object.fromEntries(replaced) });
}

function replacing(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after ?? null;
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries([...names].map((name) => [name, replacing(before[name], after[name])]));
}
