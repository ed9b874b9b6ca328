/** The chart of earlier releases, to be installed by the real Helm: what it rendered, and which values its users knew. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiVersionOf, identity, OPERATOR_API } from "../../../src/identity.ts";
import { formatYaml } from "../../../src/yaml.ts";
import { type FormerVersion, formerOperator, formerOperatorInNamespace } from "./operator.ts";

const OWN_API = apiVersionOf(OPERATOR_API);

/**
 * Before v3.23 the chart was installed into another namespace, and had the operator's namespace in it. It also had a
 * PodSecurityPolicy, which only API servers before v1.25 serve (`hasPodSecurityPolicy`).
 */
export function writeFormerChart(
  directory: string,
  version: FormerVersion,
  { hasPodSecurityPolicy = false } = {},
): string {
  const files = {
    "Chart.yaml": formatYaml({ apiVersion: "v2", name: identity.operator, version, appVersion: version }),
    "values.yaml": formatYaml({
      imagePullSecrets: {},
      installation: { enabled: true, kubernetesProvider: "" },
      apiServer: { enabled: true },
      certs: { node: {}, typha: {} },
      [`${identity.product}Operator`]: { image: "operator", version: "v1.25.14", registry: "quay.example.org" },
      resources: {},
      nodeSelector: { "kubernetes.io/os": "linux" },
    }),
    "templates/operator.yaml": operatorText(version),
    "templates/custom-resources.yaml": CUSTOM_RESOURCES,
    ...(hasPodSecurityPolicy ? { "templates/psp.yaml": formatYaml(POD_SECURITY_POLICY) } : {}),
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(directory, "templates"), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

function operatorText(version: FormerVersion): string {
  const objects = version < "v3.23" ? formerOperator(version) : formerOperatorInNamespace(version);
  return objects.map((object) => formatYaml(object)).join("---\n");
}

const POD_SECURITY_POLICY = {
  apiVersion: "policy/v1beta1",
  kind: "PodSecurityPolicy",
  metadata: { name: identity.operator },
  spec: {
    privileged: false,
    hostNetwork: true,
    hostPorts: [{ min: 0, max: 65_535 }],
    volumes: ["hostPath", "configMap", "emptyDir", "projected", "secret", "downwardAPI"],
    runAsUser: { rule: "RunAsAny" },
    seLinux: { rule: "RunAsAny" },
    supplementalGroups: { rule: "RunAsAny" },
    fsGroup: { rule: "RunAsAny" },
  },
};

const CUSTOM_RESOURCES = `{{- if .Values.installation.enabled }}
{{- $spec := omit .Values.installation "enabled" }}
apiVersion: ${OWN_API}
kind: Installation
metadata:
  name: default
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end }}
{{- if .Values.apiServer.enabled }}
---
apiVersion: ${OWN_API}
kind: APIServer
metadata:
  name: default
spec: {}
{{- end }}
`;
