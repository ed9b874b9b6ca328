/** Reads a pod and its namespace, at the same time. */
import { PluginError } from "../errors.ts";
import { type PodObject, textOf, textsIn } from "../model/pod-endpoint.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { KubeClient } from "./api.ts";
import { lacksPermission, requireOk } from "./require-ok.ts";

interface ReadObject extends PodObject {
  /** As the API returned it. */
  readonly text: string;
}

/** What a role that allows to read pods only refuses. */
export interface UnreadableNamespace {
  readonly refusal: PluginError;
}

/** Each is `undefined` if it does not exist. Of the permissions only that for pods is required. */
export function readPodAndNamespace(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  client: KubeClient,
  signal: AbortSignal,
): Promise<readonly [pod: ReadObject | undefined, namespace: ReadObject | UnreadableNamespace | undefined]> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const read = (each: string) => readObject(client, each, signal);
  return Promise.all([read(`${path}/pods/${encodeURIComponent(name)}`), readUnlessForbidden(() => read(path))]);
}

/** Asks twice: an API server that has just started may forbid what it allows a moment later. */
async function readUnlessForbidden(
  read: () => Promise<ReadObject | undefined>,
): Promise<ReadObject | UnreadableNamespace | undefined> {
  try {
    return await read().catch((failure: unknown) => {
      if (lacksPermission(failure)) return read();
      throw failure;
    });
  } catch (failure) {
    if (lacksPermission(failure)) return { refusal: failure };
    throw failure;
  }
}

/** None if the role does not allow to read them. */
export function annotationsOfNamespace(namespace: ReadObject | UnreadableNamespace): Readonly<Record<string, string>> {
  return "refusal" in namespace ? {} : textsIn(namespace.metadata, "annotations");
}

/** `undefined`: the role does not allow to read them. */
export function labelsOfNamespace(
  namespace: ReadObject | UnreadableNamespace,
): Readonly<Record<string, string>> | undefined {
  return "refusal" in namespace ? undefined : textsIn(namespace.metadata, "labels");
}

/** The same. */
export function uidOfNamespace(namespace: ReadObject | UnreadableNamespace): string | undefined {
  return "refusal" in namespace ? undefined : textOf(namespace.metadata, "uid");
}

/** To be reported; `undefined` if the namespace was read. */
export function namespaceWarning(namespace: ReadObject | UnreadableNamespace): string | undefined {
  if (!("refusal" in namespace)) return undefined;
  const { message, details } = namespace.refusal;
  return `The annotations of the namespace have no effect, and pools with a namespaceSelector do not serve it: ${message}; ${details}`;
}

async function readObject(client: KubeClient, path: string, signal: AbortSignal): Promise<ReadObject | undefined> {
  const request = { method: "GET", path, signal } as const;
  const response = await client.request(request);
  if (response.status === 404) return undefined;
  const { metadata, spec } = parsed(requireOk(response, request), path);
  return { text: response.text, metadata: isObject(metadata) ? metadata : {}, spec: isObject(spec) ? spec : {} };
}

function parsed(text: string, path: string): Readonly<Record<string, unknown>> {
  try {
    const object: unknown = parseJson(text);
    if (isObject(object)) return object;
  } catch {
    // Reported below.
  }
  throw new PluginError("api-unavailable", `Cannot read "${path}" of the Kubernetes API: it is not a JSON object`);
}
