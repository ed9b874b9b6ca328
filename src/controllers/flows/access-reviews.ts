/**
 * What a caller may do, as the API server says: SubjectAccessReviews, remembered for a short time. So a permission that is taken
 * away counts within `FRESH_MILLISECONDS`.
 */

import { FlowQueryError, type Sight } from "../../flows/flow-query.ts";
import { FLOWS_API, PRODUCT_API } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject, objectsIn, textsIn } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { Caller } from "./front-proxy.ts";

export interface Attributes {
  readonly verb: "list" | "watch";
  readonly group: string;
  readonly resource: string;
  /** Absent: all of them, or a kind without namespaces. */
  readonly namespace?: string;
}

const FRESH_MILLISECONDS = 30_000;
const MOST_REMEMBERED = 20_000;
const AT_ONCE = 16;
/** A reader of some of so many is reviewed for each of them. */
const MOST_NAMESPACES = 5_000;

interface Remembered {
  readonly at: number;
  readonly allowed: Promise<boolean>;
}

export class AccessReviews {
  private readonly remembered = new Map<string, Remembered>();
  private listed: { readonly at: number; readonly names: Promise<readonly string[] | undefined> } | undefined;

  constructor(
    private readonly client: Pick<KubeClient, "request">,
    private readonly elapsed: () => number,
  ) {}

  /** Throws if the API server does not say. */
  may(caller: Caller, attributes: Attributes): Promise<boolean> {
    const key = JSON.stringify([caller, attributes]);
    const before = this.remembered.get(key);
    if (before !== undefined && this.elapsed() - before.at < FRESH_MILLISECONDS) return before.allowed;
    const allowed = this.ask(caller, attributes);
    this.remembered.delete(key);
    this.remembered.set(key, { at: this.elapsed(), allowed });
    allowed.catch(() => this.remembered.delete(key));
    // The oldest ones are first.
    for (const oldest of this.remembered.keys()) {
      if (this.remembered.size <= MOST_REMEMBERED) break;
      this.remembered.delete(oldest);
    }
    return allowed;
  }

  /** The names of all namespaces, as they were a short time ago; `undefined`: more than `MOST_NAMESPACES`. */
  namespaces(): Promise<readonly string[] | undefined> {
    const { elapsed } = this;
    if (this.listed === undefined || elapsed() - this.listed.at >= FRESH_MILLISECONDS) {
      const listed = { at: elapsed(), names: this.listNamespaces() };
      this.listed = listed;
      listed.names.catch(() => {
        if (this.listed === listed) this.listed = undefined;
      });
    }
    return this.listed.names;
  }

  private async listNamespaces(): Promise<readonly string[] | undefined> {
    const request: KubeRequest = {
      ...{ method: "GET", path: "/api/v1/namespaces", query: { limit: `${MOST_NAMESPACES}` } },
      accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    };
    const list: unknown = parseJson(requireOk(await this.client.request(request), request));
    const { metadata, items } = isObject(list) ? list : {};
    if (isObject(metadata) && typeof metadata["continue"] === "string" && metadata["continue"] !== "") return undefined;
    return objectsIn(items).flatMap(({ metadata: each }) => textsIn([isObject(each) ? each["name"] : undefined]));
  }

  private async ask({ user, groups, extra }: Caller, attributes: Attributes): Promise<boolean> {
    const request: KubeRequest = {
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: JSON.stringify({
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user, groups, extra, resourceAttributes: attributes },
      }),
      attempt: "retry",
    };
    const review: unknown = parseJson(requireOk(await this.client.request(request), request));
    const status = isObject(review) && isObject(review["status"]) ? review["status"] : {};
    return status["allowed"] === true && status["denied"] !== true;
  }
}

const PODS = { verb: "list", group: "", resource: "pods" } as const;
const NODES = { verb: "list", group: "", resource: "nodes" } as const;

/** What one caller sees; asked for namespaces as they occur. */
export class CallerSight {
  private constructor(
    private readonly reviews: AccessReviews,
    private readonly caller: Caller,
    private readonly clusterWide: { readonly everyPod: boolean; readonly nodes: boolean },
    private readonly known: Map<string, boolean>,
  ) {}

  static async of(reviews: AccessReviews, caller: Caller): Promise<CallerSight> {
    const [everyPod, nodes] = await Promise.all([reviews.may(caller, PODS), reviews.may(caller, NODES)]);
    return new CallerSight(reviews, caller, { everyPod, nodes }, new Map());
  }

  /** For what is in these namespaces. */
  async in(namespaces: readonly string[]): Promise<Sight> {
    const { everyPod } = this.clusterWide;
    const unknown = everyPod ? [] : namespaces.filter((namespace) => !this.known.has(namespace));
    for (let first = 0; first < unknown.length; first += AT_ONCE) {
      await Promise.all(
        unknown.slice(first, first + AT_ONCE).map(async (namespace) => {
          this.known.set(namespace, await this.reviews.may(this.caller, { ...PODS, namespace }));
        }),
      );
    }
    return {
      ...this.clusterWide,
      podsOf: new Set(namespaces.filter((namespace) => this.known.get(namespace) === true)),
    };
  }

  /** For everything; in a cluster with too many namespaces for this one. Throws `FlowQueryError` without one. */
  async whole(namespace: string | undefined): Promise<Sight> {
    if (this.clusterWide.everyPod) return this.in([]);
    const all = await this.reviews.namespaces();
    if (all !== undefined) return this.in(all);
    if (namespace !== undefined) return this.in([namespace]);
    const why = `it is missing: the cluster has more than ${MOST_NAMESPACES} namespaces, too many to review which of them you may list`;
    throw new FlowQueryError("namespace", `${why}; name one`);
  }

  get seesNodes(): boolean {
    return this.clusterWide.nodes;
  }

  get seesEverything(): boolean {
    return this.clusterWide.everyPod && this.clusterWide.nodes;
  }
}

/** Of the API itself. `namespace`: only flows with an end in it are asked for. */
export function readingFlows(resource: string, verb: Attributes["verb"], namespace: string | undefined): Attributes {
  return { verb, group: FLOWS_API.group, resource, ...(namespace === undefined ? {} : { namespace }) };
}

/** All kinds of policies in the namespace, or the global ones of this product. */
export async function mayListPolicies(
  reviews: AccessReviews,
  caller: Caller,
  namespace: string | undefined,
): Promise<boolean> {
  const kinds =
    namespace === undefined
      ? ([[PRODUCT_API.group, "globalnetworkpolicies"]] as const)
      : ([
          [PRODUCT_API.group, "networkpolicies"],
          ["networking.k8s.io", "networkpolicies"],
        ] as const);
  const answers = await Promise.all(
    kinds.map(([group, resource]) =>
      reviews.may(caller, { verb: "list", group, resource, ...(namespace === undefined ? {} : { namespace }) }),
    ),
  );
  return answers.every((allowed) => allowed);
}

/** Those of Kubernetes, which have no namespace. */
export function mayListClusterPolicies(reviews: AccessReviews, caller: Caller): Promise<boolean> {
  return reviews.may(caller, { verb: "list", group: "policy.networking.k8s.io", resource: "clusternetworkpolicies" });
}
