/** `spec.datastore`: where the network keeps its resources. */
import * as v from "valibot";

const NOT_AN_ENDPOINT = 'is not the URL of an etcd server; use for example "https://10.0.0.10:2379"';
const endpoint = v.pipe(v.string(), v.regex(/^https?:\/\/[^\s/,]+\/?$/, NOT_AN_ENDPOINT));

const LABEL = "[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?";
/** As `etcd_discovery_srv` of the network config. */
const DOMAIN_NAME = new RegExp(`^${LABEL}(\\.${LABEL})*\\.?$`);
const LONGEST_DOMAIN = 253;
const NOT_A_DOMAIN = 'is not a domain name; use the one whose SRV records list etcd, for example "etcd.example.org"';
const domain = v.pipe(v.string(), v.regex(DOMAIN_NAME, NOT_A_DOMAIN), v.maxLength(LONGEST_DOMAIN, NOT_A_DOMAIN));

export const datastoreSchema = v.object({
  type: v.exactOptional(v.picklist(["Kubernetes", "Etcd"])),
  etcd: v.exactOptional(
    v.object({
      endpoints: v.exactOptional(v.array(endpoint)),
      discoverySrv: v.exactOptional(domain),
      secretName: v.exactOptional(v.string()),
    }),
  ),
});

export type DeclaredDatastore = Readonly<v.InferOutput<typeof datastoreSchema>>;

/** The CRD has rules with the same messages. */
export const DATASTORE_MESSAGES = {
  noEtcd: "has no endpoints; set spec.datastore.etcd.endpoints or spec.datastore.etcd.discoverySrv",
  twoSources: "cannot be used with spec.datastore.etcd.endpoints; remove one of the two",
  etcdUnused: 'has no effect with the datastore Kubernetes; remove it, or set spec.datastore.type to "Etcd"',
  fixed: "cannot be changed: the resources and addresses of the network would be left behind; install a new cluster",
} as const;
