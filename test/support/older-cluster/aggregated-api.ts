/**
 * The API server of earlier releases: it serves `vendor.org/v3` behind a real APIService, and stores everything as
 * `crd.vendor.org/v1` in the real API server. Requests are authorized by the real API server, which proves who it is with
 * the certificate of its proxy.
 */
import { readFileSync } from "node:fs";
import { jsonPatch } from "../../../src/admin/edit/json-patch.ts";
import { mergePatch } from "../../../src/admin/edit/merge-patch.ts";
import { API_VERSION, apiVersionOf, PRODUCT_API } from "../../../src/identity.ts";
import { FORMER_API, FORMER_API_SERVER } from "../../../src/upgrade/former-names.ts";
import type { Certificate } from "../certificates.ts";
import type { ApiServer } from "../kube-apiserver.ts";
import { pollUntil } from "../poll.ts";
import type { FormerKind } from "./former-definitions.ts";
import { type AnyObject, servedUid, storedName, toServed, toStored, type UidMode } from "./former-object.ts";

export interface AggregatedApi {
  /** How UIDs are shown from now on; watches that are open show them as before. */
  uidMode: UidMode;
  /** Registers it again, for example after it was taken away. */
  register(): Promise<void>;
  /** Ends every connection, as if its pod were gone. The APIService stays. */
  stop(): Promise<void>;
}

export interface AggregatedApiPlan {
  readonly server: ApiServer;
  /** Of the server itself: valid for the DNS name of its Service. */
  readonly certificate: Certificate;
  /** Who signed it. */
  readonly authority: Certificate;
  /** Who signed the certificate of the API server's proxy. */
  readonly proxyAuthority: Certificate;
  readonly uidMode: UidMode;
  readonly kinds: readonly FormerKind[];
}

const ROOT = `/apis/${API_VERSION}`;

export async function startAggregatedApi(plan: AggregatedApiPlan): Promise<AggregatedApi> {
  const { credentials, url } = plan.server;
  const { authority, admin } = credentials;
  const tls = { ca: text(authority.cert), cert: text(admin.cert), key: text(admin.key) };
  const kinds = plan.kinds.filter(({ isServed }) => isServed);
  const state = { uidMode: plan.uidMode };
  const send: Send = (path, options) => fetch(`${url}${path}`, { ...options, tls });
  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    tls: {
      cert: text(plan.certificate.cert),
      key: text(plan.certificate.key),
      ca: text(plan.proxyAuthority.cert),
      requestCert: true,
      rejectUnauthorized: true,
    },
    fetch: (request) =>
      respond(request, { send, kinds, mode: state.uidMode }).catch((error) => failure(500, String(error))),
  });
  const register = () => registerApi(plan, listener.port ?? 0);
  await register();
  return {
    get uidMode() {
      return state.uidMode;
    },
    set uidMode(mode) {
      state.uidMode = mode;
    },
    register,
    stop: () => listener.stop(true),
  };
}

/** Endpoints on loopback are refused, but the name of an external service may be that of this machine. */
async function registerApi({ server, authority, kinds }: AggregatedApiPlan, port: number): Promise<void> {
  const { namespace, service, apiService } = FORMER_API_SERVER;
  const caBundle = readFileSync(authority.cert).toString("base64");
  const { group, version } = PRODUCT_API;
  const objects = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: service, namespace },
      spec: { type: "ExternalName", externalName: "localhost" },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: apiService },
      spec: {
        group,
        version,
        groupPriorityMinimum: 1500,
        versionPriority: 200,
        caBundle,
        service: { namespace, name: service, port },
      },
    },
  ];
  for (const object of objects) await server.apply(JSON.stringify(object));
  await pollUntil(async () => {
    await server.kubectl(["get", "--raw", `${ROOT}/${kinds[0]?.plural}`]);
    return true;
  }, "the aggregated API");
}

type Send = (path: string, options: RequestInit) => Promise<Response>;

interface Target {
  readonly kind: FormerKind;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** With the query. */
  readonly storedPath: string;
}

interface Service {
  readonly send: Send;
  readonly kinds: readonly FormerKind[];
  readonly mode: UidMode;
}

