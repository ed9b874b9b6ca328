/** What the operator writes to the Installation itself: its finalizer, the defaults, and how far a deletion is. */
import { effectOf } from "../effect.ts";
import { apiVersionOf, OPERATOR_API } from "../identity.ts";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import { requireOk } from "../kube/require-ok.ts";
import { parseJson } from "../parse-json.ts";
import type { LiveObject } from "../release/live-object.ts";
import { FIELD_MANAGER, FINALIZER } from "../release/operator-names.ts";

/** Owns the defaults for a moment: then nobody does, so that a later server-side apply may change them without a conflict. */
const DEFAULTS_MANAGER = `${FIELD_MANAGER}-defaults`;

export interface WriteOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly requireLeading: () => void;
}

/** Returns the Installation as it is afterwards. Throws if another changed it meanwhile. */
export async function prepareInstallation(
  options: WriteOptions,
  installation: LiveObject,
  defaults: object,
): Promise<LiveObject> {
  const finalized = await addFinalizer(options, installation);
  const isSame = Bun.deepEquals(finalized["spec"] ?? {}, defaults);
  const completed = isSame ? finalized : await patch(options, finalized, { spec: defaults });
  const { managedFields = [] } = completed.metadata;
  const others = managedFields.filter(({ manager }) => manager !== DEFAULTS_MANAGER);
  if (others.length === managedFields.length) return completed;
  return patch(options, completed, { metadata: { managedFields: others } });
}

/** Before anything is applied: what is applied must be removed in its order. */
export async function addFinalizer(options: WriteOptions, installation: LiveObject): Promise<LiveObject> {
  const { finalizers = [] } = installation.metadata;
  if (finalizers.includes(FINALIZER)) return installation;
  return patch(options, installation, { metadata: { finalizers: [...finalizers, FINALIZER] } });
}

export async function removeFinalizer(options: WriteOptions, installation: LiveObject): Promise<void> {
  const { finalizers = [] } = installation.metadata;
  const others = finalizers.filter((name) => name !== FINALIZER);
  if (others.length < finalizers.length) await patch(options, installation, { metadata: { finalizers: others } });
}

export async function annotateInstallation(
  options: WriteOptions,
  installation: LiveObject,
  annotations: Readonly<Record<string, string>>,
): Promise<void> {
  await patch(options, installation, { metadata: { annotations } });
}

/** Only of the version that was read. */
async function patch(
  { client, requireLeading }: WriteOptions,
  { metadata: { name, resourceVersion } }: LiveObject,
  change: { readonly metadata?: object; readonly spec?: object },
): Promise<LiveObject> {
  requireLeading();
  const request: KubeRequest = {
    method: "PATCH",
    path: `/apis/${apiVersionOf(OPERATOR_API)}/installations/${name}`,
    query: { fieldManager: DEFAULTS_MANAGER },
    contentType: "application/merge-patch+json",
    body: JSON.stringify({ ...change, metadata: { ...change.metadata, resourceVersion } }),
  };
  const response = await effectOf(`change the Installation`, () => client.request(request));
  return parseJson(requireOk(response, request)) as LiveObject;
}
