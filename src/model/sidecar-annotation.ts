/**
 * On a pod, or on the WorkloadEndpoint of an etcd datastore: the release of the sidecar that reports to the node agent. The
 * agent writes it for people and `policy explain`; what is enforced does not depend on it.
 */
import { identity } from "../identity.ts";

export const SIDECAR_ANNOTATION = `${identity.annotationPrefix}sidecar`;