async function respond(request: Request, { send, kinds, mode }: Service): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  if (pathname === ROOT) return Response.json(resourceList(kinds));
  const target = targetOf(pathname, search, kinds);
  if (target === undefined) return failure(404, `the server could not find ${pathname}`);
  if (search.includes("watch=")) return watch(request, send, target, mode);
  if (request.method === "PATCH") return patch(request, send, target, mode);
  const written = await request.text();
  const body = written === "" ? undefined : storedBody(JSON.parse(written), target.kind, mode);
  const response = await send(target.storedPath, {
    method: request.method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return shown(response, request, target.kind, mode);
}

function targetOf(pathname: string, search: string, kinds: readonly FormerKind[]): Target | undefined {
  const [, namespace, plural, name] =
    new RegExp(`^${ROOT}(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?$`).exec(pathname) ?? [];
  const kind = kinds.find((each) => each.plural === plural);
  if (kind === undefined) return undefined;
  const parts = [
    ...(namespace === undefined ? [] : ["namespaces", namespace]),
    kind.plural,
    ...(name === undefined ? [] : [storedName(name, kind)]),
  ];
  return { kind, namespace, name, storedPath: `/apis/${apiVersionOf(FORMER_API)}/${parts.join("/")}${search}` };
}

/** An object, or the options of a deletion. */
function storedBody(body: AnyObject, kind: FormerKind, mode: UidMode): AnyObject {
  if (body.kind === kind.kind) return toStored(body, kind, mode);
  const uid = body.preconditions?.uid;
  return uid === undefined ? body : { ...body, preconditions: { ...body.preconditions, uid: servedUid(uid, mode) } };
}

async function patch(request: Request, send: Send, { kind, storedPath }: Target, mode: UidMode): Promise<Response> {
  const change: AnyObject = await request.json();
  const type = request.headers.get("content-type") ?? "";
  if (!/json-patch|merge-patch/.test(type)) return failure(415, `the type ${type} is not supported`);
  const found = await send(storedPath, { method: "GET" });
  if (!found.ok) return found;
  const before = toServed(await found.json(), kind, mode);
  let after: AnyObject;
  try {
    after = type.includes("json-patch") ? jsonPatch(before, change) : mergePatch(before, change);
  } catch (error) {
    return failure(422, `the server rejected our request due to an error in our request: ${error}`);
  }
  const response = await send(storedPath, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(toStored(after, kind, mode)),
  });
  return shown(response, request, kind, mode);
}

async function watch(request: Request, send: Send, { kind, storedPath }: Target, mode: UidMode): Promise<Response> {
  const response = await send(storedPath, { method: "GET", signal: request.signal });
  const source = response.body;
  if (!response.ok || source === null) return response;
  const body = new ReadableStream<Uint8Array>({
    async start(out) {
      const decoder = new TextDecoder();
      let rest = "";
      try {
        for await (const chunk of source) {
          const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
          rest = lines.pop() ?? "";
          const events = lines.map((line) => shownEvent(JSON.parse(line), request, kind, mode));
          for (const event of events) out.enqueue(Buffer.from(`${JSON.stringify(event)}\n`));
        }
        out.close();
      } catch {
        // The API server, or who watches, is gone: a watch that ends is begun again.
      }
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function shownEvent(event: AnyObject, request: Request, kind: FormerKind, mode: UidMode): AnyObject {
  if (event.type === "ERROR") return event;
  if (event.type === "BOOKMARK") return { ...event, object: inForm({ ...event.object, kind: kind.kind }, request) };
  return { ...event, object: inForm(toServed(event.object, kind, mode), request) };
}

async function shown(response: Response, request: Request, kind: FormerKind, mode: UidMode): Promise<Response> {
  const body: AnyObject = await response.json();
  if (!response.ok || body.kind === "Status") return Response.json(body, { status: response.status });
  if (body.items === undefined) return Response.json(inForm(toServed(body, kind, mode), request), response);
  const items = body.items.map((item: AnyObject) => inForm(toServed(item, kind, mode), request));
  const list = wantsMetadata(request)
    ? { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadataList" }
    : { apiVersion: API_VERSION, kind: `${kind.kind}List` };
  return Response.json({ ...list, metadata: body.metadata, items });
}

/** The garbage collector asks for metadata only. */
function inForm(object: AnyObject, request: Request): AnyObject {
  if (!wantsMetadata(request)) return { ...object, apiVersion: API_VERSION };
  return { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata: object.metadata };
}

function wantsMetadata(request: Request): boolean {
  return request.headers.get("accept")?.includes("as=PartialObjectMetadata") ?? false;
}

function resourceList(kinds: readonly FormerKind[]): object {
  const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
  const resources = kinds.map(({ plural, kind, isNamespaced }) => ({
    name: plural,
    singularName: kind.toLowerCase(),
    namespaced: isNamespaced,
    kind,
    verbs,
  }));
  return { apiVersion: "v1", kind: "APIResourceList", groupVersion: API_VERSION, resources };
}

function failure(code: number, message: string): Response {
  return Response.json({ apiVersion: "v1", kind: "Status", status: "Failure", code, message }, { status: code });
}

function text(path: string): string {
  return readFileSync(path, "utf8");
}
