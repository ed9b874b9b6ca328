/** The objects that Helm has to recognize as those of the release before it may change them. */
import { apiVersionOf, identity, OPERATOR_API } from "../../../identity.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { textAt } from "../../../release/live-object.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import { API_ENDPOINT_CONFIG_MAP } from "../../../release/workloads/names.ts";
import type { TargetRelease } from "../../engine/target-release.ts";
import { fieldsIn } from "../../object-fields.ts";

export interface ReleaseObject {
  /** `ServiceAccount vendor-operator/vendor-operator` */
  readonly what: string;
  readonly path: string;
  /** Absent: there is none. */
  readonly live?: Fields;
}

/** Those of the spec's rule, and whatever else the chart renders: each of them, whether it exists or not. */
export async function releaseObjects(
  objects: ClusterObjects,
  release: TargetRelease,
  values: Fields,
): Promise<readonly ReleaseObject[]> {
  const rendered = release.operator.filter(({ kind }) => kind !== "Namespace");
  const own = `/apis/${apiVersionOf(OPERATOR_API)}`;
  const rows = new Map<string, string>([
    [`${own}/installations/default`, "Installation default"],
    [`${own}/apiservers/default`, "APIServer default"],
    [`/apis/policy/v1beta1/podsecuritypolicies/${identity.operator}`, `PodSecurityPolicy ${identity.operator}`],
    ...rendered.map((object) => {
      const { name, namespace } = object.metadata;
      const what = `${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
      return [objectPath(object), what] as const;
    }),
    ...[...namesOfSettings(values)].map(([path, what]) => [path, what] as const),
  ]);
  return Promise.all(
    [...rows].map(async ([path, what]) => {
      const live = await objects.read(path);
      return { path, what, ...(live === undefined ? {} : { live }) };
    }),
  );
}

/** What the chart renders only with certain values. */
function namesOfSettings(values: Fields): ReadonlyMap<string, string> {
  const folder = `/api/v1/namespaces/${identity.operator}`;
  const secrets = Object.keys(fieldsIn(values, "imagePullSecrets"));
  const hasEndpoint = textAt(values, "kubernetesServiceEndpoint", "host") !== "";
  return new Map([
    ...secrets.map((name) => [`${folder}/secrets/${name}`, `Secret ${identity.operator}/${name}`] as const),
    ...(hasEndpoint
      ? [
          [
            `${folder}/configmaps/${API_ENDPOINT_CONFIG_MAP}`,
            `ConfigMap ${identity.operator}/${API_ENDPOINT_CONFIG_MAP}`,
          ] as const,
        ]
      : []),
  ]);
}

/** What of Helm's marks the object lacks; `undefined` if it has all of them. */
export function missingMarks(live: Fields, name: string): { readonly metadata: object } | undefined {
  const labels = { "app.kubernetes.io/managed-by": "Helm" };
  const annotations = { "meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": identity.operator };
  const missingLabels = differing(labels, fieldsIn(live, "metadata", "labels"));
  const missingAnnotations = differing(annotations, fieldsIn(live, "metadata", "annotations"));
  if (missingLabels === undefined && missingAnnotations === undefined) return undefined;
  return {
    metadata: {
      ...(missingLabels === undefined ? {} : { labels: missingLabels }),
      ...(missingAnnotations === undefined ? {} : { annotations: missingAnnotations }),
    },
  };
}

function differing(wanted: Readonly<Record<string, string>>, live: Fields): object | undefined {
  const missing = Object.entries(wanted).filter(([name, value]) => live[name] !== value);
  return missing.length === 0 ? undefined : Object.fromEntries(missing);
}
