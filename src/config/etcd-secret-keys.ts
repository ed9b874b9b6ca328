/** The names of the credentials for etcd, in a Secret and in the directory that it is mounted at. */
export const ETCD_SECRET_KEYS = { caCert: "etcd-ca", cert: "etcd-cert", key: "etcd-key" } as const;
