/** The operator itself: its namespace, account, roles and Deployment. What `operator.yaml` and the chart consist of. Pure. */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import {
  OPERATOR_ACCOUNT,
  OPERATOR_SECRETS_ROLE,
  operatorNamespaceRules,
  operatorRules,
  operatorSecretsRules,
  platformRules,
} from "../roles/operator-rules.ts";
import { accountObject, clusterRoleObject, clusterRoleObjects, namespacedRoleObjects } from "../roles/role-objects.ts";
import { API_ENDPOINT_CONFIG_MAP, OPERATOR_HEALTH_PORT, podLabels } from "../workloads/names.ts";
import { namespaceObject } from "../workloads/namespace.ts";
import { fromField, hostReadinessProbe, SHARED_PROCESS_NAMESPACE } from "../workloads/pod-parts.ts";

export interface OperatorOptions {
  /** The full name, with its tag. */
  readonly image: string;
  /** Names of Secrets in the namespace of the operator. */
  readonly pullSecrets?: readonly string[];
}

export function operatorObjects(options: OperatorOptions): readonly KubeObject[] {
  const { name, namespace } = OPERATOR_ACCOUNT;
  return [
    namespaceObject(namespace),
    accountObject(OPERATOR_ACCOUNT),
    clusterRoleObject(OPERATOR_SECRETS_ROLE, operatorSecretsRules()),
    ...clusterRoleObjects(name, operatorRules(), OPERATOR_ACCOUNT),
    ...namespacedRoleObjects(OPERATOR_ACCOUNT, operatorNamespaceRules(), OPERATOR_ACCOUNT),
    ...namespacedRoleObjects({ name, namespace: "kube-system" }, platformRules(), OPERATOR_ACCOUNT),
    deployment(options),
  ];
}

/** In the network of the host, on nodes that are not ready yet: it runs before there is any network of pods. */
function deployment({ image, pullSecrets = [] }: OperatorOptions): KubeObject {
  const { name, namespace } = OPERATOR_ACCOUNT;
  const labels = podLabels(name);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      // Two pods on one node would want the same ports of the host.
      strategy: { type: "Recreate" },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: name,
          ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
          priorityClassName: "system-cluster-critical",
          hostNetwork: true,
          dnsPolicy: "Default",
          ...SHARED_PROCESS_NAMESPACE,
          nodeSelector: { "kubernetes.io/os": "linux" },
          tolerations: [
            { effect: "NoExecute", operator: "Exists" },
            { effect: "NoSchedule", operator: "Exists" },
          ],
          securityContext: {
            runAsNonRoot: true,
            runAsUser: USER,
            runAsGroup: USER,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [container(image)],
        },
      },
    },
  };
}

const USER = 65_532;

function container(image: string) {
  return {
    name: identity.operator,
    image,
    imagePullPolicy: "IfNotPresent",
    command: [identity.operator],
    env: [fromField("POD_NAMESPACE", "metadata.namespace"), fromField("POD_NAME", "metadata.name")],
    envFrom: [{ configMapRef: { name: API_ENDPOINT_CONFIG_MAP, optional: true } }],
    readinessProbe: hostReadinessProbe(OPERATOR_HEALTH_PORT),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  };
}
