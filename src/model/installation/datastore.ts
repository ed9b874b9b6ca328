/** `spec.datastore`: where the network keeps its resources. */
import * as v from "valibot";

const NOT_AN_ENDPOINT = 'is not the URL of an etcd server; use for example "https://10.0.0.10:2379"';
const endpoint = v.pipe(v.string(), v.regex(/^https?:\/\/[^\s/,]+\/?$/, NOT_AN_ENDPOINT));

export const datastoreSchema = v.object({
  type: v.exactOptional(v.picklist(["Kubernetes", "Etcd"])),
  etcd: v.exactOptional(v.object({ endpoints: v.array(endpoint), secretName: v.exactOptional(v.string()) })),
});

export type DeclaredDatastore = Readonly<v.InferOutput<typeof datastoreSchema>>;

/** The CRD has rules with the same messages. */
export const DATASTORE_MESSAGES = {
  noEtcd: "has no endpoints; set spec.datastore.etcd.endpoints",
  etcdUnused: 'has no effect with the datastore Kubernetes; remove it, or set spec.datastore.type to "Etcd"',
  fixed: "cannot be changed: the resources and addresses of the network would be left behind; install a new cluster",
} as const;
