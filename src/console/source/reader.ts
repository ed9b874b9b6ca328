/**
 * Who reads, and what they may do, as the API server says about their own token: SelfSubjectReview, SelfSubjectAccessReview.
 * Answers are remembered for a short time, so a permission that is taken away counts within `FRESH_MILLISECONDS`.
 */
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { isForbidden, requireOk, statusOfRefusal } from "../../kube/require-ok.ts";
import { isObject, objectsIn, textsIn } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { TokenRefused } from "../source.ts";

export interface Attributes {
  readonly verb: "list" | "create";
  readonly group: string;
  readonly resource: string;
  /** Absent: in all namespaces, or of a kind without. */
  readonly namespace?: string;
}

export interface Reader {
  readonly user: string;
  readonly groups: readonly string[];
}

const FRESH_MILLISECONDS = 30_000;
/** A reader of some of so many namespaces is asked about for each of them. */
const MOST_NAMESPACES = 1_000;
const AT_ONCE = 16;
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):[^:]+$/;

/** Throws `TokenRefused` if the token is nobody's. */
export async function readerOf(client: Pick<KubeClient, "request">, signal?: AbortSignal): Promise<Reader> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const status = await posted(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, signal);
  if (status !== undefined) {
    const info = isObject(status["userInfo"]) ? status["userInfo"] : {};
    const [user = "unknown"] = textsIn([info["username"]]);
    const groups = Array.isArray(info["groups"]) ? textsIn(info["groups"]) : [];
    if (user === "system:anonymous") throw new TokenRefused("Cannot log in: the token is nobody's");
    return { user, groups };
  }
  // Kubernetes before 1.28 does not say whose the token is, but refuses one that is nobody's.
  await accessReview(client, { verb: "list", group: "", resource: "pods" }, signal);
  return { user: "a user of this cluster", groups: [] };
}

export class ReaderRights {
  private readonly remembered = new Map<string, { readonly at: number; readonly allowed: Promise<boolean> }>();
  /** What the reader may do, and was asked about: it decides about what they are shown. */
  private readonly granted = new Map<string, Attributes>();
  private lost = 0;
  private listed: { readonly at: number; readonly names: Promise<readonly string[]> } | undefined;

  constructor(
    private readonly client: Pick<KubeClient, "request">,
    private readonly reader: Reader,
    private readonly now: () => Date,
  ) {}

  may(attributes: Attributes): Promise<boolean> {
    const key = JSON.stringify(attributes);
    const at = this.now().getTime();
    const before = this.remembered.get(key);
    if (before !== undefined && at - before.at < FRESH_MILLISECONDS) return before.allowed;
    const allowed = accessReview(this.client, attributes);
    this.remembered.set(key, { at, allowed });
    allowed.then(
      (isAllowed) => this.note(key, attributes, isAllowed),
      () => this.remembered.delete(key),
    );
    return allowed;
  }

  /** How many rights that were granted here are taken away, by what `newer` says, which is asked about each of them. */
  async lostIn(newer: ReaderRights): Promise<number> {
    let lost = this.lost;
    const granted = [...this.granted.values()];
    for (let first = 0; first < granted.length; first += AT_ONCE) {
      const answers = await Promise.all(granted.slice(first, first + AT_ONCE).map((each) => newer.may(each)));
      lost += answers.filter((isAllowed) => !isAllowed).length;
    }
    return lost;
  }

  private note(key: string, attributes: Attributes, isAllowed: boolean): void {
    if (isAllowed) this.granted.set(key, attributes);
    else if (this.granted.delete(key)) this.lost += 1;
  }

  /**
   * Namespaces in which something may be listed by who may not list it everywhere: all whose names the reader may list, else that
   * of its service account.
   */
  namespaces(): Promise<readonly string[]> {
    const at = this.now().getTime();
    if (this.listed !== undefined && at - this.listed.at < FRESH_MILLISECONDS) return this.listed.names;
    const listed = { at, names: this.listNamespaces() };
    this.listed = listed;
    listed.names.catch(() => {
      if (this.listed === listed) this.listed = undefined;
    });
    return listed.names;
  }

  private async listNamespaces(): Promise<readonly string[]> {
    const own = SERVICE_ACCOUNT.exec(this.reader.user)?.[1];
    const request: KubeRequest = {
      ...{ method: "GET", path: "/api/v1/namespaces", query: { limit: `${MOST_NAMESPACES}` } },
      accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    };
    try {
      const list: unknown = parseJson(requireOk(await this.client.request(request), request));
      const { items } = isObject(list) ? list : {};
      const names = objectsIn(items).flatMap(({ metadata }) =>
        textsIn([isObject(metadata) ? metadata["name"] : undefined]),
      );
      return own === undefined || names.includes(own) ? names : [own, ...names];
    } catch (failure) {
      if (!isForbidden(failure)) throw failure;
      return own === undefined ? [] : [own];
    }
  }
}

async function accessReview(
  client: Pick<KubeClient, "request">,
  resourceAttributes: Attributes,
  signal?: AbortSignal,
): Promise<boolean> {
  const review = {
    ...{ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" },
    spec: { resourceAttributes },
  };
  const status = await posted(client, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, signal);
  return status?.["allowed"] === true && status["denied"] !== true;
}

/** The status of the answer; `undefined` if the API does not have the kind. */
async function posted(
  client: Pick<KubeClient, "request">,
  path: string,
  review: object,
  signal: AbortSignal | undefined,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const request: KubeRequest = {
    ...{ method: "POST", path, body: JSON.stringify(review), attempt: "retry" },
    ...(signal === undefined ? {} : { signal }),
  };
  try {
    const response = await client.request(request);
    if (response.status === 404) return undefined;
    const answer: unknown = parseJson(requireOk(response, request));
    return isObject(answer) && isObject(answer["status"]) ? answer["status"] : {};
  } catch (failure) {
    if (statusOfRefusal(failure) !== 401) throw failure;
    const details = "create another one, for example with: kubectl create token SERVICEACCOUNT --namespace NAMESPACE";
    throw new TokenRefused("Cannot log in: the API server does not accept the token", { details, cause: failure });
  }
}
